"""How often members are solved, what their priors count for, and how regressions know their noise."""

import pytest
import torch

from cndpm.experts.pool.discriminants import Discriminants
from cndpm.experts.pool.forgetting import prior_strength, renewal_interval
from cndpm.experts.pool.regressions import Regressions


def test_solutions_are_renewed_after_a_twentieth_and_not_before_five_samples():
    assert [renewal_interval(n, d) for n, d in ((10.0, 1), (1000.0, 10), (30.0, 200))] == [5, 50, 10]


def test_a_prior_counts_for_a_tenth_of_the_features_and_at_least_five_samples():
    assert [prior_strength(d) for d in (3, 50, 200)] == [5.0, 5.0, 20.0]


def test_a_class_that_never_came_is_improbable():
    z = torch.tensor([[-1.0], [1.0]] * 20).double()
    model = Discriminants(1, 3, keeps=(1.0,))
    model.learn(z, torch.tensor([0, 2] * 20), (0,))
    proba = model.answers(torch.zeros(1, 1).double())[0, 0].softmax(dim=0)
    assert proba[1] < 1e-6 and proba[0] > 0.4


@pytest.mark.parametrize("keep", [1.0, 0.97])
def test_noise_is_the_faded_mean_square_of_errors_in_units_of_what_was_foretold(keep):
    generator = torch.Generator().manual_seed(0)
    model, errors, n_errors = Regressions(2, 1, keeps=(keep,)), torch.zeros(1).double(), 0.0
    fading = min(keep, 0.99)
    for _ in range(12):
        z = torch.randn(10, 2, generator=generator).double()
        y = z.sum(dim=1, keepdim=True) + torch.randn(10, 1, generator=generator).double()
        mean, variance = model.answers(z)[0].unbind(dim=1)
        noise = (errors + 0.05) / (n_errors + 1)
        for error, spread in zip((y - mean)[:, 0], (variance / noise)[:, 0], strict=True):
            errors, n_errors = fading * errors + error**2 / spread, fading * n_errors + 1
        model.learn(z, y, (0,))
    assert model._noise().item() == pytest.approx(float((errors + 0.05) / (n_errors + 1)))
