r"""The accuracy with which a shrunk covariance will tell components apart, from sufficient statistics alone.

A component's score of a sample x is x' A m_j - m_j' A m_j / 2 with A the inverse of Sigma(lambda) = a S + b I, where S
is the covariance estimated from nu degrees of freedom and m_j an estimated mean. For a new sample of component i the
scores are normal, and what is unknown about their mean and covariance, the true covariance C, has consistent estimates
when features and samples grow in proportion (for two classes: Zollanvari and Dougherty, 2015). With

.. math:: q = \frac{d - b \operatorname{tr} A}{\nu}, \qquad \delta = \frac{q}{1 - q}:
    \qquad \operatorname{tr} C A \approx \frac{\nu \delta}{a}, \qquad A C A \approx (1 + \delta)^2 A S A

so that no sample has to be held out, kept or seen again. The mean of m_i lies off the true one by its own error, which
costs tr(C A) / n_i.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_SOME = 64
"""Random signs that stand for all features, and components that stand for all where there are too many."""

_N_SCORES = 20_000_000
_MAX_DRAWS = 50_000

_ALL = 256
"""Components up to which each is compared with every other one; beyond, some with their nearest."""

_N_NEAREST = 32
_N_DRAWS = 2_000


def expected_distance(cholesky: Tensor, *, degrees: float, shrinkage: float, floor: float) -> float:
    """Returns tr C A, the expected squared distance of new samples from the true mean of their component.

    It is d where Sigma(lambda) = L L' = (1 - lambda) S + floor I, with S of nu `degrees` of freedom, is as wide as the
    data.
    """
    return degrees * _delta(cholesky, degrees, floor) / (1 - shrinkage)


def expected_accuracy(
    cholesky: Tensor, means: Tensor, counts: Tensor, *, degrees: float, shrinkage: float, floor: float
) -> float:
    """Returns the expected share of new samples whose own component has the highest density.

    Components are taken to be as frequent as they were: `counts` (J,), positive; `means` (J, d) are about any common
    origin. Where they are many, 64 of them speak for all, and each is compared with its 31 nearest: a sample is rarely
    mistaken for one of a component that lies farther away. The factor is as for :func:`expected_distance`.
    """
    given = {"degrees": degrees, "share": 1 - shrinkage, "floor": floor, "delta": _delta(cholesky, degrees, floor)}
    if len(means) <= _ALL:
        hits = _hit_rates(*_scores(cholesky, means, counts, **given))
        return float((hits * counts).sum() / counts.sum())
    whitened = torch.linalg.solve_triangular(cholesky, means.T, upper=False)
    judged = torch.linspace(0, len(means) - 1, _SOME).long().to(means.device)
    hits = torch.stack(
        [_hit_rate(*_scores(cholesky, means[one], counts[one], **given)) for one in _nearest(whitened.T, judged)]
    )
    return float((hits * counts[judged]).sum() / counts[judged].sum())


def _scores(
    cholesky: Tensor, means: Tensor, counts: Tensor, *, degrees: float, share: float, floor: float, delta: float
) -> tuple[Tensor, Tensor]:
    """Returns the mean score of new samples of component i under j, [i, j], (n, n), and the scores' covariance."""
    whitened = torch.linalg.solve_triangular(cholesky, means.T, upper=False)
    duals = torch.linalg.solve_triangular(cholesky.mT, whitened, upper=True).double()
    inner = whitened.T.double() @ whitened.double()
    # S duals = (means - floor duals) / share, by the definition of the duals.
    covariance = (1 + delta) ** 2 * (duals.T @ (means.T - floor * duals)) / share
    return inner - torch.diag(degrees * delta / share / counts) - 0.5 * inner.diagonal(), covariance


def _nearest(points: Tensor, judged: Tensor) -> Tensor:
    """Returns, for some of the points (J, d), themselves and their nearest others, (n_judged, 32)."""
    squares = points.square().sum(dim=1)
    distance = squares[judged, None] - 2 * points[judged] @ points.T + squares
    distance[torch.arange(len(judged), device=judged.device), judged] = -1  # first, whatever rounding says
    return distance.topk(_N_NEAREST, dim=1, largest=False).indices


def _hit_rate(expected: Tensor, covariance: Tensor) -> Tensor:
    """Returns how often a new sample of the first of n components has the highest score under it, ()."""
    hits: Tensor = ((expected[0] + _scattered(covariance, _N_DRAWS)).argmax(dim=1) == 0).double().mean()
    return hits


def _delta(cholesky: Tensor, degrees: float, floor: float) -> float:
    occupied = (len(cholesky) - floor * _trace_of_inverse(cholesky)) / degrees
    return occupied / max(1 - occupied, 1e-9)


def _trace_of_inverse(cholesky: Tensor) -> float:
    """Returns tr (L L')^-1, by 64 random signs where there are more features (Hutchinson 1990)."""
    d = len(cholesky)
    if d <= _SOME:
        probes = torch.eye(d, dtype=cholesky.dtype, device=cholesky.device) * math.sqrt(d)
    else:
        signs = torch.randint(2, (d, _SOME), generator=torch.Generator().manual_seed(0))
        probes = (2 * signs - 1).to(cholesky)
    return float(torch.linalg.solve_triangular(cholesky, probes, upper=False).square().sum()) / probes.shape[1]


def _hit_rates(expected: Tensor, covariance: Tensor) -> Tensor:
    """Returns how often score i is the highest when scores are N(expected_i, covariance), (J,); by fixed draws."""
    n = len(expected)
    scatter = _scattered(covariance, max(100, min(_MAX_DRAWS, _N_SCORES // n**2)))
    return torch.stack([((row + scatter).argmax(dim=1) == i).double().mean() for i, row in enumerate(expected)])


def _scattered(covariance: Tensor, n: int) -> Tensor:
    """Returns n fixed draws of N(0, covariance), (n, J)."""
    noise = torch.randn(n, len(covariance), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    variances, axes = torch.linalg.eigh(0.5 * (covariance + covariance.mT))
    scattered: Tensor = noise.to(covariance) @ (axes * variances.clamp_min(0).sqrt()).mT
    return scattered
