"""The optimiser against torch's."""

import pytest
import torch
from torch import nn

from cndpm.state import StateError
from cndpm.training.optimiser import Optimiser, _in_pieces


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


def test_a_penalty_is_left_out_where_a_loss_is_not_penalised():
    (model, x, y), (other, _, _) = problem(), problem()
    for own, decay in ((model, 1.0), (other, 0.0)):
        optimiser = Optimiser(own.parameters(), lr=1e-2, clip=100.0, weight_decay=decay)
        for _ in range(3):  # Adam's first step has hardly a gradient but its sign
            optimiser.step(loss_of(own, x, y), penalise=False)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_steps_of_others_do_not_age_a_parameter():
    trained, idle = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimiser = Optimiser([trained, idle], lr=0.1, clip=1.0, weight_decay=0.0)
    for _ in range(5):
        optimiser.step(trained.sum(), penalise=False)
    optimiser.step(idle.sum(), penalise=False)
    torch.testing.assert_close(idle.data, torch.full((2,), 0.9))  # Adam's first step is as long as its rate
    assert [float(moment["step"]) for moment in optimiser.state_dict()["moments"]] == [5.0, 1.0]


def test_a_factor_multiplies_the_learning_rate():
    parameter = nn.Parameter(torch.ones(2))
    optimiser = Optimiser([parameter], lr=0.1, clip=1.0, weight_decay=0.0)
    optimiser.scale_lr(0.5)
    optimiser.step(parameter.sum(), penalise=False)
    torch.testing.assert_close(parameter.data, torch.full((2,), 0.95))


def test_an_enlarged_parameter_goes_on_as_its_rows_would_have():
    kept, old = (nn.Parameter(torch.arange(6.0).reshape(2, 3)) for _ in range(2))
    steady, growing = (Optimiser([p], lr=1e-2, clip=9.0, weight_decay=0.0) for p in (kept, old))
    for step in range(3):
        steady.step((kept * (step + 1)).square().sum(), penalise=False)
        growing.step((old * (step + 1)).square().sum(), penalise=False)
    new = nn.Parameter(torch.cat([old.data, torch.ones(2, 3)]))
    growing.replace(old, new)
    steady.step(kept.square().sum(), penalise=False)
    growing.step(new.square().sum(), penalise=False)
    assert torch.equal(new[:2], kept)
    assert (new[2:] < 1).all()


def test_pieces_of_a_parameter_step_as_the_whole_does():
    gradient, ends = torch.randn(3, 5000, generator=torch.Generator().manual_seed(0)), []
    for cut in (_in_pieces, list):
        row = (torch.ones(3, 5000), gradient.clone(), torch.zeros(3, 5000), torch.zeros(3, 5000), torch.ones(()))
        optimiser = Optimiser([], lr=0.1, clip=0.5, weight_decay=0.1)
        optimiser._descend(cut([row]), penalise=True)
        ends.append(torch.stack([row[0], row[2], row[3]]))
    assert torch.equal(*ends)


@pytest.mark.parametrize(
    ("name", "value"),
    [("second", -torch.ones(2)), ("step", torch.tensor(-1.0)), ("first", torch.zeros(3)), ("second", torch.zeros(1))],
)
def test_a_state_that_cannot_be_is_refused_and_changes_nothing(name, value):
    parameter = nn.Parameter(torch.ones(2))
    optimiser = Optimiser([parameter], lr=0.1, clip=1.0, weight_decay=0.0)
    state = optimiser.state_dict()
    state["moments"][0][name] = value
    with pytest.raises(StateError):
        optimiser.load_state_dict(state | {"lr": 0.7})
    assert optimiser.lr == 0.1


def test_a_loaded_state_is_not_written_to():
    parameter = nn.Parameter(torch.ones(2))
    optimiser = Optimiser([parameter], lr=0.1, clip=1.0, weight_decay=0.0)
    state = optimiser.state_dict()
    optimiser.load_state_dict(state)
    optimiser.step(parameter.sum(), penalise=False)
    assert not state["moments"][0]["first"].any() and not state["moments"][0]["step"]


def test_an_enlarged_parameter_keeps_the_moments_of_its_rows():
    old, new = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(4, 3))
    optimiser = Optimiser([old], lr=1e-2, clip=1.0, weight_decay=0.0)
    optimiser.step(old.sum(), penalise=False)
    before = optimiser.state_dict()["moments"][0]["first"]
    optimiser.replace(old, new)
    after = optimiser.state_dict()["moments"][0]["first"]
    assert torch.equal(after[:2], before)
    assert after[2:].eq(0).all()
