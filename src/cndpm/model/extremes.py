"""Checks what a learner is given, and sets extreme rows aside.

These have finite values so far beyond all others that one of them would move everything learned.
The range is measured on the first rows and then frozen, so that a batch in a block that holds nothing extreme is not
looked at again. Rows that are extreme together are a change of units and are let in.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
        rows, self.is_needed = x.cpu(), self._n < _MEASURED_ON
        if not self.is_needed and self._is_ordinary(rows.numpy()):
            return x
        rows = rows.double()
        is_large, is_beyond = (bool((x.abs() > most).any()) for most in (_LARGE, LARGEST))
        middle, reach = _range_of(rows) if self.is_needed and is_large else self._range()
        self.is_needed = self.is_needed or is_beyond or bool(_are_extreme(rows, middle, reach).any())
        if not self.is_needed or not is_large:
            return x
        farthest = torch.maximum(2 * reach, (_SPREADS * reach).clamp_max(_LARGE))  # still extreme
        return x.clamp((middle - farthest).to(x), (middle + farthest).to(x))

    def _is_ordinary(self, rows: NDArray[np.float32]) -> bool:
        """Returns whether no value (n, d) is extreme or huge; by arrays, which are quicker with a few numbers."""
        if self._frozen is None or self._frozen[0] is not self._squares:
            middle, reach = (part.numpy() for part in self._range())
            self._frozen = (self._squares, middle, np.minimum(reach, LARGEST / 2 - np.abs(middle)))
        return bool((np.abs(rows - self._frozen[1]) <= self._frozen[2]).all())

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
    return middle, _reach(torch.from_numpy(np.quantile((rows - middle).abs().numpy(), 0.75, axis=0)))


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


LARGEST = 1e15
"""Values beyond it are not learned: sums of their squares, in float32 where experts route, would lose all else."""

BEYOND = 2 * LARGEST
"""Stands for every value beyond the largest in rows, which are answered for, and set aside when they are learned."""

_FEW = 5
"""Rows that may all be beyond: a single one is an accident, many are a column that must be scaled."""

Target = Literal["classes", "values", "none"]
"""Kinds of y: class indices, real values, or none."""


def admit_x(x: Tensor, input_shape: tuple[int, ...]) -> Tensor:
    """Returns inputs (batch, *input_shape) as float32; in rows, values too large to be learned are +- `BEYOND`.

    TypeError, ValueError: they are no finite real numbers of this shape, or most are too large; the message says what
    to do.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a torch tensor; got {type(x).__name__}. Use torch.as_tensor(x).")
    if x.dim() == 0 or x.shape[1:] != input_shape:
        wanted = ", ".join(map(str, ("batch", *input_shape)))
        raise ValueError(f"x must have shape ({wanted}); got {tuple(x.shape)}")
    if x.shape[0] == 0:
        raise ValueError("x has no samples: a batch needs at least one")
    if x.dtype is torch.bool or x.is_complex():
        raise TypeError(f"x must hold real numbers; got {x.dtype}")
    x = x if x.dtype is torch.float32 and not x.requires_grad else x.detach().float()
    if x.is_cpu and np.maximum.reduce(np.abs(x.numpy()), axis=None) <= LARGEST:  # quicker than by tensors for a row
        return x
    if len(input_shape) == 1 and _few_are_beyond(x):
        return x.clamp(-BEYOND, BEYOND)
    _check_values(x, "x", "Impute or drop such rows.")
    return x


def _few_are_beyond(rows: Tensor) -> bool:
    """Returns whether all values (n, d) are finite and some of them are too large, in few of the rows."""
    largest = float(rows.abs().max())
    if not LARGEST < largest < torch.inf:  # nor if it is NaN
        return False
    n_beyond = int((rows.abs() > LARGEST).any(dim=1).sum())
    return n_beyond < _FEW or 2 * n_beyond <= len(rows)


def admit_targets(y: Tensor | None, n: int, target: Target, n_outputs: int, n_classes: int | None) -> Tensor | None:
    """Returns targets on the host: class indices int64 (n,), values float32 (n, n_outputs), or None.

    ValueError: y is something else; the message says what to do.
    """
    if target == "none":
        if y is not None:
            raise ValueError("this learner was made for unlabelled data (target='none'); got y. Pass y=None.")
        return None
    if y is None:
        raise ValueError(f"this learner needs y (target={target!r}); got None. For unlabelled data use target='none'.")
    if y.shape[:1] != (n,):
        raise ValueError(f"x and y must have as many rows; got {n} and {len(y)}")
    y = y.detach().cpu()
    return _class_indices(y, n_classes) if target == "classes" else _values(y, n_outputs)


def _class_indices(y: Tensor, n_classes: int | None) -> Tensor:
    if y.dim() != 1 or y.is_floating_point() or y.is_complex():
        raise ValueError(f"y must hold one integer class index a sample; got {y.dtype} of shape {tuple(y.shape)}")
    values = y.numpy()
    lowest, highest = int(np.minimum.reduce(values)), int(np.maximum.reduce(values))
    if lowest < 0 or (n_classes is not None and highest >= n_classes):
        allowed = "0 or more" if n_classes is None else f"from 0 to {n_classes - 1}"
        raise ValueError(f"class indices must be {allowed}; got {lowest} to {highest}")
    return y.long()


def _values(y: Tensor, n_outputs: int) -> Tensor:
    y = y.float().reshape(len(y), -1)
    if y.shape[1] != n_outputs:
        raise ValueError(f"y must have {n_outputs} values a sample; got {y.shape[1]}")
    _check_values(y, "y", "Drop such samples.")
    return y


def _check_values(values: Tensor, name: str, remedy: str) -> None:
    if values.device.type == "cpu" and np.abs(values.numpy()).max() <= LARGEST:
        return
    if not bool((values.abs() <= LARGEST).all()):  # nor if one is NaN
        if not bool(torch.isfinite(values).all()):
            raise ValueError(f"{name} contains NaN or infinity; only finite values can be learned. {remedy}")
        largest = float(values.abs().max())
        raise ValueError(f"{name} holds a value of {largest:g}; values up to {LARGEST:g} can be learned. Scale it.")
