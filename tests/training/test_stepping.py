"""The optimiser against torch's, and routines that are nothing but their function."""

import pytest
import torch
from torch import nn

from cndpm.training.stepping import Optimiser, Recorder


def problem(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(4, 3), torch.randn(7, 4), torch.randn(7, 3)


def loss_of(model, x, y):
    return (model(x) - y).square().sum()


def test_a_step_is_adams_on_clipped_gradients_of_the_penalised_loss():
    model, x, y = problem()
    reference, _, _ = problem()
    optimiser = Optimiser(model.parameters(), lr=1e-2, clip=0.5, weight_decay=0.1)
    adam = torch.optim.Adam(reference.parameters(), lr=1e-2)
    for _ in range(5):
        optimiser.step(loss_of(model, x, y), penalise=True)
        adam.zero_grad()
        (loss_of(reference, x, y) + 0.1 * sum(p.square().sum() for p in reference.parameters())).backward()
        nn.utils.clip_grad_value_(reference.parameters(), 0.5)
        adam.step()
    torch.testing.assert_close(list(model.parameters()), list(reference.parameters()))


def test_a_slowed_down_optimiser_follows_its_law_and_a_restarted_one_begins_again():
    model, x, y = problem()
    reference, _, _ = problem()
    optimiser = Optimiser(model.parameters(), lr=1e-2, clip=1e9, weight_decay=0.0, slowdown=2)
    for _ in range(2):
        adam = torch.optim.Adam(reference.parameters(), lr=1e-2)
        law = torch.optim.lr_scheduler.LambdaLR(adam, lambda t: (1 + (t + 1) / 2) ** -0.5)
        for _ in range(4):
            optimiser.step(loss_of(model, x, y), penalise=False)
            adam.zero_grad()
            loss_of(reference, x, y).backward()
            adam.step()
            law.step()
        optimiser.restart()
        torch.testing.assert_close(list(model.parameters()), list(reference.parameters()))


def test_parameters_that_a_loss_does_not_depend_on_stay():
    model, x, y = problem()
    idle = nn.Parameter(torch.ones(2))
    optimiser = Optimiser([*model.parameters(), idle], lr=1.0, clip=1.0, weight_decay=1.0)
    optimiser.step(loss_of(model, x, y), penalise=True)
    assert torch.equal(idle, torch.ones(2))


def test_a_restored_optimiser_goes_on_with_the_same_bits():
    model, x, y = problem()
    optimiser = Optimiser(model.parameters(), lr=1e-2, clip=0.5, weight_decay=0.0)
    optimiser.step(loss_of(model, x, y), penalise=False)
    copy, _, _ = problem(seed=1)
    copy.load_state_dict(model.state_dict())
    restored = Optimiser(copy.parameters(), lr=1.0, clip=0.5, weight_decay=0.0)
    restored.load_state_dict(optimiser.state_dict())
    for own, its in ((model, optimiser), (copy, restored)):
        its.step(loss_of(own, x, y), penalise=False)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), copy.parameters(), strict=True))


def test_a_saved_state_does_not_follow_the_optimiser():
    model, x, y = problem()
    optimiser = Optimiser(model.parameters(), lr=1e-2, clip=0.5, weight_decay=0.0)
    saved = optimiser.state_dict()
    optimiser.step(loss_of(model, x, y), penalise=False)
    assert saved["moments"][0]["first"].eq(0).all()


def test_an_enlarged_parameter_keeps_the_moments_of_its_rows():
    old, new = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(4, 3))
    optimiser = Optimiser([old], lr=1e-2, clip=1.0, weight_decay=0.0)
    optimiser.step(old.sum(), penalise=False)
    before = optimiser.state_dict()["moments"][0]["first"]
    optimiser.replace(old, new)
    after = optimiser.state_dict()["moments"][0]["first"]
    assert torch.equal(after[:2], before)
    assert after[2:].eq(0).all()


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def recorder(device="cpu", **options):
    return Recorder(torch.device(device), torch.Generator(device).manual_seed(0), **options)


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
