"""Steps at quantiles, with products of pairs: what rules made of thresholds are linear in."""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.experts.features.feature_map import FeatureMap
from cndpm.experts.features.vectors import IdentityFeatures
from cndpm.state import State, expect, integers, tensor

__all__ = ["StepFeatures"]

_MOST_CUTS = 9
_CUTS_IN_ALL = 100


class StepFeatures(FeatureMap):
    """The standardised sample, whether each coordinate lies above quantiles of it (+1 or -1), and products of pairs.

    Cuts are deciles of the first memory, fewer where there are many coordinates, and lie between the values where a
    coordinate takes few. Pairs of steps of different coordinates are drawn at random as far as there is room.

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

    def fit(self, x: Tensor, *, generator: torch.Generator, labels: Tensor | None = None) -> None:
        self._standardised.fit(x, generator=generator)
        rows = x.flatten(1).float()
        n_cuts = min(_MOST_CUTS, max(1, _CUTS_IN_ALL // rows.shape[1]))
        cuts = [_cuts(column, n_cuts) for column in rows.T]
        self._cuts = torch.cat(cuts)
        self._columns = torch.repeat_interleave(torch.arange(len(cuts)), torch.tensor([len(part) for part in cuts]))
        left, right = torch.triu_indices(len(self._cuts), len(self._cuts), offset=1)
        apart = self._columns[left] != self._columns[right]
        chosen = torch.randperm(int(apart.sum()), generator=generator)[: max(0, self._room - len(self._cuts))]
        self._left, self._right = left[apart][chosen], right[apart][chosen]

    def __call__(self, x: Tensor) -> Tensor:
        self._require_fitted()
        return torch.cat([self._standardised(x), self.steps(x.flatten(1).float())], dim=1)

    def steps(self, rows: Tensor) -> Tensor:
        """Returns steps and their products alone, (n, n_steps), of rows (n, d)."""
        steps = (rows[:, self._columns] > self._cuts).float().mul_(2).sub_(1)
        return torch.cat([steps, steps[:, self._left] * steps[:, self._right]], dim=1)

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
