"""Representations of rows side by side: the row itself, Fourier features beside it, steps at quantiles beside it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cndpm.experts.features import FourierFeatures, IdentityFeatures, StepFeatures
from cndpm.experts.features.ranges import column_log_density
from cndpm.model.context.recent_rows import usual_range
from cndpm.state import State, StateError, expect, part, tensor

__all__ = ["Representations"]


class Representations:
    """Computes three representations at once; values are kept to the range that they were fitted for.

    Columns are waves, the standardised row, steps: the second and the third representation both have the first in
    them, and each is a stretch of columns.

    Args:
        n_features: Random features, and steps with their products.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> representations = Representations(20)
        >>> representations.fit(torch.randn(100, 3, generator=generator), torch.arange(100) % 2, generator)
        >>> [part.shape[1] for part in representations.cut(representations(torch.randn(5, 3)))]
        [3, 23, 30]
    """

    def __init__(self, n_features: int) -> None:
        self._row, self._waves, self._steps = IdentityFeatures(), FourierFeatures(n_features), StepFeatures(n_features)
        self._low = self._high = torch.zeros(0)

    @property
    def sizes(self) -> list[int]:
        """Columns of every representation."""
        d = self._row.n_features
        return [d, self._waves.n_features + d, self._steps.n_features]

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of the maps and of the range."""
        maps = sum(one.n_numbers_kept for one in (self._row, self._waves, self._steps)) if self._row.fitted else 0
        return maps + 2 * self._low.numel()

    def fit(self, rows: Tensor, targets: Tensor, generator: torch.Generator) -> None:
        """Fits the maps and the range.

        Args:
            rows: (n, d).
            targets: Class indices (n,) or values (n, o), which products of steps are chosen for.
            generator: Of random choices.
        """
        self._low, self._high = usual_range(rows)
        rows = rows.clamp(self._low, self._high)
        for feature_map in (self._row, self._waves):
            feature_map.fit(rows, generator=generator)
        values = targets if targets.is_floating_point() else torch.nn.functional.one_hot(targets)
        self._steps.fit(rows, generator=generator, targets=values)

    def outside(self, rows: Tensor) -> Tensor:
        """Returns which rows (n, d) lie outside the range, (n,) bool."""
        return ((rows < self._low) | (rows > self._high)).any(dim=1)

    def far_outside(self, rows: Tensor) -> Tensor:
        """Returns which rows (n, d) lie outside a range three times as wide in a quarter of their columns, (n,) bool.

        At the edge of the range, where they are kept, they would weigh as much as a hundred others.
        """
        beyond = self._high - self._low
        return ((rows < self._low - beyond) | (rows > self._high + beyond)).float().mean(dim=1) > 0.25

    @property
    def log_volume(self) -> float:
        """Log volume of the range."""
        return float((self._high.double() - self._low.double()).clamp_min(1e-30).log().sum())

    def log_density(self, rows: Tensor) -> Tensor:
        """Returns the log density of rows (n, d) in the range, (n,), up to a constant; columns are independent."""
        return column_log_density(rows, self._row.shift[None], self._row.scale[None])[0]

    def __call__(self, rows: Tensor) -> Tensor:
        """Returns all columns, (n, w) double, of rows (n, d)."""
        rows = rows.clamp(self._low, self._high)
        standardised = self._row(rows)
        return torch.cat([self._waves.waves(standardised), standardised, self._steps.steps(rows)], dim=1).double()

    def cut(self, columns: Tensor) -> list[Tensor]:
        """Returns every representation, (n, d) each, of all columns (n, w)."""
        d, n = self._row.n_features, self._waves.n_features
        return [columns[:, n : n + d], columns[:, : n + d], columns[:, n:]]

    def state_dict(self) -> State:
        """Returns maps and range."""
        maps = {"row": self._row, "waves": self._waves, "steps": self._steps}
        range_ = {"low": self._low.clone(), "high": self._high.clone()}
        return {name: one.state_dict() for name, one in maps.items()} | range_

    def load_state_dict(self, state: State) -> None:
        """Restores them to the bit; a state of another form may be taken in part before it is refused."""
        form = tensor("d", dtype=torch.float32)
        maps = ("row", "waves", "steps")
        d = expect(state, {"low": form, "high": form, **dict.fromkeys(maps, part())})["d"]
        for name in maps:
            getattr(self, f"_{name}").load_state_dict(_on_host(state[name]))
        if not all(one.fitted for one in (self._row, self._waves, self._steps)):
            raise StateError("'row', 'waves' and 'steps' must be fitted")
        if self._row.n_features != d or self._steps.n_inputs != d or self._waves.n_inputs != d:
            raise StateError(f"'row', 'waves' and 'steps' must be of {d} columns, as 'low' is")
        self._low, self._high = state["low"].cpu().clone(), state["high"].cpu().clone()


def _on_host(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: _on_host(value) for name, value in state.items()}
    return state.cpu() if isinstance(state, Tensor) else state
