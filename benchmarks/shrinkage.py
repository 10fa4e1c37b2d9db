"""Does the accuracy that is foretold in closed form pick the shrinkage that classifies best? All classes at once.

python -m benchmarks.shrinkage --data DIR cifar100 --n-patches 16 --n-samples 7500

Prints for every shrinkage: the expected log density of a new sample (normal components), the accuracy and the squared
distance over d that the statistics foretell, and both as they are on the test images.
"""

from __future__ import annotations

import argparse
import math
import time

import torch
from torch import Tensor

from cndpm.experts.features import PatchFeatures
from cndpm.experts.gaussian.choice import accuracy_of
from cndpm.experts.gaussian.discrimination import expected_distance
from cndpm.experts.gaussian.shrinkage import mean_variance, shrunk_covariance
from cndpm.experts.gaussian.statistics import SharedStatistics
from cndpm.streams import load_scenario

_BLOCK = 1000


def gather(options: argparse.Namespace) -> tuple[SharedStatistics, Tensor, Tensor]:
    """Statistics of the training samples, and the test samples' features and labels."""
    fraction = 1.0 if options.n_samples is None else options.n_samples / 50_000
    scenario = load_scenario(f"split-{options.dataset}", fraction=fraction)
    stream = scenario.build(data_dir=options.data, seed=0, device=options.device)
    batches = list(stream.batches())
    x, y = torch.cat([b.x for b in batches]), torch.cat([b.y for b in batches if b.y is not None])
    features = PatchFeatures(options.n_patches, views=options.views)
    features.fit(x[:500], generator=torch.Generator().manual_seed(0))
    statistics = SharedStatistics(features(x[:500]).mean(dim=0))
    statistics.add_components(int(y.max()) + 1)
    for part, labels in zip(x.split(_BLOCK), y.split(_BLOCK), strict=True):
        weights = torch.nn.functional.one_hot(labels, statistics.n_components).double().cpu()
        statistics.add(statistics.shift(features(part)), weights)
        statistics.flush()
    x_test, y_test = (torch.cat([getattr(task, part) for task in stream.tasks]) for part in ("x", "y"))
    x_test, y_test = (part[:: options.every].to(options.device) for part in (x_test, y_test))
    return statistics, torch.cat([features(part) for part in x_test.split(_BLOCK)]), y_test


def seen(statistics: SharedStatistics, cholesky: Tensor, test: Tensor, labels: Tensor) -> tuple[float, float]:
    """Accuracy, and squared distance from a sample's own mean over d, on the test samples."""
    means = statistics.sums / statistics.counts[:, None].to(test.device)
    means = torch.linalg.solve_triangular(cholesky, means.T, upper=False).T
    hits, distance = 0, 0.0
    for part, own in zip(test.split(_BLOCK), labels.split(_BLOCK), strict=True):
        whitened = torch.linalg.solve_triangular(cholesky, statistics.shift(part).T, upper=False).T
        distances = torch.cdist(whitened, means).square()
        hits += int((distances.argmin(dim=1) == own).sum())
        distance += float(distances.gather(1, own[:, None]).sum())
    return hits / len(test), distance / len(test) / test.shape[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=("cifar10", "cifar100"))
    parser.add_argument("--data")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--n-patches", type=int, default=16)
    parser.add_argument("--n-samples", type=int, help="training samples; all if not given")
    parser.add_argument("--every", type=int, default=1, help="take every so manieth test image")
    parser.add_argument("--views", choices=("auto", "none"), default="auto")
    options = parser.parse_args()
    options.views = "auto" if options.views == "auto" else ("",)
    statistics, test, labels = gather(options)
    d, degrees = statistics.n_features, statistics.degrees_of_freedom
    print(f"{options.dataset}: {d} features, {degrees:.0f} degrees of freedom, torch {torch.__version__}")
    print("shrinkage   density | foretold accuracy, distance |  seen | seconds")
    for exponent in range(9, 0, -1):
        started, shrinkage = time.perf_counter(), 10 ** (-exponent / 2)
        scatter = statistics.within_scatter()
        floor = shrinkage * mean_variance(scatter, degrees)
        cholesky = torch.linalg.cholesky(shrunk_covariance(scatter, degrees, shrinkage))
        foretold = accuracy_of(statistics, cholesky, shrinkage, floor)
        spread = expected_distance(cholesky, degrees=degrees, shrinkage=shrinkage, floor=floor) / d
        log_det = 2 * float(cholesky.diagonal().log().sum())
        density = -0.5 * (d * math.log(2 * math.pi) + log_det + d * spread)
        seconds = time.perf_counter() - started
        accuracy, distance = seen(statistics, cholesky, test, labels)
        print(
            f"{shrinkage:9.1e} {density:9.1f} | {100 * foretold:6.2f} {spread:6.3f} | "
            f"{100 * accuracy:6.2f} {distance:6.3f} | {seconds:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
