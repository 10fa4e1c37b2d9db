"""Sets extreme rows aside: finite values so far beyond all others that one of them would move everything learned.

The range is measured on the first rows and then frozen, so that a batch in a block that holds nothing extreme is not
looked at again. Rows that are extreme together are a change of units and are let in.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.model.inputs import LARGEST
from cndpm.model.memory import SampleBatch
from cndpm.state import Keeps, flag, listed, tensor, whole

_MEASURED_ON = 200
"""Rows on which the range is measured."""

_SPREADS = 1000.0
"""Spreads beyond the middle at which a value is extreme: neither noise nor drift of a column reaches it in a step."""

_LATELY = 20
"""Judged rows of which more than half must be extreme to be let in."""

_LARGE = 1e12
"""Values beyond which squares, sums of them and products are not safe in single precision."""

_FEWEST = 5
"""Rows that tell a median."""


class Extremes(Keeps):
    """Judges rows, of which `n_set_aside` were not let in; `is_needed` tells whether the latest block needs it.

    Example:
        >>> extremes, x = Extremes(), torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
        >>> bool(extremes.judge(x).any())
        False
        >>> extremes.judge(torch.tensor([[0.0, 1e10], [0.5, 0.5]])).tolist(), extremes.n_set_aside
        ([True, False], 1)
    """

    kept: ClassVar = {
        "n": whole(),
        "mean": tensor("d"),
        "squares": tensor("d"),
        "n_set_aside": whole(),
        "lately": listed(flag()),
    }

    def __init__(self) -> None:
        self.n_set_aside, self.is_needed = 0, True
        self._n, self._mean, self._squares = 0, torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.float64)
        self._lately: list[bool] = []
        self._frozen: tuple[Tensor, NDArray[np.float64], NDArray[np.float64]] | None = None

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of the range."""
        return self._mean.numel() + self._squares.numel()

    def look(self, x: Tensor) -> Tensor:
        """Takes note whether a block (n, d) holds anything that must be judged; returns it with finite squares.

        What is computed of many rows at once multiplies those set aside by zero, which infinity survives.
        """
        rows = x.cpu().double()
        if self._n >= _MEASURED_ON and self._is_ordinary(rows.numpy()):
            self.is_needed = False
            return x
        middle, reach = self._range() if self._n >= _MEASURED_ON else _range_of(rows)
        is_beyond = bool((x.abs() > LARGEST).any())
        self.is_needed = self._n < _MEASURED_ON or is_beyond or bool(_are_extreme(rows, middle, reach).any())
        if not self.is_needed or not bool((x.abs() > _LARGE).any()):
            return x
        farthest = torch.maximum(2 * reach, (_SPREADS * reach).clamp_max(_LARGE))  # still extreme
        return x.clamp((middle - farthest).to(x), (middle + farthest).to(x))

    def _is_ordinary(self, rows: NDArray[np.float64]) -> bool:
        """Returns whether no value (n, d) is extreme; by arrays, which are quicker with a few numbers."""
        if self._frozen is None or self._frozen[0] is not self._squares:
            middle, reach = self._range()
            self._frozen = (self._squares, middle.numpy(), reach.numpy())
        _, middle_, reach_ = self._frozen
        is_near: bool = bool((np.abs(rows - middle_) <= reach_).all())
        return is_near and bool(np.abs(rows).max() <= LARGEST)

    def admit(self, batch: SampleBatch) -> SampleBatch | None:
        """Returns a batch without its extreme rows; None where all are extreme."""
        is_extreme = self.judge(batch.samples.x)
        if not is_extreme.any():
            return batch
        return None if is_extreme.all() else batch.rows(~is_extreme)

    def judge(self, x: Tensor) -> Tensor:
        """Returns which rows of a batch (B, d) are extreme, (B,) bool, on the host."""
        rows = x.cpu().double()
        # The first batch is judged by itself, later ones by all rows let in before.
        middle, reach = _range_of(rows) if self._n < _FEWEST else self._range()
        is_beyond, is_extreme = (rows.abs() > LARGEST).any(dim=1), _are_extreme(rows, middle, reach)
        self._lately = (self._lately + (is_extreme & ~is_beyond).tolist())[-_LATELY:]
        if sum(self._lately) > _LATELY // 2:
            self._n, self._lately = 0, []
            is_extreme = torch.zeros_like(is_extreme)
        is_extreme |= is_beyond  # such values cannot be learned, whatever came lately
        if self._n < _MEASURED_ON:
            self._measure(rows[~is_extreme])
        self.n_set_aside += int(is_extreme.sum())
        return is_extreme

    def _measure(self, rows: Tensor) -> None:
        """Adds rows to those that the range is measured on."""
        if not self._n and len(rows):
            self._mean, self._squares = torch.zeros_like(rows[0]), torch.zeros_like(rows[0])
        for row in rows:  # Welford's recurrence, so that it matters little how rows come in batches
            self._n += 1
            off = row - self._mean
            self._mean = self._mean + off / self._n
            self._squares = self._squares + off * (row - self._mean)

    def _range(self) -> tuple[Tensor, Tensor]:
        return self._mean, _reach((self._squares / max(1, self._n - 1)).sqrt())


def _range_of(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the median of every column and how far from it values are not extreme yet, two of (d,)."""
    middle = rows.median(dim=0).values
    if len(rows) < _FEWEST:
        return middle, torch.full_like(middle, torch.inf)
    return middle, _reach((rows - middle).abs().quantile(0.75, dim=0))


def _reach(spread: Tensor) -> Tensor:
    """Returns how far from the middle of a column values may lie, (d,).

    A column that hardly varies is measured by the others: what is new in it may be large beside nothing.
    """
    varying = spread[spread > 0]
    usual = varying.median() if len(varying) else spread.new_tensor(torch.inf)
    return _SPREADS * torch.maximum(spread, usual)


def _are_extreme(rows: Tensor, middle: Tensor, reach: Tensor) -> Tensor:
    """Returns which rows (B, d) lie beyond the reach in any column, (B,) bool."""
    return ((rows - middle).abs() > reach).any(dim=1)
