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


def a_turn_aside(device, n):
    """Draws of both recorders, the one aside first, and what came of them."""
    made = recorder(device)
    aside = made.aside()
    totals = torch.zeros(2, 3, device=device)

    def step(total, source):
        total.mul_(0.9).add_(torch.randn(3, generator=source.generator, device=device))

    routines = [aside.routine(lambda: step(totals[0], aside)), made.routine(lambda: step(totals[1], made))]
    with aside.turn():
        routines[0].repeat(n)
    routines[1].repeat(n)
    aside.join()
    return totals


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_a_recorder_aside_draws_what_would_be_drawn_in_turn(device):
    totals = a_turn_aside(device, 57)
    plain, expected = torch.Generator(device).manual_seed(0), torch.zeros(2, 3, device=device)
    for row in expected:
        for _ in range(57):
            row.mul_(0.9).add_(torch.randn(3, generator=plain, device=device))
    assert torch.equal(totals, expected)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_gpu)])
def test_what_is_done_side_by_side_is_what_would_be_done_in_turn(device):
    made = recorder(device)
    x = torch.rand(64, 64, generator=torch.Generator().manual_seed(0)).to(device)
    routine = made.routine(lambda x: made.side_by_side(lambda: x @ x @ x, lambda: (x + 1) @ x @ x))
    for _ in range(20):
        one, other = routine(x)
        assert torch.equal(one, x @ x @ x)
        assert torch.equal(other, (x + 1) @ x @ x)


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
