import math

import numpy as np
import pytest
import torch

from asking import found, learn, log_density, log_joint, log_new, n_experts, predictive
from cndpm.experts.chunks import Samples
from cndpm.experts.features import FourierFeatures, IdentityFeatures
from cndpm.experts.gaussian import GaussianRegressionBank
from cndpm.state import load_state, save_state


def task(seed: int, slope: float, centre: float, n: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=generator) + centre
    y = slope * x[:, :1] - x[:, 1:] + 5 + 0.1 * torch.randn(n, 1, generator=generator)
    return x, y


def trained(feature_map=None) -> GaussianRegressionBank:
    bank = GaussianRegressionBank(feature_map or IdentityFeatures())
    for seed, (slope, centre) in enumerate([(2.0, 0.0), (-3.0, 6.0)]):
        found(bank, *task(seed, slope, centre))
    return bank


def test_each_expert_regresses_its_own_task():
    bank = trained()
    for k, (slope, centre) in enumerate([(2.0, 0.0), (-3.0, 6.0)]):
        x, y = task(10 + k, slope, centre)
        assert float((log_density(bank, x).argmax(dim=1) == k).float().mean()) > 0.99
        mean, variance = predictive(bank, x)[:, k].unbind(dim=1)
        assert float((mean - y).square().mean()) == pytest.approx(0.01, rel=0.3)
        assert float(variance.mean()) == pytest.approx(0.012, rel=0.3)


def test_joint_over_marginal_is_a_density_of_the_target_with_the_stated_moments():
    bank = trained()
    x = task(3, 2.0, 0.0)[0][:1]
    mean, variance = (float(value) for value in predictive(bank, x)[0, 0])
    marginal = float(log_density(bank, x)[0, 0])

    def density(target: float) -> float:
        return math.exp(float(log_joint(bank, x, torch.tensor([[target]], dtype=torch.float64))[0, 0]) - marginal)

    low, high = mean - 2, mean + 2
    grid = np.linspace(low, high, 4001)
    values = np.array([density(target) for target in grid])
    assert np.trapezoid(values, grid) == pytest.approx(1.0, abs=1e-4)
    assert np.trapezoid(grid * values, grid) == pytest.approx(mean, abs=1e-3)
    second = np.trapezoid((grid - mean) ** 2 * values, grid)
    assert second == pytest.approx(variance, rel=0.02)


def test_a_target_of_another_law_is_new():
    bank = trained()
    x, y = task(5, 2.0, 0.0)
    assert (log_joint(bank, x, y)[:, 0] > log_new(bank, x, y)).float().mean() > 0.95
    assert (log_joint(bank, x, y + 20).amax(dim=1) < log_new(bank, x, y + 20)).all()


def test_learning_in_batches_equals_founding_on_everything():
    x, y = task(0, 2.0, 0.0)
    whole, streamed = GaussianRegressionBank(IdentityFeatures()), GaussianRegressionBank(IdentityFeatures())
    found(streamed, x[:100], y[:100])
    for start in range(100, 400, 10):
        learn(streamed, x[start : start + 10], y[start : start + 10], torch.ones(10, 1))
    whole.load_state_dict({**streamed.state_dict(), "gaussians": None})
    found(whole, x, y)
    # The priors differ (each comes from its founding memory); the data outweighs them.
    torch.testing.assert_close(predictive(whole, x), predictive(streamed, x), rtol=1e-3, atol=5e-3)


def test_a_restored_bank_continues_to_the_bit(tmp_path):
    bank = trained(FourierFeatures(16))
    save_state(tmp_path / "bank", bank.state_dict(), kind="bank")
    restored = GaussianRegressionBank(FourierFeatures(16))
    restored.load_state_dict(load_state(tmp_path / "bank", kind="bank"))
    x, y = task(8, 2.0, 0.0, n=50)
    for each in (bank, restored):
        learn(each, x, y, torch.full((50, 2), 0.5))
    assert torch.equal(predictive(bank, x), predictive(restored, x))
    assert torch.equal(log_joint(bank, x, y), log_joint(restored, x, y))


def test_removing_an_expert_leaves_the_other_as_it_was():
    bank = trained()
    x, _ = task(9, -3.0, 6.0)
    before = predictive(bank, x)[:, 1]
    found(bank, *task(4, -3.0, 6.0))
    bank.remove(2, into=0)
    assert n_experts(bank) == 2
    assert torch.equal(predictive(bank, x)[:, 1], before)


def test_answers_are_the_conditional_of_the_joint_students_t():
    """Mean, and a variance that grows with the distance of x, in the units of the targets."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30, 2, generator=generator)
    y = 7 * x.sum(dim=1, keepdim=True) + torch.randn(30, 1, generator=generator) + 100
    bank = GaussianRegressionBank(IdentityFeatures())
    bank.found(Samples(x), y)
    bank.train(1)
    degrees, location, cholesky = (part[0] for part in bank.ready().predictive())
    scale = cholesky @ cholesky.T
    asked = torch.tensor([[0.0, 0.0], [3.0, -3.0]])
    z = bank.feature_map(asked).double() - location[:2]
    precision = torch.linalg.inv(scale[:2, :2])
    mean = location[2] + z @ precision @ scale[:2, 2]
    left = scale[2, 2] - scale[2, :2] @ precision @ scale[:2, 2]
    distance = ((z @ precision) * z).sum(dim=1)
    variance = left * (degrees + distance) / (degrees + 2 - 2)
    shift, unit = y.double().mean(), y.double().std(correction=0)
    got = bank.predictive(Samples(asked))[:, 0, :, 0]
    torch.testing.assert_close(got[:, 0], mean * unit + shift, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(got[:, 1], variance * unit**2, rtol=1e-4, atol=1e-3)
    assert got[1, 1] > 1.1 * got[0, 1]


def test_a_model_of_the_memory_is_made_anew_when_the_memory_changes_and_only_then():
    bank = trained()
    memory, asked = [(Samples(x), y) for x, y in (task(4, 1.0, 20.0, n=8), task(5, 1.0, 40.0, n=8))], task(6, 1, 20)[0]
    first = bank.provisional(*memory[0])
    assert bank.provisional(*memory[0]) is first
    for x, y in (memory[1], (memory[1][0], 2 * memory[1][1])):
        kept, fresh = bank.provisional(x, y), trained().provisional(x, y)
        torch.testing.assert_close(kept.log_density(Samples(asked)), fresh.log_density(Samples(asked)))
        torch.testing.assert_close(kept.predictive(Samples(asked)), fresh.predictive(Samples(asked)))
