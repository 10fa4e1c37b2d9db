"""The optimiser against torch's."""

import torch
from torch import nn

from cndpm.training.optimiser import Optimiser


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
