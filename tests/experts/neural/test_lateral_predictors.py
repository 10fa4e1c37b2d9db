import math

import pytest
import torch

from cndpm.experts.neural.lateral_predictors import Classifier, Regressor, temper


def classifier(n_classes=4, **arguments):
    torch.manual_seed(0)
    return Classifier((5,), n_classes, hidden=[6], **arguments)


def test_a_closed_classifier_is_the_plain_softmax():
    model = classifier(closed=True)
    x = torch.randn(3, 5)
    torch.testing.assert_close(model.predictive(x), torch.log_softmax(model.output(x, ()), dim=1))


def test_unseen_classes_share_exactly_the_small_probability():
    model = classifier(unseen_probability=0.01)
    model.see(torch.tensor([0, 2]))
    proba = model.predictive(torch.randn(3, 5)).exp()
    torch.testing.assert_close(proba.sum(1), torch.ones(3))
    torch.testing.assert_close(proba[:, [1, 3]], torch.full((3, 2), 0.005))


def test_a_classifier_that_has_seen_nothing_is_uniform():
    torch.testing.assert_close(classifier().predictive(torch.randn(2, 5)).exp(), torch.full((2, 4), 0.25))


def test_admitting_classes_leaves_answers_about_seen_ones_unchanged_but_for_the_small_probability():
    model = classifier(n_classes=2, unseen_probability=0.01)
    model.see(torch.tensor([0, 1]))
    x = torch.randn(3, 5)
    before = model.predictive(x).exp()
    model.admit(5)
    after = model.predictive(x).exp()
    torch.testing.assert_close(after[:, :2], 0.99 * before)
    torch.testing.assert_close(after[:, 2:].sum(1), torch.full((3,), 0.01))


def test_the_loss_ignores_labels_outside_the_repertoire_and_its_gradient_is_finite():
    model = classifier()
    model.see(torch.tensor([0]))
    model.see(torch.tensor([1]))
    loss = model.loss(torch.randn(2, 5), torch.tensor([1, 3]), ())
    assert loss[1].item() == 0
    assert loss[0].item() > 0
    loss.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("temperature", [0.01, 1.0, 3.0])
def test_tempering_divides_log_probabilities_and_normalises_again(temperature):
    log_proba = torch.log_softmax(torch.randn(4, 3, dtype=torch.float64), dim=1)
    expected = log_proba.exp() ** (1 / temperature)
    expected /= expected.sum(1, keepdim=True)
    torch.testing.assert_close(temper(log_proba, temperature).exp(), expected)


def test_temperature_changes_what_routing_sees_and_not_the_gradient():
    cold, plain = classifier(closed=True, temperature=0.01), classifier(closed=True)
    x, y = torch.randn(3, 5), torch.tensor([0, 1, 2])
    assert not torch.allclose(cold.log_prob(y, cold.predictive(x)), plain.log_prob(y, plain.predictive(x)))
    torch.testing.assert_close(cold.loss(x, y, ()), plain.loss(x, y, ()))


def test_a_tempered_regressor_is_a_normalised_gaussian_of_stretched_variance():
    torch.manual_seed(0)
    model = Regressor((2,), 1, hidden=[4], temperature=0.25)
    predictive = model.predictive(torch.randn(1, 2))
    grid = torch.linspace(-60, 60, 200_001).unsqueeze(1)
    density = model.log_prob(grid, predictive.expand(len(grid), -1, -1)).exp()
    assert torch.trapezoid(density, grid[:, 0]).item() == pytest.approx(1.0, abs=1e-3)
    peak = model.log_prob(predictive[:, 0], predictive)
    assert peak.item() == pytest.approx(-0.5 * math.log(2 * math.pi * 0.25 * predictive[0, 1].item()), rel=1e-5)


def test_regression_learns_mean_and_spread():
    torch.manual_seed(0)
    model = Regressor((1,), 1, hidden=[16])
    x = torch.rand(400, 1)
    y = 2 * x + 0.3 * torch.randn(400, 1)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(400):
        optimiser.zero_grad()
        model.loss(x, y, ()).mean().backward()
        optimiser.step()
    mean, variance = model.predictive(torch.tensor([[0.5]]))[0, :, 0].tolist()
    assert mean == pytest.approx(1.0, abs=0.1)
    assert math.sqrt(variance) == pytest.approx(0.3, abs=0.07)
