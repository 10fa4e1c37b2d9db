"""The closed form against samples drawn from what it does not know."""

import pytest
import torch

from cndpm.experts.gaussian import discrimination
from cndpm.experts.gaussian.discrimination import expected_accuracy, expected_distance
from cndpm.experts.gaussian.shrinkage import shrunk_covariance


def components(n: int, d: int, n_components: int, seed: int):
    """Training rows, labels, and a way to draw more, of components with one uneven covariance."""
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64)).Q
    root = rotation * torch.logspace(-1.5, 0.5, d, dtype=torch.float64)
    centres = torch.randn(n_components, d, generator=generator, dtype=torch.float64) @ root.T
    centres *= 3 / (d**0.5) * torch.linspace(0.8, 1.2, n_components, dtype=torch.float64)[:, None]

    def draw(n: int):
        y = torch.arange(n) % n_components
        return centres[y] + torch.randn(n, d, generator=generator, dtype=torch.float64) @ root.T, y

    return *draw(n), draw, centres


class Trial:
    """One training set, judged before and after new samples are seen."""

    def __init__(self, n: int, d: int, seed: int):
        z, y, draw, self.centres = components(n, d, 5, seed)
        self.counts, self.degrees = torch.bincount(y).double(), float(n - 5)
        self.means = torch.nn.functional.one_hot(y).double().T @ z / self.counts[:, None]
        deviations = z - self.means[y]
        self.scatter = deviations.T @ deviations
        self.new, self.labels = draw(4000)

    def foretold(self, shrinkage: float) -> tuple[float, float]:
        """Accuracy, and squared distance over d."""
        floor = shrinkage * float(self.scatter.diagonal().mean()) / self.degrees
        facts = {"degrees": self.degrees, "shrinkage": shrinkage, "floor": floor}
        cholesky = self._factor(shrinkage)
        accuracy = expected_accuracy(cholesky, self.means, self.counts, **facts)
        return accuracy, expected_distance(cholesky, **facts) / len(self.scatter)

    def seen(self, shrinkage: float) -> tuple[float, float]:
        """The same of new samples."""
        whiten = torch.linalg.inv(self._factor(shrinkage)).T
        nearest = torch.cdist(self.new @ whiten, self.means @ whiten).argmin(dim=1)
        distance = ((self.new - self.centres[self.labels]) @ whiten).square().sum(dim=1)
        accuracy = float((nearest == self.labels).double().mean())
        return accuracy, float(distance.mean()) / len(self.scatter)

    def _factor(self, shrinkage: float) -> torch.Tensor:
        return torch.linalg.cholesky(shrunk_covariance(self.scatter.clone(), self.degrees, shrinkage))


@pytest.mark.parametrize(("n", "d"), [(200, 20), (200, 100), (100, 150)])
def test_accuracy_and_distance_of_new_samples_are_foretold(n, d):
    trials = [Trial(n, d, seed) for seed in range(16)]
    for shrinkage in (0.003, 0.03, 0.3):
        foretold = torch.tensor([trial.foretold(shrinkage) for trial in trials]).mean(dim=0)
        seen = torch.tensor([trial.seen(shrinkage) for trial in trials]).mean(dim=0)
        assert float(foretold[0]) == pytest.approx(float(seen[0]), abs=0.04)
        assert float(foretold[1]) == pytest.approx(float(seen[1]), rel=0.05)


def test_the_shrinkage_that_is_foretold_best_is_nearly_the_best():
    trial, grid = Trial(200, 120, seed=3), (1e-4, 1e-3, 1e-2, 1e-1, 0.9)
    seen = [trial.seen(value)[0] for value in grid]
    chosen = max(range(5), key=lambda i: trial.foretold(grid[i])[0])
    assert max(seen) - min(seen) > 0.1
    assert seen[chosen] > max(seen) - 0.02


def test_components_apart_are_told_apart_and_equal_ones_by_chance():
    cholesky, counts = torch.eye(3, dtype=torch.float64), torch.full((4,), 1e6, dtype=torch.float64)
    apart = torch.tensor([[0.0, 0, 0], [40, 0, 0], [0, 40, 0], [0, 0, 40]], dtype=torch.float64)
    settings = {"degrees": 1e6, "shrinkage": 0.0, "floor": 0.0}
    assert expected_accuracy(cholesky, apart, counts, **settings) == 1.0
    noise = 1e-3 * torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert expected_accuracy(cholesky, noise, counts, **settings) == pytest.approx(0.25, abs=0.02)


def test_of_many_components_some_and_their_nearest_tell_the_accuracy_of_all(monkeypatch):
    z, y, *_ = components(6000, 12, 300, seed=3)
    counts = torch.bincount(y).double()
    means = torch.nn.functional.one_hot(y).double().T @ z / counts[:, None]
    scatter = (z - means[y]).T @ (z - means[y])
    floor = 0.01 * float(scatter.diagonal().mean()) / 5700
    cholesky = torch.linalg.cholesky(shrunk_covariance(scatter, 5700.0, 0.01))
    facts = {"degrees": 5700.0, "shrinkage": 0.01, "floor": floor}
    some = expected_accuracy(cholesky, means, counts, **facts)
    monkeypatch.setattr(discrimination, "_ALL", 1000)
    everything = expected_accuracy(cholesky, means, counts, **facts)
    assert 0.2 < everything < 0.95
    assert abs(some - everything) < 0.05
