"""When representations are fitted: soon after a range was begun, and when rows leave it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.state import State, expect, tensor, whole

__all__ = ["WATCHED", "Schedule"]

_FITTED_AT = (20, 100, 500)
"""Rows of a range after which representations are fitted, the later times anew."""

WATCHED = 100
"""The latest rows that tell whether the range was left."""

_MOST_OUTSIDE = 0.3
"""The share of them outside the range at which representations are fitted anew."""

_SOME_OUTSIDE = 0.15
"""The share of them in other ranges below which these are taken for rows of this one that lie there."""

_LATEST = 20


class Schedule:
    """Counts fits, and rows outside the range.

    Attributes:
        n_fits: Fits since the range was begun.
        begun_at: Rows of the stream before it.

    Example:
        >>> schedule = Schedule()
        >>> [schedule.is_due(n) for n in (19, 20)]
        [False, True]
        >>> schedule.fitted()
        >>> [schedule.is_due(n) for n in (20, 99, 100)]
        [False, False, True]
    """

    def __init__(self) -> None:
        self.n_fits = self.begun_at = 0
        self._outside = np.zeros(0)

    def is_due(self, n_seen: int) -> bool:
        """Returns whether representations are to be fitted, `n_seen` rows after the stream began."""
        return self.n_fits < len(_FITTED_AT) and n_seen - self.begun_at >= _FITTED_AT[self.n_fits]

    def note(self, outside: NDArray[np.bool_]) -> None:
        """Takes note of which of B rows lie outside the range, or in one that was left, (B,)."""
        self._outside = np.append(self._outside, outside.astype(np.float64))[-WATCHED:]

    @property
    def is_left(self) -> bool:
        """Whether so many of the latest rows lie outside that the range was left."""
        return len(self._outside) == WATCHED and bool(self._outside.sum() > _MOST_OUTSIDE * WATCHED)

    @property
    def n_leaving(self) -> int:
        """The latest rows that tell which range they came to."""
        return int(_MOST_OUTSIDE * WATCHED)

    @property
    def are_some_outside(self) -> bool:
        """Whether more rows lie in other ranges than a few of this one would."""
        return bool(self._outside.sum() > _SOME_OUTSIDE * len(self._outside))

    @property
    def is_settled(self) -> bool:
        """Whether most of the very latest rows lie inside."""
        return bool(self._outside[-_LATEST:].sum() < 0.5 * len(self._outside[-_LATEST:]))

    def begin(self, n_seen: int, n: int) -> None:
        """Begins a range with the latest n rows, to which the first fit is due.

        Args:
            n_seen: Rows since the stream began.
            n: Those of this range.
        """
        self.begun_at, self.n_fits = n_seen - n, sum(n >= due for due in _FITTED_AT[1:])

    def fitted(self) -> None:
        """Counts a fit."""
        self.n_fits, self._outside = self.n_fits + 1, np.zeros(0)

    def come_back(self) -> None:
        """Has a range that was left before be fitted no more."""
        self.n_fits, self._outside = len(_FITTED_AT), np.zeros(0)

    def state_dict(self) -> State:
        """Returns everything."""
        return {"n_fits": self.n_fits, "begun_at": self.begun_at, "outside": torch.from_numpy(self._outside.copy())}

    def load_state_dict(self, state: State) -> None:
        """Restores it to the bit."""
        expect(state, {"n_fits": whole(), "begun_at": whole(), "outside": tensor("watched")})
        self.n_fits, self.begun_at = state["n_fits"], state["begun_at"]
        self._outside = state["outside"].cpu().numpy().copy()
