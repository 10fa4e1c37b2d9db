"""One pass of class Gaussians over image features, judged on a held-out tenth of every class's training samples.

All classes are components of one covariance, without experts or gate: what features and shrinkage give, in a tenth of
the time that a stream takes. Features are fitted on the first 500 samples of the stream, which are
of its first task; samples come in the order of the stream, in blocks of 250; the shrinkages are judged as the model
judges them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.pooled_patches import PooledPatches
from cndpm.experts.chunks import Samples
from cndpm.experts.features import PatchFeatures
from cndpm.experts.features.views import density_change
from cndpm.experts.gaussian.choice import CovarianceChoice
from cndpm.experts.gaussian.shared_answers import SharedAnswers
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.experts.gaussian.shrinkage import shrunk_covariance
from cndpm.experts.gaussian.statistics import SharedStatistics
from cndpm.streams import Scenario, Stage, Subset, load_scenario

__all__ = ["GRID", "Pass", "measure"]

GRID = tuple(round(10 ** (-quarter / 4), 8) for quarter in range(20, 1, -1))
"""Shrinkages at which the held-out accuracy is measured: quarters of decades, of which every second is the model's."""

_MEMORY, _BLOCK = 500, 250
_N_FEATURES_PER_FILTER = 16
"""Of the default: two sides, two moments, four cells."""


@dataclass(frozen=True)
class Pass:
    """One pass and what is varied in it; the defaults are the model's.

    Attributes:
        dataset: "mnist", "fashion", "cifar10", "cifar100" or "svhn".
        seed: Of the stream, of what is held out and of the filters.
        fraction: Of every class's training samples.
        n_patches: Filters a size that the default would have; other sizes and poolings have as many features.
        sizes: Edge lengths of the patches.
        threshold: Of the rectification.
        moments: See :class:`~benchmarks.pooled_patches.PooledPatches`.
        grid: Cells along an edge.
        views: "auto", or the views joined by "|".
        watched: Whether the accuracy at every shrinkage of the grid, and evidence on the way, are measured too.

    Example:
        >>> Pass("mnist", seed=0, moments="mean").n_filters
        128
    """

    dataset: str
    seed: int
    fraction: float = 0.5
    n_patches: int = 64
    sizes: tuple[int, ...] = (4, 6, 8)
    threshold: float = 0.25
    moments: str = "both"
    grid: int = 2
    views: str = "auto"
    watched: bool = False

    @property
    def n_filters(self) -> int:
        """Filters a size, so that there are as many features as the default has."""
        n_features = 3 * self.n_patches * _N_FEATURES_PER_FILTER
        each = 2 * (2 if self.moments == "both" else 1) * self.grid**2
        return round(n_features / (len(self.sizes) * each))


class WatchedChoice(CovarianceChoice):
    """The model's choice of shrinkages that also counts, whenever it is judged, which would have been right.

    The rows that wait to enter the covariance have not been seen by it: those of the latest classes.

    Attributes:
        hits: By shrinkage, how many waiting rows were nearest to the mean of their own class.
    """

    def __init__(self) -> None:
        super().__init__(None, None, for_classes=True)
        self.hits = dict.fromkeys(GRID[::2], 0)

    def judge(self, statistics: SharedStatistics) -> None:
        """Counts hits, then chooses as the model does."""
        rows, _, owners = statistics.pending()
        here = rows.device
        counts = statistics.counts - functional.one_hot(owners, statistics.n_components).sum(dim=0)
        known = counts[owners] > 0
        if known.any() and int((counts > 0).sum()) > 1:
            members = functional.one_hot(owners, statistics.n_components).double().to(here)
            sums = statistics.sums - members.T @ rows
            means = sums / counts.clamp_min(1).to(here)[:, None]
            scatter, degrees, _ = statistics.held_out()
            self._count(rows[known.to(here)], owners[known].to(here), means, counts.to(here), scatter, degrees)
        super().judge(statistics)

    def _count(
        self, rows: Tensor, owners: Tensor, means: Tensor, counts: Tensor, scatter: Tensor, degrees: float
    ) -> None:
        for shrinkage in self.hits:
            cholesky, info = torch.linalg.cholesky_ex(shrunk_covariance(scatter.clone(), degrees, shrinkage))
            if int(info):
                continue
            whitened, centres = (
                torch.linalg.solve_triangular(cholesky, part.T, upper=False).T for part in (rows, means)
            )
            distances = torch.cdist(whitened, centres) + torch.where(counts > 0, 0.0, torch.inf)
            self.hits[shrinkage] += int((distances.argmin(dim=1) == owners).sum())


def scenario(dataset: str, fraction: float) -> Scenario:
    """Returns the split scenario of a dataset with a tenth of every class held out.

    Args:
        dataset: As in :class:`Pass`.
        fraction: Of every class's training samples.
    """
    if dataset != "svhn":
        made = load_scenario(f"split-{dataset}", fraction=fraction, validation=True)
        assert isinstance(made, Scenario)
        return made
    pairs = [(k, k + 1) for k in range(0, 10, 2)]
    stages = tuple(Stage(subsets=(Subset(dataset="svhn", classes=pair),), epochs=1) for pair in pairs)
    return Scenario(name="split-svhn", stages=stages, fraction=fraction, validation=True)


