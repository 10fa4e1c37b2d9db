"""Steps at quantiles, with products of pairs: what rules made of thresholds are linear in."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.features.feature_map import FeatureMap
from cndpm.experts.features.vectors import IdentityFeatures
from cndpm.state import State, expect, integers, tensor

__all__ = ["StepFeatures"]

_MOST_CUTS = 9
_CUTS_IN_ALL = 100

_LEAST_PRIOR = 5.0
"""Samples that the prior of the regression on steps alone counts for; a tenth of its columns where these are many."""

_LEAST_VARIANCE = 0.01
"""Products that hardly vary are taken to vary so much."""


_UP, _DOWN = np.float32(1), np.float32(-1)


class StepFeatures(FeatureMap):
    """The standardised sample, whether each coordinate lies above quantiles of it (+1 or -1), and products of pairs.

    Cuts are deciles of the first memory, fewer where there are many coordinates, and lie between the values where a
    coordinate takes few. Pairs are of steps of different coordinates, as many as there is room for: those that agree
    most with what steps alone leave of the targets, or any where there are no targets.

    Args:
        n_features: Steps and products in all, the sample itself not counted; more only where there are more steps.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> features = StepFeatures(20)
        >>> features.fit(torch.tensor([[0.0, 5.0], [1.0, 6.0], [0.0, 6.0]]), generator=generator)
        >>> features(torch.tensor([[1.0, 5.0]]))[:, 2:]
        tensor([[ 1., -1., -1.]])
    """

    def __init__(self, n_features: int = 200) -> None:
        if n_features < 1:
            raise ValueError(f"n_features must be positive; got {n_features}")
        self._room = n_features
        self._standardised = IdentityFeatures()
        self._columns = self._left = self._right = torch.empty(0, dtype=torch.int64)
        self._cuts = torch.empty(0)

    @property
    def fitted(self) -> bool:
        return self._standardised.fitted

    @property
    def n_features(self) -> int:
        return self._standardised.n_features + len(self._cuts) + len(self._left)

    @property
    def n_inputs(self) -> int:
        """Values of one sample."""
        return self._standardised.n_features

    def fit(
        self,
        x: Tensor,
        *,
        generator: torch.Generator,
        labels: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> None:
        """Chooses cuts and pairs.

        Args:
            x: The first samples, (M, ...).
            generator: Of pairs that are chosen at random.
            labels: Class indices (M,), where there are any: the targets, one of 0 and 1 for each class.
            targets: Values (M, o) that pairs should tell.
        """
        self._standardised.fit(x, generator=generator)
        rows = x.flatten(1).float()
        n_cuts = min(_MOST_CUTS, max(1, _CUTS_IN_ALL // rows.shape[1]))
        cuts = [_cuts(column, n_cuts) for column in rows.T]
        self._cuts = torch.cat(cuts)
        self._columns = torch.repeat_interleave(torch.arange(len(cuts)), torch.tensor([len(part) for part in cuts]))
        left, right = torch.triu_indices(len(self._cuts), len(self._cuts), offset=1)
        apart = self._columns[left] != self._columns[right]
        self._left, self._right = left[apart], right[apart]
        order = torch.randperm(len(self._left), generator=generator)
        if targets is None and labels is not None:
            targets = torch.nn.functional.one_hot(labels)
        if targets is not None and len(order):
            order = order[self._agreement(x, rows, targets)[order].argsort(descending=True, stable=True)]
        chosen = order[: max(0, self._room - len(self._cuts))]
        self._left, self._right = self._left[chosen], self._right[chosen]

    def _agreement(self, x: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
        """Returns the squared correlations of every pair's product with what steps alone leave of targets, (pairs,)."""
        steps = self._signs(rows).double()
        alone = torch.cat([self._standardised(x).double(), steps], dim=1)
        alone, values = (part - part.mean(dim=0) for part in (alone, targets.double()))
        precision = alone.T @ alone + torch.eye(alone.shape[1]).double() * max(_LEAST_PRIOR, alone.shape[1] / 10)
        left_over = values - alone @ torch.linalg.solve(precision, alone.T @ values)
        # sums over samples of product times remainder, and of products, without the products themselves
        covered = torch.stack([steps.T @ (column[:, None] * steps) for column in left_over.T])  # (o, steps, steps)
        variance = 1 - (steps.T @ steps / len(rows)).square()
        return (covered.square().sum(dim=0) / variance.clamp_min(_LEAST_VARIANCE))[self._left, self._right]

    def __call__(self, x: Tensor) -> Tensor:
        self._require_fitted()
        return torch.cat([self._standardised(x), self.steps(x.flatten(1).float())], dim=1)

    def steps(self, rows: Tensor) -> Tensor:
        """Returns steps and their products alone, (n, n_steps), of rows (n, d)."""
        if rows.device.type != "cpu":
            steps = self._signs(rows)
            return torch.cat([steps, steps[:, self._left] * steps[:, self._right]], dim=1)
        columns, cuts, left, right = (part.numpy() for part in (self._columns, self._cuts, self._left, self._right))
        signs = np.where(rows.numpy().take(columns, axis=1) > cuts, _UP, _DOWN)  # arrays are quicker for a few rows
        return torch.from_numpy(np.concatenate([signs, signs.take(left, axis=1) * signs.take(right, axis=1)], axis=1))

    def _signs(self, rows: Tensor) -> Tensor:
        """Returns whether rows (n, d) lie above each cut, (n, steps), as 1 or -1."""
        return (rows[:, self._columns] > self._cuts).float().mul_(2).sub_(1)

    @property
    def n_numbers_kept(self) -> int:
        """Cuts, pairs and the standardisation."""
        return 2 * len(self._cuts) + 2 * len(self._left) + self._standardised.n_numbers_kept

    def state_dict(self) -> State:
        """Returns cuts, pairs and the standardisation."""
        return {
            "standardised": self._standardised.state_dict(),
            "columns": self._columns.clone(),
            "cuts": self._cuts.clone(),
            "left": self._left.clone(),
            "right": self._right.clone(),
        }

    def load_state_dict(self, state: State) -> None:
        expect(state, {"columns": integers("steps", low=0), "cuts": tensor("steps", dtype=torch.float32)})
        expect(state, {side: integers("pairs", low=0, below=max(1, len(state["cuts"]))) for side in ("left", "right")})
        self._standardised.load_state_dict(state["standardised"])
        if self._standardised.fitted:
            expect(state, {"columns": integers("steps", low=0, below=self._standardised.n_features)})
        self._columns, self._cuts = state["columns"].clone(), state["cuts"].clone()
        self._left, self._right = state["left"].clone(), state["right"].clone()


def _cuts(column: Tensor, n: int) -> Tensor:
    """Returns at most n values between which a coordinate (M,) is told apart; none where it does not vary."""
    values = torch.unique(column)
    if len(values) <= n + 1:
        between: Tensor = (values[1:] + values[:-1]) / 2
        return between
    cuts: Tensor = torch.unique(torch.quantile(column, torch.arange(1, n + 1) / (n + 1)))
    return cuts
