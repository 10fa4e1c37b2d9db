"""How well the density of one to three columns is told: against scipy's kernels, and against the truth.

    python -m benchmarks.densities                # mixtures 0 to 11, some minutes on one core

Mixtures of one to five Gaussians, of any orientation, near to each other or far apart, in units of any size. Each model
learns rows of a mixture and is asked for the log density of 2,000 others. `kde` is :class:`scipy.stats.gaussian_kde`
of all rows as it comes; :class:`cndpm.CNDPMDensity` keeps a thousand rows. The gap is halfway between the two means
that are farthest apart, where these are at least ten deviations from each other: the least novelty found there.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from scipy.stats import gaussian_kde, multivariate_normal

from cndpm import CNDPMDensity

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """Gaussians: weights (k,), means (k, d), factors of covariances (k, d, d)."""

    weights: Floats
    means: Floats
    factors: Floats

    @classmethod
    def of(cls, seed: int, d: int) -> Mixture:
        """Draws a mixture in d columns."""
        rng = np.random.default_rng([seed, d])
        k, apart, units = rng.integers(1, 6), rng.choice([1.0, 3.0, 8.0]), np.exp(rng.normal(0, 2, d))
        turns = np.linalg.qr(rng.normal(size=(k, d, d)))[0] * np.exp(rng.normal(0, 0.5, (k, 1, d)))
        return cls(rng.dirichlet(np.full(k, 3.0)), rng.normal(size=(k, d)) * apart * units, turns * units[:, None])

    def rows(self, n: int, seed: int) -> Floats:
        """Draws rows, (n, d)."""
        rng = np.random.default_rng([seed, n])
        which = rng.choice(len(self.weights), n, p=self.weights)
        noise = rng.normal(size=(n, self.means.shape[1]))
        drawn: Floats = self.means[which] + np.einsum("nij,nj->ni", self.factors[which], noise)
        return drawn

    def log_density(self, x: Floats) -> Floats:
        """Returns the log density of rows (n, d): (n,)."""
        parts = [
            np.log(weight) + multivariate_normal(mean, factor @ factor.T).logpdf(x)
            for weight, mean, factor in zip(self.weights, self.means, self.factors, strict=True)
        ]
        log_density: Floats = np.logaddexp.reduce(parts, axis=0)
        return log_density

    def gap(self) -> Floats | None:
        """Returns the row halfway between the two means farthest apart, (1, d); None where no gap is there."""
        if len(self.means) < 2:
            return None
        i, j = np.unravel_index(squareform(pdist(self.means)).argmax(), (len(self.means),) * 2)
        middle = 0.5 * (self.means[i] + self.means[j])
        away = [np.linalg.norm(np.linalg.solve(f, middle - m)) for f, m in zip(self.factors, self.means, strict=True)]
        return middle[None] if min(away) >= 5 else None


def measured(seed: int, d: int, n: int) -> dict[str, float | None]:
    """Returns mean log densities of 2,000 held-out rows less the truth's, and the novelty of the gap."""
    mixture = Mixture.of(seed, d)
    learned, asked = mixture.rows(n, seed), mixture.rows(2000, seed + 10**6)
    truth = float(mixture.log_density(asked).mean())
    model, gap = CNDPMDensity(random_state=0).fit(learned), mixture.gap()
    return {
        "cndpm": model.score(asked) - truth,
        "kde": float(gaussian_kde(learned.T).logpdf(asked.T).mean()) - truth,
        "gap": None if gap is None else float(model.novelty(gap)[0]),
    }


def main() -> None:
    """Prints a line for every number of columns and rows, and all of them as JSON last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(12)))
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000, 3000, 10_000])
    options = parser.parse_args()
    results = []
    for d in (1, 2, 3):
        for n in options.rows:
            found = [measured(seed, d, n) for seed in options.seeds]
            ours, kde = (np.array([one[name] for one in found], dtype=float) for name in ("cndpm", "kde"))
            gaps = [one["gap"] for one in found if one["gap"] is not None]
            line = {
                "columns": d, "rows": n, "cndpm": float(ours.mean()), "kde": float(kde.mean()),
                "least_against_kde": float((ours - kde).min()), "gaps": len(gaps),
                "least_novelty": min(gaps, default=None),
            }  # fmt: skip
            print(json.dumps(line), flush=True)
            results.append(line)
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
