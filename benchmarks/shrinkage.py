"""Which held-out score picks the shrinkage that classifies best? One covariance, all classes at once, some of the data.

python -m benchmarks.shrinkage --data DIR cifar100 --n-patches 16 --n-samples 7500

Prints for every shrinkage: the mean held-out log density, the mean held-out log probability of the label as the model
gives it and at the best temperature, and the accuracy on 2,000 test images.
"""

from __future__ import annotations

import argparse
import math
from itertools import islice

import torch
from torch import Tensor

from cndpm.experts.features import PatchFeatures
from cndpm.experts.gaussian.conjugate import log_elliptical
from cndpm.experts.gaussian.shrinkage import TAILS, shrunk_covariance
from cndpm.streams import load_scenario

_N_HELD_OUT = 500
_N_TEST = 2000


def log_label(scores: Tensor, y: Tensor) -> float:
    """Mean log probability of labels y (N,) by scores (N, C)."""
    return float(scores.log_softmax(dim=1).gather(1, y[:, None]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=("cifar10", "cifar100"))
    parser.add_argument("--data")
    parser.add_argument("--n-patches", type=int, default=16)
    parser.add_argument("--n-samples", type=int, default=7500)
    options = parser.parse_args()
    stream = load_scenario(f"iid-split-{options.dataset}").build(data_dir=options.data, seed=0)
    batches = list(islice(stream.batches(), (options.n_samples + _N_HELD_OUT) // 10))
    x, y = torch.cat([b.x for b in batches]), torch.cat([b.y for b in batches if b.y is not None])
    each = _N_TEST // len(stream.tasks)
    x_test, y_test = (torch.cat([getattr(task, part)[:each] for task in stream.tasks]) for part in ("x", "y"))
    features = PatchFeatures(options.n_patches, views=("",))
    features.fit(x[:500], generator=torch.Generator().manual_seed(0))
    rows, test = features(x).double(), features(x_test).double()
    rows, test, n = rows - rows.mean(dim=0), test - rows.mean(dim=0), options.n_samples
    members = torch.nn.functional.one_hot(y[:n]).double()
    counts = members.sum(dim=0)
    means = members.T @ rows[:n] / counts[:, None]
    deviations = rows[:n] - means[y[:n]]
    scatter, n_dims, one = deviations.T @ deviations, rows.shape[1], torch.ones((), dtype=torch.float64)
    for exponent in range(12, -1, -1):
        shrinkage = 10 ** (-exponent / 2)
        cholesky = torch.linalg.cholesky(shrunk_covariance(scatter.clone(), float(n - len(counts)), shrinkage))
        log_det = 2 * float(cholesky.diagonal().log().sum())
        whitened = [torch.linalg.solve_triangular(cholesky, z.T, upper=False).T for z in (means, rows[n:], test)]
        held_out, tested = (torch.cdist(z, whitened[0]).square() for z in whitened[1:])
        own = held_out.gather(1, y[n:, None])
        density, tail = max((float(log_elliptical(own, log_det, n_dims, one, tail).mean()), tail) for tail in TAILS)
        scores, answers = (
            log_elliptical(distance, log_det, n_dims, 1 + 1 / counts, tail) + (counts / n).log()
            for distance in (held_out, tested)
        )
        plain, calibrated = log_label(scores, y[n:]), max(log_label(scores * 2.0**-k, y[n:]) for k in range(12))
        accuracy = 100 * float((answers.argmax(dim=1) == y_test).double().mean())
        tail_name = "normal" if math.isinf(tail) else f"{tail:g}"
        print(f"{shrinkage:8.1e} {density:9.2f} {tail_name:>6} {plain:8.3f} {calibrated:8.3f} {accuracy:6.2f}")


if __name__ == "__main__":
    main()
