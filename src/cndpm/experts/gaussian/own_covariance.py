"""Gaussian components that each have a covariance of their own: normal-inverse-Wishart, predictive density Student's t.

For few features (the statistics are J d (d + 1) / 2 numbers). The prior comes from the first memory: its mean, and a
share of its variances as the expected covariance, with as few degrees of freedom as give it an expectation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian.densities import normal_draws
from cndpm.state import State, StateError, copied, expect, tensor

_KAPPA = 0.05
"""Pseudo-samples behind the prior mean."""

_SHARE = 0.1
"""Expected variance of a component, as a share of the memory's: a component is narrower than the whole memory, and
targets are narrower given the features."""


class OwnGaussians:
    """J Gaussian components over d features, which a function gives; their prior is made of the first memory's, (M, d).

    Components live on the device of the first memory, and features are brought there. With few features the host is the
    better place: on a GPU a batch is a hundred tiny operations, and a factorisation a wait.
    """

    is_wide = False  # samples are asked and taught about all components

    def __init__(self, memory: Tensor, features: Callable[[Samples], Tensor]) -> None:
        d = memory.shape[1]
        self._features = features
        self._origin = memory.mean(dim=0)
        deviations = memory - self._origin
        variance = deviations.square().mean(dim=0)
        # Coordinates that do not vary in the first memory keep a small variance, so that psi has an inverse.
        variance = variance.clamp_min(1e-3 * float(variance.mean().clamp_min(1e-6)))
        self.prior = NormalInverseWishart(
            mean=torch.zeros_like(self._origin),
            kappa=variance.new_tensor(_KAPPA),
            nu=variance.new_tensor(d + 2.0),  # the fewest whole degrees of freedom with an expectation: psi itself
            psi=torch.diag(variance) * _SHARE,
        )
        self.counts = memory.new_zeros(0)
        self._sums = memory.new_zeros(0, d)
        self._second_moments = memory.new_zeros(0, d, d)
        self._factors: tuple[Tensor, Tensor, Tensor] | None = None
        self._changed: set[int] = set()

    @property
    def n_components(self) -> int:
        return len(self.counts)

    @property
    def n_numbers_kept(self) -> int:
        """Prior and sums; symmetric matrices count once."""
        d = len(self._origin)
        return 2 * d + 2 + self.n_components * (1 + d + d * (d + 1) // 2)

    def add_components(self, n: int) -> None:
        """Appends n empty components."""
        d = len(self._origin)
        self.counts = torch.cat([self.counts, self.counts.new_zeros(n)])
        self._sums = torch.cat([self._sums, self._sums.new_zeros(n, d)])
        self._second_moments = torch.cat([self._second_moments, self._sums.new_zeros(n, d, d)])
        self._factors = None

    def found(self, z: Tensor, weights: Tensor, components: NDArray[np.int64] | None = None) -> None:
        """Adds a founding memory of feature rows (M, d) with weights (M, J)."""
        self._add(z, weights)

    def add(self, samples: Samples, weights: Tensor, components: NDArray[np.int64] | None = None) -> None:
        """Learns samples (B, ...) with weights (B, J)."""
        self._add(self._values(samples), weights)

    def _add(self, z: Tensor, weights: Tensor) -> None:
        z, weights = z.to(self._origin) - self._origin, weights.to(self._origin.device)
        # Responsibilities that round to nothing would only cost a factorisation.
        weights = torch.where(weights > 1e-9, weights, 0.0).double()
        self.counts = self.counts + weights.sum(dim=0)
        self._sums.addmm_(weights.T, z)
        # One matrix grows per taught component; the others, and their factors, are left alone.
        for j in torch.nonzero(weights.sum(dim=0))[:, 0].tolist():
            self._second_moments[j].addmm_((z * weights[:, j, None]).T, z)
            self._changed.add(j)

    def merge_components(self, pairs: list[tuple[int, int]], keep: list[int], *, judge_anew: bool = False) -> None:
        """Adds component i to component j for every pair (i, j), then keeps some, in their new order."""
        for source, target in pairs:
            for sums in (self.counts, self._sums, self._second_moments):
                sums[target] += sums[source]
        self.counts, self._sums, self._second_moments = (
            sums[keep] for sums in (self.counts, self._sums, self._second_moments)
        )
        self._factors, self._changed = None, set()

    def template(self) -> State:
        """Returns the state of Gaussians with this prior and no component."""
        state = self.state_dict()
        return {**state, **{name: state[name][:0] for name in ("counts", "sums", "second_moments")}}

    def extend(self, other: OwnGaussians) -> None:
        """Appends the components of others with the same prior."""
        mine, theirs = self.template(), copied(other.template(), self._origin.device)
        if not torch.equal(mine["origin"], theirs["origin"]) or any(
            not torch.equal(mine["prior"][name], theirs["prior"][name]) for name in mine["prior"]
        ):
            raise ValueError(
                "the components have different priors, which come from the first memory; begin every model but the "
                "first with with_same_representation()"
            )
        added = copied(other.state_dict(), self._origin.device)
        self.counts = torch.cat([self.counts, added["counts"]])
        self._sums = torch.cat([self._sums, added["sums"]])
        self._second_moments = torch.cat([self._second_moments, added["second_moments"]])
        self._factors = None

    def typical_margins(self, components: NDArray[np.int64]) -> Tensor:
        """Returns log p(z | i) - log p(z | new) of a typical sample z of component j, [i, j], of some (S,), (S, S).

        A typical sample lies at the expected squared distance from every mean.
        """
        chosen = [*components.tolist(), self.n_components]
        degrees, location, cholesky = (value[chosen] for value in self.predictive())
        apart = (location[None] - location[:, None]).permute(0, 2, 1)  # [i, :, j]
        to_means = torch.linalg.solve_triangular(cholesky, apart, upper=False).square().sum(dim=1)
        spread = torch.stack(
            [torch.linalg.solve_triangular(one, cholesky, upper=False).square().sum(dim=(1, 2)) for one in cholesky]
        )
        distance = to_means + spread * (degrees / (degrees - 2).clamp_min(1e-3))[None]
        scores = _log_t(distance.T, degrees, cholesky).T
        return (scores[:-1] - scores[-1:])[:, :-1]

    def affinity(self) -> Tensor:
        """Returns how well components explain typical samples of each other, against those samples' own, (J, J)."""
        margins = self.typical_margins(np.arange(self.n_components))
        lost = margins - margins.diagonal()
        return torch.minimum(lost, lost.T).cpu()

    def whitened_sums(self) -> Tensor:
        """Returns the sums of components, less the origin, in units of the prior's deviations, (J, d), float64."""
        return self._sums / self.prior.psi.diagonal().sqrt()

    @property
    def answers(self) -> OwnGaussians:
        """Answers for the components: these ones themselves, as nothing is shared that could be out of date."""
        return self

    def _posterior(self, components: list[int]) -> NormalInverseWishart:
        sums = (self.counts[components], self._sums[components], self._second_moments[components])
        return normal_inverse_wishart_from_sums(self.prior, *sums)

    def log_prob(self, samples: Samples, *, exact: bool = True) -> Tensor:
        """Returns predictive log densities of every component, (B, J), on the device of the features; always exact."""
        device = self._features(samples).device
        return self._log_student_t(samples)[:, :-1].to(device)

    def routing_log_prob(
        self, samples: Samples, components: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns log densities of every component (B, J) and of "new" (B,), on the host."""
        scores = self._log_student_t(samples).cpu().numpy()
        return scores[:, :-1], scores[:, -1]

    def _log_student_t(self, samples: Samples) -> Tensor:
        """Returns log densities (B, J + 1), the prior's last."""
        degrees, location, cholesky = self.predictive()
        return log_student_t(self._values(samples), degrees, location, cholesky)

    def _values(self, samples: Samples) -> Tensor:
        """Returns features (B, d), float64, on the components' device; a whole chunk is brought there at once."""
        device = self._origin.device
        return samples.derive("values", self, lambda chunk: self._features(chunk).to(device).double())

    def margin_drift(self) -> None:
        """Returns None: nothing is shared, so nothing is renewed."""

    def log_leave_one_out(self, samples: Samples, groups: Tensor) -> Tensor:
        """Returns the log density of each of M samples under a component made of the others of its group, (M,)."""
        z, groups = self._values(samples) - self._origin, groups.to(self._origin.device)
        members = torch.nn.functional.one_hot(groups).double()
        counts, sums = members.sum(dim=0) - 1, members.T @ z
        squares = torch.einsum("mg,md,me->gde", members, z, z)
        scores = []
        for part in torch.split(torch.arange(len(z), device=z.device), 64):
            own, group = z[part], groups[part]
            others = squares[group] - own[:, :, None] * own[:, None, :]
            posterior = normal_inverse_wishart_from_sums(self.prior, counts[group], sums[group] - own, others)
            degrees, location, scale = posterior.predictive()
            scores.append(log_student_t(own, degrees, location, torch.linalg.cholesky(scale)).diagonal())
        return torch.cat(scores).cpu()

    def sample(self, component: int, n: int, generator: torch.Generator) -> Tensor:
        """Draws n feature rows from the predictive density of a component, (n, d), float64."""
        degrees, location, cholesky = (value[component] for value in self.predictive())
        noise = normal_draws((n, len(location)), generator, location.device)
        half = torch.full((n,), float(degrees) / 2, dtype=torch.float64, device=generator.device)
        precisions = torch._standard_gamma(half, generator) / half
        return location + (noise @ cholesky.T) / precisions.to(location.device).sqrt()[:, None]

    def predictive(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns Student's t of all components and, last, of the prior; cached until the statistics change.

        Degrees of freedom (J + 1,), locations (J + 1, d), Cholesky factors of the scale matrices (J + 1, d, d).
        """
        if self._factors is None:
            posterior = self._posterior(list(range(self.n_components)))
            joined = [torch.cat([one, prior[None]]) for one, prior in zip(posterior, self.prior, strict=True)]
            self._factors = self._student_t(NormalInverseWishart(*joined))
        elif self._changed:
            changed = sorted(self._changed)
            for cached, renewed in zip(self._factors, self._student_t(self._posterior(changed)), strict=True):
                cached[changed] = renewed
        self._changed = set()
        return self._factors

    def _student_t(self, model: NormalInverseWishart) -> tuple[Tensor, Tensor, Tensor]:
        degrees, location, scale = model.predictive()
        # One by one: in a batch a matrix's place decides its alignment, and with it the last bits of its factor.
        return degrees, location + self._origin, torch.stack([_cholesky(matrix) for matrix in scale])

    def state_dict(self) -> State:
        prior = {name: value.clone() for name, value in self.prior._asdict().items()}
        sums = {"counts": self.counts, "sums": self._sums, "second_moments": self._second_moments}
        return {"origin": self._origin.clone(), "prior": prior, **{name: value.clone() for name, value in sums.items()}}

    def load_state_dict(self, state: State) -> None:
        sums = {"counts": tensor("j"), "sums": tensor("j", "d"), "second_moments": tensor("j", "d", "d")}
        sizes = expect(state, {"origin": tensor("d"), **sums}, d=self._origin.shape[-1])
        prior = {"mean": tensor("d"), "kappa": tensor(), "nu": tensor(), "psi": tensor("d", "d")}
        expect(state["prior"], prior, **sizes)
        if not ((state["counts"] >= 0).all() and state["prior"]["kappa"] > 0 and state["prior"]["nu"] > 0):
            raise StateError("counts, 'kappa' and 'nu' must be positive")
        state = copied(state, self._origin.device)
        self._origin, self.prior = state["origin"], NormalInverseWishart(**state["prior"])
        self.counts, self._sums, self._second_moments = state["counts"], state["sums"], state["second_moments"]
        self._factors = None


class NormalInverseWishart(NamedTuple):
    """mu | Sigma ~ N(mean, Sigma / kappa), Sigma ~ IW(psi, nu); leading dimensions are components."""

    mean: Tensor  # (..., d)
    kappa: Tensor  # (...,), pseudo-samples behind the mean
    nu: Tensor  # (...,), degrees of freedom, larger than d - 1
    psi: Tensor  # (..., d, d), scale matrix

    @property
    def n_dims(self) -> int:
        return self.mean.shape[-1]

    def predictive(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns degrees of freedom (...,), location (..., d) and scale matrix (..., d, d) of Student's t."""
        degrees = self.nu - self.n_dims + 1
        factor = (self.kappa + 1) / (self.kappa * degrees)
        return degrees, self.mean, self.psi * factor[..., None, None]


def normal_inverse_wishart_from_sums(
    prior: NormalInverseWishart, count: Tensor, total: Tensor, second_moment: Tensor
) -> NormalInverseWishart:
    """Returns the posterior of J components after sums of w (J,), of w z (J, d) and of w z zᵀ (J, d, d)."""
    kappa = prior.kappa + count
    mean = (prior.kappa * prior.mean + total) / kappa[..., None]
    prior_square = prior.kappa * torch.outer(prior.mean, prior.mean)
    square = kappa[..., None, None] * mean[..., :, None] * mean[..., None, :]
    psi = prior.psi + second_moment + prior_square - square
    return NormalInverseWishart(mean, kappa, prior.nu + count, 0.5 * (psi + psi.mT))


def log_student_t(z: Tensor, degrees: Tensor, location: Tensor, cholesky: Tensor) -> Tensor:
    """Returns log t(z; degrees, location, L Lᵀ) of B samples under J components, (B, J); L is (J, d, d)."""
    centred = (z[:, None] - location).permute(1, 2, 0)
    distance = torch.linalg.solve_triangular(cholesky, centred, upper=False).square().sum(dim=1).T
    return _log_t(distance, degrees, cholesky)


def _log_t(distance: Tensor, degrees: Tensor, cholesky: Tensor) -> Tensor:
    """Returns log t at squared distances (B, J) from J components with L (J, d, d), (B, J)."""
    d, log_det = cholesky.shape[-1], 2 * cholesky.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
    constant = torch.lgamma((degrees + d) / 2) - torch.lgamma(degrees / 2) - 0.5 * d * (degrees * math.pi).log()
    return constant - 0.5 * log_det - 0.5 * (degrees + d) * torch.log1p(distance / degrees)


def _cholesky(matrix: Tensor) -> Tensor:
    """Returns the factor of a scale matrix (d, d), whose diagonal is raised where rounding left it indefinite.

    So it may be when one value was many orders of magnitude larger than all others.
    """
    factor: Tensor
    factor, info = torch.linalg.cholesky_ex(matrix)
    raised = 1e-12
    while int(info) and raised < 1e3:
        diagonal = matrix.diagonal().clamp_min(1e-12 * float(matrix.diagonal().max()))
        factor, info = torch.linalg.cholesky_ex(matrix - torch.diag(matrix.diagonal() - (1 + raised) * diagonal))
        raised *= 10
    if int(info):
        factor = torch.linalg.cholesky(matrix)  # says what is wrong
    return factor