@lru_cache(maxsize=1)
def _samples(
    dataset: str, seed: int, fraction: float, data: str | None, device: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns training samples in the order of the stream and held-out ones: x, y, x, y; labels as they appear."""
    stream = scenario(dataset, fraction).build(data_dir=data, seed=seed, device=device)
    batches = list(stream.batches())
    x, y = torch.cat([b.x for b in batches]), torch.cat([b.y for b in batches if b.y is not None]).cpu()
    order = list(dict.fromkeys(y.tolist()))
    place = torch.full((max(order) + 1,), -1)
    place[order] = torch.arange(len(order))
    x_test, y_test = (torch.cat([getattr(task, part) for task in stream.tasks]) for part in ("x", "y"))
    return x, place[y], x_test.to(device), place[y_test.cpu()]


def _features(task: Pass, x: Tensor, y: Tensor) -> tuple[PatchFeatures, Callable[[Tensor], Tensor]]:
    """Returns the fitted filters, with their views, and the map that is measured."""
    views = "auto" if task.views == "auto" else tuple(task.views.split("|"))
    fitted = PatchFeatures(task.n_filters, sizes=task.sizes, threshold=task.threshold, views=views)
    fitted.fit(x, generator=torch.Generator().manual_seed(task.seed), labels=y)
    if (task.moments, task.grid) == ("both", 2):
        return fitted, fitted
    return fitted, PooledPatches(fitted, moments=task.moments, grid=task.grid)


def learn(features: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, *, watched: bool) -> SharedGaussians:
    """Makes a Gaussian of every class, in the order of the stream.

    Args:
        features: Maps images to rows (B, d).
        x: Images in order, (N, C, H, W).
        y: Their classes (N,), numbered as they appear.
        watched: Whether hits are counted; see :class:`WatchedChoice`.
    """
    first = features(x[:_MEMORY])
    gaussians = SharedGaussians(first.double().mean(dim=0), lambda samples: samples.x)
    if watched:
        gaussians.choice = WatchedChoice()
    for start in (0, *range(_MEMORY, len(x), _BLOCK)):
        part = slice(start, _MEMORY if start == 0 else start + _BLOCK)
        rows, labels = (first if start == 0 else features(x[part])), y[part]
        gaussians.add_components(max(0, int(labels.max()) + 1 - len(gaussians.counts)))
        weights = functional.one_hot(labels, len(gaussians.counts)).double()
        if start == 0:
            gaussians.found(rows, weights)
        else:
            gaussians.add(Samples(rows), weights)
    return gaussians


def _accuracy(gaussians: SharedGaussians, rows: Tensor, y: Tensor, shrinkage: float) -> float:
    """Returns the share of held-out rows (N, d) that are most probable under their own class, per cent."""
    before = gaussians.choice
    gaussians.choice = CovarianceChoice(shrinkage, before.tail, for_classes=True)
    gaussians.choice.for_classes = True  # as where it was chosen: means have a prior of one sample
    scores = SharedAnswers(gaussians, lambda samples: samples.x).log_prob(Samples(rows), exact=True).cpu()
    gaussians.choice = before
    return 100 * float(((scores + gaussians.counts.log()).argmax(dim=1) == y).double().mean())


def measure(task: Pass, *, data: str | None, device: str) -> dict[str, Any]:
    """Makes the pass and returns its figures.

    Args:
        task: The pass.
        data: Where datasets lie.
        device: Where it is computed.
    """
    torch.backends.cudnn.allow_tf32 = False
    x, y, x_test, y_test = _samples(task.dataset, task.seed, task.fraction, data, device)
    fitted, features = _features(task, x[:_MEMORY], y[:_MEMORY])
    gaussians = learn(features, x, y, watched=task.watched)
    rows, choice = torch.cat([features(part) for part in x_test.split(_BLOCK)]), gaussians.choice
    changes, spread = density_change(x[:_MEMORY], "mirror", "turn+8", "turn-8", labels=y[:_MEMORY])
    figures = {
        "accuracy": _accuracy(gaussians, rows, y_test, choice.classes),
        "density": choice.density,
        "foretold": choice.accuracy,
        "n_features": rows.shape[1],
        "n_samples": len(x),
        "n_held_out": len(y_test),
        "admitted": "|".join(fitted.views),
        "view_changes": [round(change / max(spread, 1e-9), 4) for change in changes],
    }
    if isinstance(choice, WatchedChoice):
        figures["hits"] = {str(value): n for value, n in choice.hits.items()}
        figures["by_shrinkage"] = {str(value): _accuracy(gaussians, rows, y_test, value) for value in GRID}
    return figures
