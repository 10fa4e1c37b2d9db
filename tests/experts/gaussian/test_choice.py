import math

import pytest
import torch

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian.choice import CovarianceChoice
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.experts.gaussian.statistics import SharedStatistics


def uneven(n: int, d: int = 80) -> tuple[torch.Tensor, torch.Tensor]:
    """Four classes that differ where the data varies much; most directions hardly vary."""
    generator = torch.Generator().manual_seed(0)
    deviations = torch.logspace(-2, 0.5, d)
    centres = torch.randn(4, d, generator=generator) * deviations * torch.linspace(-1, 1, d).clamp_min(0)
    y = torch.arange(n) % 4
    return centres[y] + torch.randn(n, d, generator=generator) * deviations, y


def taught(n: int, **options: object) -> tuple[SharedGaussians, torch.Tensor, torch.Tensor]:
    z, y = uneven(n + 2000)
    gaussians = SharedGaussians(z[:n].mean(dim=0), lambda samples: samples.x, CovarianceChoice(**options))
    gaussians.add_components(4)
    gaussians.found(z[:n], torch.nn.functional.one_hot(y[:n], 4).double())
    return gaussians, z[n:], y[n:]


def accuracy(gaussians: SharedGaussians, z: torch.Tensor, y: torch.Tensor) -> float:
    return float((gaussians.answers.log_prob(Samples(z), exact=True).argmax(dim=1) == y).double().mean())


def test_classes_shrunk_for_themselves_are_told_apart_better():
    gaussians, z, y = taught(120)
    assert gaussians.choice.classes > gaussians.choice.density
    assert accuracy(gaussians, z, y) > accuracy(taught(120, for_classes=False)[0], z, y) + 0.03


def test_new_samples_are_as_far_away_as_the_covariance_says():
    gaussians, z, y = taught(120)
    factor = gaussians.answers.factor(exact=True)
    means = gaussians.statistics.sums / gaussians.counts[:, None]
    whitened = factor.whiten(gaussians.statistics.shift(z) - means[y])
    expected = z.shape[1] * (1 + 1 / 30)
    assert float(whitened.square().sum(dim=1).mean()) == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("fixed", [{"shrinkage": 0.2}, {"shrinkage": 0.2, "tail": 8.0}])
def test_what_is_fixed_is_left_alone(fixed):
    gaussians, _, _ = taught(120, **fixed)
    assert gaussians.choice.density == gaussians.choice.classes == 0.2
    assert gaussians.choice.tail == fixed.get("tail", gaussians.choice.tail)


def test_without_classes_densities_decide():
    gaussians, _, _ = taught(120, for_classes=False)
    assert gaussians.choice.classes == gaussians.choice.density


def test_one_component_has_nothing_to_tell_apart():
    z, _ = uneven(60)
    statistics = SharedStatistics(z.mean(dim=0))
    statistics.add_components(1)
    statistics.add(statistics.shift(z), torch.ones(60, 1, dtype=torch.float64))
    choice = CovarianceChoice(None, None, for_classes=True)
    choice.judge(statistics)
    assert choice.classes == choice.density


def test_a_choice_survives_saving():
    gaussians, _, _ = taught(120)
    restored = CovarianceChoice(None, None, for_classes=False)
    restored.load_state_dict(gaussians.choice.state_dict())
    assert restored.state_dict() == gaussians.choice.state_dict()
    assert math.isfinite(restored.classes)
