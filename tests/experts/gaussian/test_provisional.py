"""A provisional model of the memory, and the drift of experts, by definition."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal

from cndpm.experts.chunks import Samples
from cndpm.experts.features import IdentityFeatures
from cndpm.experts.gaussian import GaussianBank


@pytest.fixture
def bank() -> GaussianBank:
    bank = GaussianBank(IdentityFeatures(), n_classes=3, tail=math.inf)
    x = torch.randn(60, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 0.5])
    bank.found(Samples(x), torch.arange(60) % 2)
    bank.train(1)
    return bank


def test_labels_of_a_memory_are_gaussians_weighed_by_their_share(bank):
    generator = torch.Generator().manual_seed(1)
    memory, labels = torch.randn(12, 2, generator=generator) + 4, torch.tensor([2] * 9 + [0] * 3)
    asked = Samples(torch.randn(5, 2, generator=generator) + 4)
    model = bank.provisional(Samples(memory), labels, exact=True)
    gaussians = bank.ready()
    factor, statistics = gaussians.answers.factor(exact=True), gaussians.statistics
    sigma = factor.cholesky.double() @ factor.cholesky.double().T
    prior = statistics.sums.sum(dim=0) / statistics.counts.sum()
    rows, z = (statistics.shift(bank.feature_map(x)) for x in (memory, asked.x))
    weighted = []
    for label in (0, 2):
        own = rows[labels == label]
        kappa = len(own) + factor.kappa
        normal = MultivariateNormal((own.sum(dim=0) + factor.kappa * prior) / kappa, (1 + 1 / kappa) * sigma)
        weighted.append(normal.log_prob(z) + math.log(len(own) / 12))
    weighted = torch.stack(weighted, dim=1)
    log_volume = bank.feature_map.log_volume
    assert log_volume != 0
    torch.testing.assert_close(model.log_density(asked), weighted.logsumexp(dim=1) - log_volume)
    torch.testing.assert_close(model.predictive(asked)[:, [0, 2]], weighted.log_softmax(dim=1), rtol=1e-9, atol=1e-9)
    assert (model.predictive(asked)[:, 1] < -40).all()


def test_the_drift_of_an_expert_is_that_of_its_components_by_their_counts(bank, monkeypatch):
    weights = torch.zeros(9, 1, dtype=torch.float64)
    weights[:] = 1
    bank.learn(
        Samples(torch.randn(9, 2)), torch.zeros(9, dtype=torch.long), weights
    )  # 39 of one label, 30 of the other
    monkeypatch.setattr(bank.ready(), "margin_drift", lambda: torch.tensor([2.0, -1.0]).double())
    assert bank.margin_drift().tolist() == pytest.approx([(39 * 2.0 - 30) / 69])
    monkeypatch.setattr(bank.ready(), "margin_drift", lambda: torch.tensor([2.0, math.nan]).double())
    assert bank.margin_drift().tolist() == pytest.approx([2.0])
