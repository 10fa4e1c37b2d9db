"""Inner products of the rows that come next, kept on the host for routing.

Evidence needs three things of a whitened row r and the anchors a_j = L^-1 s_j: r r, r a_j and a_i a_j. While a window
of rows is learned, anchors only move by sums of its rows, a_j + sum_i w_ij r_i. So all that is ever needed follows from
the products of the window's rows and of the anchors as they were when it was opened:

    r a_j' = r a_j + sum_i w_ij (r r_i),   and likewise for a_i' a_j'.

One copy from the device serves many batches, which are then routed and learned without it; the sums on the device catch
up when the window is closed. Results depend on the window alone, never on when they were asked for.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian.factor import Floats, Products, Whitened, gram
from cndpm.state import State

WINDOW = 80
"""Rows in a window: their products take as much to compute as a few batches would alone."""


def _product(a: Floats, b: Floats) -> Floats:
    """Returns a @ b by torch, whose threads are under control; those of numpy wake up for windows of this size."""
    return torch.mm(torch.from_numpy(a), torch.from_numpy(b)).numpy()


class Ledger:
    """A window of N rows and the weights they were learned with.

    It begins at `first` in the chunk `whole`. `sums` are those of the components when it is opened, (J, d), and
    `anchors` the sums whitened, then "new" and the prior mean, which do not move, (J + 2, d).
    """

    def __init__(self, whole: Samples, first: int, window: Whitened, sums: Tensor, anchors: Tensor) -> None:
        self.whole, self.first, self.window = whole, first, window
        self._sums_before, self._anchors_before = sums, anchors
        self._gram, self._inner, self._of_anchors = gram(window.rows, anchors)
        # Memory of torch is aligned, and what products round to may depend on that.
        self._weights = torch.zeros(len(window.rows), len(anchors), dtype=torch.float64).numpy()
        self._squares = self._gram.diagonal()
        self.n_rows = len(self._weights)
        self._weights_there: Tensor | None = None

    def place(self, samples: Samples) -> slice | None:
        """Returns the rows of the window that are these samples; None where they are not part of it."""
        start = samples.start - self.first
        stop = start + len(samples.x)
        return slice(start, stop) if samples.whole is self.whole and start >= 0 and stop <= self.n_rows else None

    def products(self, place: slice) -> Products:
        """Returns products of the rows at `place` and of the current anchors."""
        moved = _product(self._gram, self._weights)
        across = _product((self._inner + moved / 2).T, self._weights)
        of_anchors = self._of_anchors + across + across.T
        inner = self._inner[place] + moved[place]
        return Products(self._squares[place], inner, of_anchors[:, -1], of_anchors.diagonal())

    def add(self, place: slice, weights: Floats) -> None:
        """Notes that the rows at a place were learned with weights, (B, J)."""
        self._weights[place, :-2] += weights
        self._weights_there = None

    def sums(self) -> Tensor:
        """Returns the current sums of the components, (J, d)."""
        return torch.addmm(self._sums_before, self._there(), self.window.shifted)

    def anchors(self) -> Tensor:
        """Returns the current anchors, (J + 2, d)."""
        moved = torch.addmm(self._anchors_before[:-2], self._there(), self.window.rows)
        return torch.cat([moved, self._anchors_before[-2:]])

    def _there(self) -> Tensor:
        """Returns weights (J, N) on the device of the rows."""
        if self._weights_there is None:
            weights, device = torch.from_numpy(self._weights[:, :-2]), self.window.rows.device
            if device.type == "cuda":
                weights = weights.contiguous().pin_memory()  # else the copy would wait for all that a GPU has to do
            self._weights_there = weights.to(device, non_blocking=True).T
        return self._weights_there

    def state_dict(self) -> State:
        """Returns all but the rows, which are given again; their squared lengths identify them."""
        return {
            "first": self.first,
            "squares": torch.tensor(self._squares),
            "weights": torch.tensor(self._weights),
            "sums": self._sums_before.clone(),
            "anchors": self._anchors_before.clone(),
        }

    @classmethod
    def recalled(cls, state: State, samples: Samples, whitened: Whitened) -> Ledger | None:
        """Returns the ledger of :meth:`state_dict`, to the bit, if samples are of its window; else None."""
        first, squares = state["first"], state["squares"].cpu().numpy()
        ledger = cls(samples.whole, first, whitened[first : first + len(squares)], state["sums"], state["anchors"])
        place, weights = ledger.place(samples), state["weights"].cpu().numpy()
        if place is None or weights[place.start :].any() or not np.array_equal(ledger._squares, squares):
            return None  # other rows, or the same ones in a block of their own
        ledger._weights[:] = weights
        return ledger
