"""Gaussian experts of rows whose scale may change: every range of rows has units, and experts, of its own.

Experts that share a covariance cannot tell rows that spread three times as wide from others, and features fitted to the
narrow ones are noise for the wide ones. Where the latest rows leave all ranges known, another one begins. No expert
has learned any of it, so its rows are new, as those of a label are that nobody has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.bank import Evidence, Provisional
from cndpm.experts.chunks import Samples
from cndpm.experts.features import FeatureMap
from cndpm.experts.features.ranges import Ranges
from cndpm.experts.gaussian.classes import GaussianBank
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.state import State, StateError, expect, part, tensor

_LOG_UNSEEN_RANGE = -1e6
"""Added to what an expert says of rows of a range that it has not learned."""

_SHARE = 0.2
"""Part of the first samples of an expert, or of those that wait, that a range must have to be known."""


class RangedGaussianBank(GaussianBank):
    """Gaussian experts with a shared covariance, for rows; features are those of rows in the units of the first range.

    `ranges` are those of the rows so far, `knows` tells whether an expert has learned rows of a range, (K, R).
    """

    _foretells = False  # pools answer in its place

    def __init__(self, feature_map: FeatureMap, **options: Any) -> None:
        super().__init__(feature_map, **options)
        if self.covariance != "shared":
            raise ValueError(f"ranges are for experts that share a covariance; got covariance={self.covariance!r}")
        self.ranges = Ranges()
        self.knows = np.zeros((0, 0), dtype=bool)

    def adapt(self, rows: Tensor, known: Tensor | None = None) -> bool:
        """Begins another range where the latest rows (n, d), on the host, have left those known; returns whether."""
        if not isinstance(self._gaussians, SharedGaussians) or not self.ranges.is_left(rows, known):
            return False
        self.ranges.add(rows)
        self.knows = np.pad(self.knows, ((0, 0), (0, 1)))
        self._gaussians.forget_rows()
        self.forget_features()
        return True

    def evidence(self, samples: Samples, y: Tensor | None) -> Evidence:
        found = super().evidence(samples, y)
        if len(self.ranges) > 1:
            found.log_known[self._is_unknown(samples)] += _LOG_UNSEEN_RANGE
        return found

    def log_density(self, samples: Samples, *, exact: bool = True) -> Tensor:
        log_density = super().log_density(samples, exact=exact)
        if len(self.ranges) < 2:
            return log_density
        return log_density + _LOG_UNSEEN_RANGE * self._is_unknown(samples).to(log_density)

    def mixed(self, samples: Samples, *, exact: bool = True) -> tuple[Tensor, Tensor] | None:
        return super().mixed(samples, exact=exact) if len(self.ranges) < 2 else None

    def provisional(self, samples: Samples, y: Tensor | None, *, exact: bool = True) -> Provisional:
        model = super().provisional(samples, y, exact=exact)
        return model if len(self.ranges) < 2 else _RangedProvisional(model, self, samples)

    def range_of(self, samples: Samples) -> Tensor:
        """Returns the range that each of B samples belongs to, (B,), on the host."""
        ranges: Tensor = samples.derive("range", self._frozen, lambda chunk: self.ranges.of(chunk.x).cpu())
        return ranges

    def forget_features(self) -> None:
        """Has features computed anew: rows may belong to other ranges, or ranges have other units."""
        self._frozen, self._provisional = object(), None

    def _is_unknown(self, samples: Samples) -> Tensor:
        """Returns which experts have not learned the range of each sample, (B, K) bool."""
        return torch.from_numpy(~self.knows[:, self.range_of(samples).numpy()].T)

    def _features_of_chunk(self, chunk: Samples) -> Tensor:
        if chunk.parts:
            return super()._features_of_chunk(chunk)
        return self.feature_map(self.ranges.in_first(chunk.x))

    def _make_expert(self, samples: Samples, y: Tensor) -> None:
        if not len(self.ranges):
            self.ranges.begin(samples.x)
        shares = torch.bincount(self.range_of(samples), minlength=len(self.ranges)) / len(samples)
        most = int(shares.argmax())
        if most and not self.knows[:, most].any():  # its units were those of a few rows, and nobody uses them yet
            self.ranges.refit(most, samples.x[(self.range_of(samples) == most).to(samples.x.device)])
            self.forget_features()
        super()._make_expert(samples, y)
        known = shares.numpy() > _SHARE
        self.knows = np.append(self.knows.reshape(-1, len(known)), known[None], axis=0)

    def _merge(self, k: int, into: int) -> None:
        super()._merge(k, into)
        self.knows[into] |= self.knows[k]
        self.knows = np.delete(self.knows, k, axis=0)

    # Merging: experts of different ranges stay apart

    def _append(self, other: Self) -> None:
        if not torch.equal(self.ranges.shifts[:1], other.ranges.shifts[:1]):
            raise ValueError("models that are merged measure rows in the same units; these began with different rows")
        n, more = len(self.ranges), slice(1, None)
        self.ranges.extend(other.ranges)
        mine = np.pad(self.knows, ((0, 0), (0, len(self.ranges) - n)))
        theirs = np.zeros((len(other.knows), len(self.ranges)), dtype=bool)
        theirs[:, 0], theirs[:, n:] = other.knows[:, 0], other.knows[:, more]
        super()._append(other)
        self.knows = np.append(mine, theirs, axis=0)
        self.forget_features()

    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        super().unite(groups)
        self.knows = np.stack([self.knows[list(group)].any(axis=0) for group in groups])

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        return super().explained(levels, sources) * self._share_ranges()

    def affinity(self) -> Tensor | None:
        alike = super().affinity()
        return None if alike is None else alike + 2 * _LOG_UNSEEN_RANGE**2 * (self._share_ranges() - 1)

    def _share_ranges(self) -> Tensor:
        """Returns whether two experts have learned rows of the same range, (K, K), 1 or 0."""
        knows = torch.from_numpy(self.knows).double()
        return ((knows @ knows.T) > 0).double()

    def _n_own_numbers(self) -> int:
        return super()._n_own_numbers() + self.ranges.n_numbers_kept + self.knows.size

    def _own_representation(self) -> State:
        first = {name: kept[:1] for name, kept in self.ranges.state_dict().items()}  # others may come anywhere
        return {"ranges": first, "knows": torch.zeros(0, len(first["shifts"]), dtype=torch.bool)}

    def _own_state(self) -> State:
        known = torch.from_numpy(self.knows.copy())
        return {**super()._own_state(), "ranges": self.ranges.state_dict(), "knows": known}

    def _load_own_state(self, state: State) -> None:
        super()._load_own_state(state)
        sizes = expect(state, {"ranges": part(), "knows": tensor("experts", "ranges", dtype=torch.bool)})
        self.ranges.load_state_dict(state["ranges"])
        if sizes["experts"] != self.labels.n_experts or sizes["ranges"] != len(self.ranges):
            raise StateError(f"'knows' must be of {self.labels.n_experts} experts and {len(self.ranges)} ranges")
        self.knows = state["knows"].cpu().numpy().copy()
        self.forget_features()


class _RangedProvisional:
    """Samples that wait, which say nothing of ranges that hardly any of them is of."""

    def __init__(self, model: Provisional, bank: RangedGaussianBank, memory: Samples) -> None:
        self._model, self._bank = model, bank
        self._known = torch.bincount(bank.range_of(memory), minlength=len(bank.ranges)) > _SHARE * len(memory)

    def log_density(self, samples: Samples) -> Tensor:
        log_density = self._model.log_density(samples)
        unknown = ~self._known[self._bank.range_of(samples)]
        return log_density + _LOG_UNSEEN_RANGE * unknown.to(log_density)

    def predictive(self, samples: Samples) -> Tensor:
        return self._model.predictive(samples)
