"""Routines are nothing but their function, recorded or not."""

import pytest
import torch

from cndpm.training.recorded_steps import StepRecorder

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def recorder(device="cpu", **options):
    return StepRecorder(torch.device(device), torch.Generator(device).manual_seed(0), **options)


def test_a_routine_on_a_cpu_calls_its_function_every_time():
    calls = []
    routine = recorder().routine(lambda: calls.append(1))
    routine.repeat(25)
    routine()
    assert len(calls) == 26


def test_a_routine_returns_what_its_function_does():
    one, other = recorder().routine(lambda x: (x + 1, x + 2))(torch.zeros(1))
    assert (one, other) == (1, 2)


@needs_gpu
@pytest.mark.parametrize("n", [7, 100])
def test_recorded_steps_equal_those_that_are_not(n):
    ends = []
    for enabled in (True, False):
        made = recorder("cuda", enabled=enabled)
        total = torch.zeros(3, device="cuda")

        def step(total=total, made=made):
            total.mul_(0.9).add_(torch.randn(3, generator=made.generator, device="cuda"))

        routine = made.routine(step)
        routine.repeat(n)
        routine.repeat(13)
        ends.append(total)
        assert made.enabled is enabled
    assert torch.equal(*ends)


@needs_gpu
def test_what_cannot_be_recorded_is_run_as_it_comes():
    made = recorder("cuda")
    total = torch.zeros((), device="cuda")
    drawn = []

    def step():
        drawn.append(torch.randn(2, generator=made.generator, device="cuda"))
        total.add_(float(total.item() < 1e9))

    routine = made.routine(step)
    routine.repeat(50)
    assert total.item() == 50
    assert not made.enabled
    fresh = torch.Generator("cuda").manual_seed(0)
    expected = [torch.randn(2, generator=fresh, device="cuda") for _ in range(50)]
    assert torch.equal(drawn[-1], expected[-1])
