"""Ranges of rows: where the columns lie and how wide they spread, for each stretch of a stream whose scale is its own.

A feature map is fitted to one range, and sees little of rows that spread three times as wide. Such rows get units of
their own, in which they look as those do that the map was fitted to.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from cndpm.state import Keeps, State, StateError, tensor

MOST_RANGES = 8
"""Ranges kept; rows of yet another belong to the one that is nearest."""

N_LATEST = 50
"""Rows that tell whether a range was left."""

N_FIRST = 25
"""The latest of them, which begin another."""

_WIDER = 2.0
"""How many times as wide as in any range known rows must spread: half of their columns, and from their neighbours."""

_TRIMMED = 0.1
"""The share of the largest steps from one row to the next that are left out: rows that jump to another place."""

_EXPECTED = 0.93
"""The mean of the other steps of normal rows, in deviations."""

_DEGREES = 30.0
"""Degrees of freedom of the densities by which rows are given to ranges, so that one column does not decide."""


class Ranges(Keeps):
    """Means and deviations of the columns, (R, d) each; the first are those that the features were fitted to.

    The deviations, `scales`, are 1 where a column does not vary; `spacings` are how far a row is from the nearest of
    fifty, in deviations, (R,).
    """

    kept: ClassVar = {
        "shifts": tensor("ranges", "d", dtype=torch.float32),
        "scales": tensor("ranges", "d", dtype=torch.float32),
        "spacings": tensor("ranges", dtype=torch.float32),
    }

    def __init__(self) -> None:
        self.shifts = self.scales = torch.zeros(0, 0)
        self.spacings = torch.zeros(0)

    def __len__(self) -> int:
        return self.shifts.shape[0]

    @property
    def n_numbers_kept(self) -> int:
        """Means, deviations and spacings."""
        return self.shifts.numel() + self.scales.numel() + self.spacings.numel()

    def begin(self, rows: Tensor) -> None:
        """Takes the range of rows (n, d) for the first one."""
        self.shifts, self.scales, self.spacings = (part[None] for part in _measures(rows))

    def is_left(self, rows: Tensor, known: Tensor | None = None) -> bool:
        """Returns whether the latest of rows (n, d) spread much wider than the range that is theirs.

        Steps from one row to the next tell, not deviations, so that a new place is no new range; and distances to the
        nearest row, so that several places in turn are none. A range may have begun with rows of one corner: those
        `known` (m, d) since then tell how wide it is.
        """
        if not len(self) or len(self) >= MOST_RANGES or len(rows) < N_LATEST:
            return False
        latest = rows[-N_LATEST:].to(self.shifts)
        steps = latest.diff(dim=0).abs().sort(dim=0).values[: int((1 - _TRIMMED) * N_LATEST)].mean(dim=0)
        nearest = int(self._log_density(latest).sum(dim=1).argmax())
        scale = self.scales[nearest]
        if float((steps / (_EXPECTED * scale)).median()) <= _WIDER:  # nor is it more beside a scale that is larger
            return False
        if known is not None and len(known) >= N_LATEST:
            scale = torch.maximum(scale, known.to(scale).std(dim=0, correction=0))
            if float((steps / (_EXPECTED * scale)).median()) <= _WIDER:
                return False
        return float(_spacing(latest / scale)) > _WIDER * float(self.spacings[nearest])

    def add(self, rows: Tensor) -> None:
        """Begins another range with the latest of rows (n, d)."""
        self._append(*(part[None] for part in _measures(rows[-N_FIRST:].to(self.shifts))))

    def extend(self, other: Ranges) -> None:
        """Adds the ranges of another stream that began with the same one."""
        self._append(other.shifts[1:], other.scales[1:], other.spacings[1:])

    def _append(self, shifts: Tensor, scales: Tensor, spacings: Tensor) -> None:
        self.shifts, self.scales = torch.cat([self.shifts, shifts]), torch.cat([self.scales, scales])
        self.spacings = torch.cat([self.spacings, spacings])

    def refit(self, r: int, rows: Tensor) -> None:
        """Fits range r anew to rows of it, (n, d)."""
        self.shifts, self.scales, self.spacings = self.shifts.clone(), self.scales.clone(), self.spacings.clone()
        self.shifts[r], self.scales[r], self.spacings[r] = _measures(rows)

    def of(self, rows: Tensor) -> Tensor:
        """Returns the range that each of rows (n, d) belongs to, (n,)."""
        if len(self) < 2:
            return torch.zeros(len(rows), dtype=torch.long, device=rows.device)
        return self._log_density(rows.to(self.shifts)).argmax(dim=0)

    def in_first(self, rows: Tensor) -> Tensor:
        """Returns rows (n, d) in the units of the first range; those of it as they are."""
        if len(self) < 2:
            return rows
        ranges = self.of(rows)
        moved = (rows - self.shifts[ranges]) / self.scales[ranges] * self.scales[0] + self.shifts[0]
        return torch.where((ranges == 0)[:, None], rows, moved)

    def _log_density(self, rows: Tensor) -> Tensor:
        return column_log_density(rows, self.shifts, self.scales)

    def _admit(self, state: State) -> None:
        if not (state["scales"] > 0).all():
            raise StateError("'scales' must hold positive numbers")


def column_log_density(rows: Tensor, shifts: Tensor, scales: Tensor) -> Tensor:
    """Returns the log density of rows (n, d) in every range, (R, n), up to a constant; columns are independent."""
    z = (rows - shifts[:, None]) / scales[:, None]
    kernel = torch.log1p(z.square() / _DEGREES).sum(dim=2) * (_DEGREES + 1) / 2
    return -kernel - scales.log().sum(dim=1, keepdim=True)


def _measures(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns means and deviations of the columns of rows (n, d), (d,) each, and the spacing of the rows, ()."""
    values = rows.double()
    deviation = values.std(dim=0, correction=0)
    scale = torch.where(deviation > 1e-6, deviation, 1.0)
    return values.mean(dim=0).float(), scale.float(), _spacing(values / scale).float()


def _spacing(rows: Tensor) -> Tensor:
    """Returns the median distance of rows (n, d) to the nearest, of fifty of them at most."""
    some = rows[:: max(1, len(rows) // N_LATEST)][:N_LATEST].double()
    apart = torch.cdist(some, some).fill_diagonal_(torch.inf)
    return apart.amin(dim=1).median() if len(some) > 1 else some.new_zeros(())
