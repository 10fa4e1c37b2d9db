"""Gaussian components with one covariance for all: means by conjugacy, covariance by pooling, shrunk by evidence.

Component j has mu_j ~ N(m0, Sigma / kappa0) and predictive density N(mu_j, (1 + 1 / (kappa0 + n_j)) Sigma); "new" is
the prior predictive N(m0, (1 + 1 / kappa0) Sigma), exactly. m0 is the mean of everything, kappa0 comes from how far the
means lie apart. Where held-out data has heavier tails than a normal density, the normal densities become Student's t of
the same mean and covariance; with tail=inf everything stays exactly conjugate.

Two factorisations of Sigma are cached. *Routing* uses one that is renewed when as many samples have arrived as there
are features, or 5 % more, whichever is more: then factorising costs no more than accumulating; and when an expert is
founded on at least a tenth of all data, because what it brings may vary in other directions. Between renewals the
covariance is stale, the means are not. *Prediction* uses an exact one, made on demand and kept until the statistics
change; it never influences learning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from cndpm.experts.gaussian.conjugate import log_elliptical
from cndpm.experts.gaussian.rows import FeatureRows
from cndpm.experts.gaussian.shrinkage import (
    TAILS,
    choose_shrinkage,
    held_out_log_likelihood,
    oracle_shrinkage,
    shrunk_covariance,
)
from cndpm.experts.gaussian.statistics import SharedStatistics, pack_symmetric, unpack_triangle
from cndpm.experts.gaussian.transfer import normal_draws
from cndpm.state import State

__all__ = ["Factor", "SharedGaussians"]

_BLOCK_SIZE = 512
_MIN_HELD_OUT = 8


@dataclass(eq=False)
class Factor:
    """One factorisation of the shared covariance and what follows from it.

    Attributes:
        cholesky: L, lower triangular, (d, d).
        log_det: log det Sigma, a scalar.
        sums: L^-1 s_j, (J, d), float64; kept in step with the statistics.
        mean: L^-1 (m0 - origin), (d,), float64.
        kappa: Prior pseudo-samples, a scalar.
        tail: Degrees of freedom of the components' tails; inf for normal ones.
        count: Weight of the samples behind the covariance.
    """

    cholesky: Tensor
    log_det: Tensor
    sums: Tensor
    mean: Tensor
    kappa: Tensor
    tail: float
    count: float

    def whiten(self, shifted: Tensor) -> Tensor:
        """L^-1 z for rows z (B, d), float64."""
        rows = shifted.to(self.cholesky.dtype)
        whitened: Tensor = torch.linalg.solve_triangular(self.cholesky, rows.T, upper=False)
        return whitened.T.double()


class SharedGaussians:
    """J Gaussian components over d features with one covariance.

    Args:
        origin: Fixed shift of the features, (d,).
        shrinkage: A fixed lambda, or None to choose it by held-out likelihood.
        tail: A fixed weight of the tails (inf for exactly normal components), or None to choose it likewise.
        routing_dtype: Precision of the routing factor; float32 halves its cost, the routing margins are whole nats.
    """

    def __init__(
        self,
        origin: Tensor,
        *,
        shrinkage: float | None = None,
        tail: float | None = None,
        routing_dtype: torch.dtype = torch.float32,
    ) -> None:
        self.statistics = SharedStatistics(origin)
        self.shrinkage = 1e-2 if shrinkage is None else shrinkage
        self.tail = math.inf if tail is None else tail
        self.routing_dtype = routing_dtype
        self.n_factorisations = 0
        self._fixed_shrinkage = shrinkage
        self._tails = TAILS if tail is None else (tail,)
        self._chosen_at = 0.0
        self._routing: Factor | None = None
        self._exact: Factor | None = None
        self._latest: tuple[FeatureRows, Factor, tuple[Tensor, Tensor]] | None = None

    @property
    def n_components(self) -> int:
        """J."""
        return self.statistics.n_components

    @property
    def counts(self) -> Tensor:
        """Weight of the samples of each component, (J,), float64."""
        return self.statistics.counts

    @property
    def n_numbers_kept(self) -> int:
        """Statistics only: both factors follow from them."""
        return self.statistics.n_numbers_kept

    def found(self, z: Tensor, weights: Tensor) -> None:
        """Adds a founding memory z (M, d) with weights (M, J); a fifth is held out while the shrinkage is chosen."""
        self.statistics.flush()
        held_out = torch.arange(len(z), device=z.device) % 5 == 4
        self._add(FeatureRows(z[~held_out]), weights[~held_out])
        self.statistics.flush()
        self._add(FeatureRows(z[held_out]), weights[held_out])
        self._renew_if_due(n_samples=0, share=0.1)

    def add(self, rows: FeatureRows, weights: Tensor) -> None:
        """Learns B rows with weights (B, J)."""
        self._add(rows, weights)
        self._renew_if_due(n_samples=self.statistics.n_features, share=0.05)
        if self.statistics.n_pending >= _BLOCK_SIZE:
            self.statistics.flush()

    def add_components(self, n: int) -> None:
        """Appends n empty components."""
        self._exact = self._latest = None
        self.statistics.add_components(n)
        if self._routing is not None:
            self._routing.sums = torch.cat(
                [self._routing.sums, self._routing.sums.new_zeros(n, len(self._routing.mean))]
            )

    def merge_components(self, pairs: list[tuple[int, int]], keep: list[int]) -> None:
        """Adds component i to j for every pair (i, j), then keeps the components `keep`, in that order."""
        self.statistics.merge_components(pairs, keep)
        self._exact = self._latest = None
        if self._routing is not None:
            self._routing = self._factorise(self.routing_dtype)

    def routing(self) -> Factor:
        """The factor that routing uses; made on first use."""
        if self._routing is None:
            self._routing = self._factorise(self.routing_dtype)
        return self._routing

    def exact(self) -> Factor:
        """The factor of the statistics as they are now; cached until they change."""
        if self._exact is None:
            self._exact = self._factorise(torch.float64)
        return self._exact

    def routing_log_prob(self, rows: FeatureRows) -> tuple[Tensor, Tensor]:
        """Predictive log densities of every component (B, J) and of "new" (B,), by the routing factor."""
        return self._log_prob(self.routing(), rows)

    def log_prob(self, rows: FeatureRows) -> tuple[Tensor, Tensor]:
        """Predictive log densities of every component (B, J) and of "new" (B,), exactly."""
        return self._log_prob(self.exact(), rows)

    def log_leave_one_out(self, rows: FeatureRows, groups: Tensor) -> Tensor:
        """log density of each of M rows under a component made of the other rows of its group, (M,).

        Args:
            rows: The rows.
            groups: Group indices (M,), from 0 on.
        """
        factor = self.routing()
        whitened = rows.derive(factor, lambda z: factor.whiten(self.statistics.shift(z)))
        members = torch.nn.functional.one_hot(groups).double()
        kappas = (members.sum(dim=0) - 1)[groups] + factor.kappa
        means = (factor.kappa * factor.mean + (members.T @ whitened)[groups] - whitened) / kappas[:, None]
        distance = (whitened - means).square().sum(dim=1)
        return log_elliptical(distance, factor.log_det, len(factor.mean), 1 + 1 / kappas, factor.tail)

    def log_prob_of_groups(self, rows: FeatureRows, memory: FeatureRows, members: Tensor) -> Tensor:
        """log density of B rows under components made of groups of a memory, (B, G); they are not added.

        Args:
            rows: What to rate.
            memory: M rows.
            members: One-hot groups, (M, G), float64.
        """
        factor = self.exact()
        whitened, of_memory = (factor.whiten(self.statistics.shift(part.z)) for part in (rows, memory))
        kappas = members.sum(dim=0) + factor.kappa
        means = (members.T @ of_memory + factor.kappa * factor.mean) / kappas[:, None]
        distance = torch.cdist(whitened, means).square()
        return log_elliptical(distance, factor.log_det, len(factor.mean), 1 + 1 / kappas, factor.tail)

    def sample(self, component: int, n: int, generator: torch.Generator) -> Tensor:
        """n feature rows drawn from the predictive density of a component, (n, d), float64."""
        factor, counts = self.exact(), self.statistics.counts
        kappa = counts[component] + factor.kappa
        noise = normal_draws((n, len(factor.mean)), generator, counts.device)
        # Tails are left out of samples: a draw of the normal density with the same mean and covariance.
        whitened = (factor.sums[component] + factor.kappa * factor.mean) / kappa + noise * (1 + 1 / kappa).sqrt()
        return whitened @ factor.cholesky.T + self.statistics.origin

    def _log_prob(self, factor: Factor, rows: FeatureRows) -> tuple[Tensor, Tensor]:
        if self._latest is not None and self._latest[0] is rows and self._latest[1] is factor:
            return self._latest[2]
        scores = self._scores(factor, rows.derive(factor, lambda z: factor.whiten(self.statistics.shift(z))))
        self._latest = (rows, factor, scores)
        return scores

    def _scores(self, factor: Factor, whitened: Tensor) -> tuple[Tensor, Tensor]:
        counts = self.statistics.counts
        kappas = torch.cat([counts + factor.kappa, factor.kappa[None]])
        sums = torch.cat([factor.sums, torch.zeros_like(factor.mean)[None]])
        means = (sums + factor.kappa * factor.mean) / kappas[:, None]
        cross = whitened @ means.T
        distance = whitened.square().sum(dim=1, keepdim=True) - 2 * cross + means.square().sum(dim=1)
        scores = log_elliptical(distance.clamp_min(0), factor.log_det, len(factor.mean), 1 + 1 / kappas, factor.tail)
        return scores[:, :-1], scores[:, -1]

    def _add(self, rows: FeatureRows, weights: Tensor) -> None:
        self._exact = self._latest = None
        self.statistics.add(rows.z, weights)
        factor = self._routing
        if factor is not None:
            whitened = rows.derive(factor, lambda z: factor.whiten(self.statistics.shift(z)))
            factor.sums.addmm_(weights.double().T, whitened)

    def _renew_if_due(self, *, n_samples: int, share: float) -> None:
        """Renews the routing factor once `n_samples` and a `share` more have arrived since."""
        count = float(self.statistics.counts.sum())
        stale = 0.0 if self._routing is None else self._routing.count
        if self._routing is None or count - stale >= max(n_samples, share * stale):
            self._choose_shrinkage(count)
            self.statistics.flush()
            self._routing = None
            self._routing = self._factorise(self.routing_dtype)

    def _choose_shrinkage(self, count: float) -> None:
        """Judges lambda and the tails on the waiting block; again whenever the data has doubled since."""
        if count < 2 * self._chosen_at:
            return
        if self.statistics.n_pending < _MIN_HELD_OUT:
            self._shrink_without_judging()
            return
        scatter, degrees, deviations = self.statistics.held_out()
        if len(deviations) < _MIN_HELD_OUT:
            self._shrink_without_judging()
            return
        self._chosen_at = count
        scores: dict[float, tuple[float, float]] = {}

        def score(value: float) -> float:
            if value not in scores:
                scores[value] = held_out_log_likelihood(scatter, degrees, deviations, value, self._tails)
            return scores[value][0]

        if self._fixed_shrinkage is None:
            self.shrinkage = choose_shrinkage(score, self.shrinkage)
        score(self.shrinkage)
        self.tail = scores[self.shrinkage][1]

    def _shrink_without_judging(self) -> None:
        """While there are too few samples to hold any out: the closed form."""
        if self._chosen_at == 0 and self._fixed_shrinkage is None:
            self.statistics.flush()
            self.shrinkage = oracle_shrinkage(self.statistics.within_scatter(), self.statistics.degrees_of_freedom)

    def _factorise(self, dtype: torch.dtype) -> Factor:
        statistics = self.statistics
        if not statistics.n_components:
            raise RuntimeError("there is no component yet; found an expert first")
        self.n_factorisations += 1
        covariance = shrunk_covariance(statistics.within_scatter(), statistics.degrees_of_freedom, self.shrinkage)
        cholesky = torch.linalg.cholesky(covariance)
        del covariance
        sums = torch.linalg.solve_triangular(cholesky, statistics.sums.T, upper=False).T.contiguous()
        total = statistics.counts.sum()
        mean = sums.sum(dim=0) / total.clamp_min(1e-9)
        log_det = 2 * cholesky.diagonal().log().sum()
        kappa = _prior_strength(sums, statistics.counts, mean)
        return Factor(cholesky.to(dtype), log_det, sums, mean, kappa, self.tail, float(total))

    def state_dict(self) -> State:
        """Statistics, shrinkage and the routing factor, which is older than the statistics."""
        routing = self._routing
        return {
            "statistics": self.statistics.state_dict(),
            "shrinkage": self.shrinkage,
            "tail": _finite(self.tail),
            "chosen_at": self._chosen_at,
            "routing": None if routing is None else _factor_state(routing),
        }

    def load_state_dict(self, state: State) -> None:
        """Restores the above to the bit."""
        self.statistics = SharedStatistics.from_state(state["statistics"])
        self.shrinkage, self._chosen_at = state["shrinkage"], state["chosen_at"]
        self.tail = _maybe_infinite(state["tail"])
        self._routing = None if state["routing"] is None else _factor_from_state(state["routing"])
        self._exact = self._latest = None


def _prior_strength(sums: Tensor, counts: Tensor, mean: Tensor) -> Tensor:
    """kappa0 by moments: 1 / kappa0 is the variance of the whitened means about m0, less what their estimation adds.

    At most a tenth of a component's samples, so that few of them, whose means lie within their error, are not all
    taken for one.
    """
    present = counts > 0
    if int(present.sum()) < 2:
        return counts.new_tensor(1.0)
    spread = (sums[present] / counts[present, None] - mean).square().mean(dim=1) - 1 / counts[present]
    n = present.sum()
    kappa = 1 / (spread.mean() * n / (n - 1)).clamp(1e-6, 1e6)
    return torch.minimum(kappa, 0.1 * counts[present].mean())


def _factor_state(factor: Factor) -> State:
    state = {name: getattr(factor, name).clone() for name in ("log_det", "sums", "mean", "kappa")}
    return {
        **state,
        "cholesky": pack_symmetric(factor.cholesky),
        "tail": _finite(factor.tail),
        "count": factor.count,
    }


def _factor_from_state(state: State) -> Factor:
    cholesky = unpack_triangle(state["cholesky"], len(state["mean"]))
    rest = {name: state[name].clone() for name in ("log_det", "sums", "mean", "kappa")}
    return Factor(cholesky=cholesky, tail=_maybe_infinite(state["tail"]), count=state["count"], **rest)


def _finite(tail: float) -> float | None:
    """A tail as JSON can hold it: None for inf."""
    return None if math.isinf(tail) else tail


def _maybe_infinite(tail: float | None) -> float:
    return math.inf if tail is None else tail
