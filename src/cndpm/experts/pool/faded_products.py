"""Products of rows, faded at several rates: what linear models of a stream that is forgotten are made of."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from cndpm.state import State, StateError, expect, tensor

__all__ = ["FadedProducts"]

_MOST_WAITING = 100
"""Rows that may wait; more of them would cost memory and save little time."""


class FadedProducts:
    r"""Sums over rows r of keep^age r r^T, (w, w), for each of M members with a rate of its own.

    Rows wait until the sums of a member are asked for and then enter together: how often they are asked for, and not
    how many rows come at a time, decides what they cost.

    Args:
        width: w.
        keeps: What is left of a row after the next one, by member; 1 forgets nothing.

    Example:
        >>> sums = FadedProducts(1, keeps=(0.5, 1.0))
        >>> sums.add(torch.tensor([[2.0], [4.0]]).double(), {0, 1})
        >>> [sums.of(m).item() for m in range(2)]  # 0.5 * 4 + 16, and 4 + 16
        [18.0, 20.0]
    """

    def __init__(self, width: int, keeps: tuple[float, ...]) -> None:
        self._fading = [_powers(keep) for keep in keeps]
        self._products = [torch.zeros(width, width, dtype=torch.float64) for _ in keeps]
        self._waiting = torch.zeros(_MOST_WAITING, width, dtype=torch.float64)
        self._n_waiting = 0
        self._since: list[int | None] = [None] * len(keeps)

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of the sums."""
        return sum(part.numel() for part in self._products)

    @property
    def width(self) -> int:
        """w."""
        return self._waiting.shape[1]

    def append(self, keep: float) -> None:
        """Adds a member that has learned nothing."""
        self._fading.append(_powers(keep))
        self._products.append(torch.zeros(self.width, self.width, dtype=torch.float64))
        self._since.append(None)

    def clear(self, m: int) -> None:
        """Forgets all that member m has learned."""
        self._products[m].zero_()
        self._since[m] = None

    def copy(self, m: int, other: int, order: Tensor) -> None:
        """Has member m learn what another one has, with the values of rows in another order.

        Args:
            m: The member.
            other: The other one, which may be the same.
            order: Where every value comes from, (w,).
        """
        self._products[m] = self.of(other)[order][:, order]
        self._since[m] = None

    def widen(self, n: int) -> None:
        """Makes room for n values more at the end of a row, zero in all rows so far."""
        self._products = [pad(part, (0, n, 0, n)) for part in self._products]
        self._waiting = pad(self._waiting, (0, n))

    def add(self, rows: Tensor, members: Collection[int]) -> None:
        """Adds rows in their order.

        Args:
            rows: (B, w).
            members: Those that learn them.
        """
        for part in (rows,) if rows.shape[0] <= _MOST_WAITING else torch.split(rows, _MOST_WAITING):
            stop = self._n_waiting + part.shape[0]
            if stop > _MOST_WAITING:
                self._enter_all()
                stop = part.shape[0]
            for m, since in enumerate(self._since):
                if since is None:
                    self._since[m] = self._n_waiting if m in members else None
                elif m not in members:  # what waits for a member has no gaps
                    self._enter(m)
            self._waiting[self._n_waiting : stop] = part
            self._n_waiting = stop

    def of(self, m: int) -> Tensor:
        """Returns the sums of member m, (w, w), which is not to be written to."""
        self._enter(m)
        return self._products[m]

    def _enter_all(self) -> None:
        for m in range(len(self._since)):
            self._enter(m)
        self._n_waiting = 0

    def _enter(self, m: int) -> None:
        since = self._since[m]
        if since is not None:
            rows, powers = self._waiting[since : self._n_waiting], self._fading[m]
            faded = rows * powers[-len(rows) :, None]
            self._products[m].addmm_(faded.T, rows, beta=float(powers[-1 - len(rows)]))
            self._since[m] = None

    def state_dict(self) -> State:
        """Returns sums and waiting rows."""
        since = [-1 if start is None else start for start in self._since]
        waiting = self._waiting[: self._n_waiting].clone()
        return {"products": [part.clone() for part in self._products], "waiting": waiting, "since": since}

    def load_state_dict(self, state: State) -> None:
        """Restores them to the bit; a state of other members or of another width is refused."""
        n = expect(state, {"waiting": tensor("n", "w")}, w=self.width)["n"]
        products: Any = state.get("products")
        since: Any = state.get("since")
        if not all(isinstance(part, list) and len(part) == len(self._fading) for part in (products, since)):
            raise StateError(f"'products' and 'since' must be lists of {len(self._fading)} members")
        for part in products:
            expect({"products": part}, {"products": tensor("w", "w")}, w=self.width)
        if n > _MOST_WAITING or not all(type(start) is int and -1 <= start < max(n, 1) for start in since):
            raise StateError(
                f"'since' must tell from where on at most {_MOST_WAITING} rows wait; got {str(since)[:80]}"
            )
        self._products = [part.cpu().clone() for part in products]
        self._n_waiting, self._since = n, [None if start < 0 else start for start in since]
        self._waiting[:n] = state["waiting"].cpu()


def _powers(keep: float) -> Tensor:
    """Returns keep^n, ..., keep, 1 for the most rows that may wait, (n + 1,)."""
    return keep ** torch.arange(_MOST_WAITING, -1, -1, dtype=torch.float64)
