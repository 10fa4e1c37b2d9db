"""Places of a mixture, each with a pool: p(x | k) says where a row lies, the pool there says what follows from it.

Experts that were founded at the same x share a place: a rule that changed is a matter of the pool. An expert begins a
place of its own where labels that are known come with rows that are told apart from all of that place: there nothing
that comes later may move what was learned elsewhere. Labels that are new need no place, since pools forget by label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.experts.pool.class_pool import When
from cndpm.state import State, StateError, expect, tensor, whole
from cndpm.threads import one_blas_thread

__all__ = ["Places", "Pool"]

Floats = NDArray[np.float64]
LogDensities = Callable[[Floats], Floats]
"""Returns log N_k + log p(x | k) of rows (n, d) by every expert, (n, K)."""

_MOST = 16
"""Places, and so pools; what would be another one belongs to the nearest."""

_APART = 0.95
"""Area under the curve from which an expert's rows are told from those of another place."""

_SAME_LABELS, _KNOWN = 0.9, 20
"""The share of an expert's first samples whose labels the place must know, and of its labels that must be among them;
and the samples that make one known. Some labels of many need no place of their own."""

_N_COMPARED = 200
"""Rows of each side that are compared."""

_AT_ONCE = 100
"""Rows that a new pool learns at once."""

_FEW, _RECENTLY = 0.3, 0.95
"""The share of the latest rows below which those of a place are not learned there; what it keeps after a row."""

_NOWHERE = -5e5
"""Log densities below which no expert knows a row's units."""


class Pool(Protocol):
    """Answers p(y | x) at one place; see :class:`cndpm.experts.pool.ClassPool`.

    Example:
        >>> from cndpm.experts.pool import ClassPool
        >>> pool: Pool = ClassPool(2)
        >>> pool.is_ready  # nothing has been learned
        False
    """

    for_classes: ClassVar[bool]
    rows: Any
    n_seen: int
    seed: int

    @property
    def is_ready(self) -> bool: ...
    @property
    def n_rules(self) -> int: ...
    @property
    def shares(self) -> dict[str, float]: ...
    @property
    def events(self) -> list[tuple[int, str, int]]: ...
    @property
    def n_numbers_kept(self) -> int: ...
    def answer(self, x: Floats, when: When = "now", since: Sequence[Any] = ()) -> Floats: ...
    def learn(self, x: Floats, y: NDArray[Any], *, row_by_row: bool = False) -> None: ...
    def extend(self, other: Any) -> None: ...
    def relabel(self, places: NDArray[np.int64]) -> None: ...
    def forget(self, is_gone: NDArray[np.bool_]) -> None: ...
    def refresh(self) -> None: ...
    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> Any: ...


class Places:
    """Pools, and which expert is at the place of which.

    Args:
        make: Makes a pool that has learned nothing.
        log_densities: Of the experts.

    Attributes:
        pools: One a place.
        of_experts: The place of every expert, (K,).
        pending: The place that rows have come to which no expert knows yet; None where there is none.
        on_rule: Is called with "founded" or "returned" and the place where that happened to a rule.
        row_by_row: Whether targets are known before the next row is asked about, though rows are learned together.

    Example:
        >>> from cndpm.experts.pool import ClassPool
        >>> places = Places(lambda: ClassPool(2), lambda rows: np.zeros((len(rows), 0)))
        >>> x = np.random.default_rng(0).normal(size=(100, 2))
        >>> places.learn(x, (x[:, 0] > 0).astype(int))
        >>> int(places.answer(np.array([[3.0, 0.0]])).argmax())
        1
    """

    def __init__(self, make: Callable[[], Pool], log_densities: LogDensities) -> None:
        self._make, self._log_densities = make, log_densities
        self.pools: list[Pool] = [make()]
        self.of_experts: list[int] = []
        self.pending: int | None = None
        self._latest, self._recent, self.row_by_row = 0, np.ones(1), False
        self.on_rule: Callable[[str, int], None] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether anything can be answered."""
        return self.pools[0].is_ready

    @property
    def n_rules(self) -> int:
        """Rules of all places."""
        return sum(pool.n_rules for pool in self.pools)

    @property
    def shares(self) -> dict[str, float]:
        """Shares of an answer by whom it comes from, where the latest row lay."""
        pool = self.pools[self._latest]
        return pool.shares if pool.is_ready else {}

    def answer(self, x: Floats, when: When = "now", since: Sequence[Any] = ()) -> Floats:
        """Returns log-probabilities (n, C), or means and variances (n, 2, o), of rows (n, d).

        Args:
            x: Rows.
            when: "next" concerns the place that was learned at last; elsewhere it is "now".
            since: Targets of rows that have come and were not learned yet.
        """
        if len(self.pools) == 1:
            with one_blas_thread:
                return self.pools[0].answer(x, when, since)
        shares = self._shares(x)
        shares[:, [not pool.is_ready for pool in self.pools]] = 0
        shares[~shares.any(axis=1), 0] = 1  # nobody else can answer yet
        with one_blas_thread:
            return self._mixed(x, shares / shares.sum(axis=1, keepdims=True), when, since)

    def _mixed(self, x: Floats, shares: Floats, when: When, since: Sequence[Any]) -> Floats:
        """Returns the answers of all places, weighed by the rows' shares of them, (n, P)."""
        mixed: Floats | None = None
        for place, pool in enumerate(self.pools):
            mine = np.flatnonzero(shares[:, place] > 1e-3)
            if len(mine):
                told = pool.answer(x[mine], when if place == self._latest or when == "any" else "now", since)
                mixed = _added(mixed, len(x), mine, told, shares[mine, place])
        assert mixed is not None
        return _answer(mixed)

    def learn(self, x: Floats, y: NDArray[Any]) -> None:
        """Has the pools learn a batch, each what lies at its place.

        Args:
            x: Rows, (B, d).
            y: Labels (B,) or values (B, o).
        """
        if len(self.pools) == 1:
            self._learn_at(0, x, y)
            return
        place_of = self._places_of(x)
        for place in np.unique(place_of[place_of >= 0]).tolist():
            self._learn_at(place, x[place_of == place], y[place_of == place])
        self._latest = int(place_of[-1]) if place_of[-1] >= 0 else self._latest

    def _learn_at(self, place: int, x: Floats, y: NDArray[Any]) -> None:
        """Has a place learn rows that lie there."""
        pool = self.pools[place]
        with one_blas_thread:
            before = pool.events[-1:]
            pool.learn(x, y, row_by_row=self.row_by_row)
            latest = pool.events[-1:]
        if self.on_rule is not None and latest != before:
            self.on_rule(latest[0][1], place)

    def _places_of(self, x: Floats) -> NDArray[np.int64]:
        """Returns the place that learns each of rows (B, d), (B,); -1 for those that hardly any came with lately.

        A few rows of the place where most come now look like those of another, and would move what was learned there.
        """
        place_of = self._shares(x).argmax(axis=1)
        recent = np.pad(self._recent, (0, len(self.pools) - len(self._recent)))
        if self._latest >= len(self._recent):
            recent[self._latest] = 1.0  # it has just begun
        left = _RECENTLY ** len(x)
        self._recent = left * recent + (1 - left) * np.bincount(place_of, minlength=len(recent)) / len(x)
        return np.where(self._recent[place_of] >= _FEW, place_of, -1)

    def _shares(self, x: Floats) -> Floats:
        """Returns p(place | x), (n, P)."""
        weighted, shares = self._log_densities(x), np.zeros((len(x), len(self.pools)))
        best = weighted.max(axis=1, keepdims=True)
        weights = np.exp(weighted - best)
        np.add.at(shares.T, self.of_experts, weights.T)
        is_nowhere = best[:, 0] < _NOWHERE
        shares[is_nowhere] = np.eye(len(self.pools))[self._latest if self.pending is None else self.pending]
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def known(self, but: int) -> Floats:
        """Returns the rows kept where the latest row lay, but for those that came last, (m, d)."""
        rows = self.pools[self._latest].rows
        known: Floats = rows.x[rows.serial < rows.n - but]
        return known

    def begin(self, n: int) -> None:
        """Begins a place with the latest n rows, whose units no expert knows."""
        if len(self.pools) < _MOST:
            pool = self.pools[self._latest]
            latest = np.flatnonzero(pool.rows.serial >= pool.rows.n - _N_COMPARED)
            is_mine = pool.rows.serial >= pool.rows.n - n
            # some came before it was noticed
            is_mine[latest] |= self._log_densities(pool.rows.x[latest]).max(axis=1) < _NOWHERE
            self._move(pool, is_mine)
            self.pending = self._latest

    def founded(self, x: Floats, y: NDArray[Any]) -> None:
        """Finds the place of an expert that was just founded.

        Args:
            x: The memory that was slept on, (n, d).
            y: Labels (m,) or values (m, o) of the samples there that it was made of.
        """
        weighted = self._log_densities(x)
        if weighted.shape[1] != len(self.of_experts) + 1:
            self.of_experts += [self._latest] * (weighted.shape[1] - len(self.of_experts))
            return
        if not self.of_experts:
            self.of_experts = [0]
        elif self.pending is not None and (weighted[:, :-1].max(axis=1) < _NOWHERE).mean() > 0.5:
            self.of_experts.append(self.pending)
            self.pending = None
        else:
            votes = np.bincount(np.array(self.of_experts)[weighted[:, :-1].argmax(axis=1)])
            place = int(votes.argmax())
            if len(self.pools) < _MOST and (is_mine := self._rows_apart(place, x, y)) is not None:
                self._move(self.pools[place], is_mine)
                place = self._latest
            self.of_experts.append(place)

    def _rows_apart(self, place: int, x: Floats, y: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Returns which kept rows of a place are those of a new expert, (m,); None where it belongs to that place."""
        rows, own = self.pools[place].rows, {row.tobytes() for row in x}
        is_mine = np.fromiter((row.tobytes() in own for row in rows.x), dtype=bool, count=len(rows))
        others = np.flatnonzero(~is_mine)
        if len(others) < _KNOWN or not is_mine.any():
            return None
        if y.ndim == 1:
            is_known = np.bincount(rows.y[others], minlength=int(y.max()) + 1) >= _KNOWN
            is_here = np.bincount(y, minlength=len(is_known)) > 0
            if min(np.mean(is_known[y]), np.mean(is_here[is_known]) if is_known.any() else 0.0) < _SAME_LABELS:
                return None
        latest = others[np.argsort(rows.serial[others])[-_N_COMPARED:]]
        mine, theirs = self._gains(place, x[-_N_COMPARED:]), self._gains(place, rows.x[latest])
        if np.mean(mine[:, None] > theirs) < _APART:
            return None
        beside = np.flatnonzero(~is_mine & (rows.serial >= rows.serial[is_mine].min()))
        is_mine[beside] = self._gains(place, rows.x[beside]) > 0  # came among them and did not wait with them
        return is_mine

    def _gains(self, place: int, x: Floats) -> Floats:
        """Returns by how much rows (n, d) are likelier under the latest expert than under those of a place, (n,)."""
        weighted = self._log_densities(x)
        beside = [k for k, one in enumerate(self.of_experts) if one == place]
        gains: Floats = weighted[:, -1] - weighted[:, beside].max(axis=1)
        return gains

    def _move(self, pool: Pool, is_mine: NDArray[np.bool_]) -> None:
        """Has another pool, at a place of its own, learn some of the rows kept, and this one forget them."""
        order = np.flatnonzero(is_mine)[np.argsort(pool.rows.serial[is_mine])]
        made, x, y = self._make(), pool.rows.x[order].copy(), pool.rows.y[order].copy()
        made.seed = pool.seed
        with one_blas_thread:
            for start in range(0, len(y), _AT_ONCE):
                made.learn(x[start : start + _AT_ONCE], y[start : start + _AT_ONCE])
            pool.forget(is_mine)
        self.pools.append(made)
        self._latest = len(self.pools) - 1

    def extend(self, other: Places) -> None:
        """Takes in what another stream left behind, as if it had come after this one.

        The first place of both is one, and its pool goes on with the other's kept rows; the others stay apart.
        """
        n = len(self.pools)
        with one_blas_thread:
            self.pools[0].extend(other.pools[0])
        self.pools += other.pools[1:]
        self.of_experts += [place and n + place - 1 for place in other.of_experts]

    def relabel(self, places: NDArray[np.int64]) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        for pool in self.pools:
            pool.relabel(places)

    def removed(self, expert: int) -> None:
        """Follows an expert that went; one that went as soon as it was founded had no place yet."""
        del self.of_experts[expert : expert + 1]

    def refresh(self) -> None:
        """Does what schedules have postponed."""
        with one_blas_thread:
            for pool in self.pools:
                pool.refresh()

    def state_dict(self) -> State:
        """Returns everything."""
        return {
            "pools": [pool.state_dict() for pool in self.pools],
            "of_experts": list(self.of_experts),
            "pending": -1 if self.pending is None else self.pending,
            "latest": self._latest,
            "recent": torch.from_numpy(self._recent.copy()),
        }

    def load_state_dict(self, state: State, n_experts: int) -> None:
        """Restores it to the bit.

        Args:
            state: As :meth:`state_dict` returns it.
            n_experts: K.
        """
        saved: Any = state.get("pools")
        if not isinstance(saved, list) or not 1 <= len(saved) <= _MOST:
            raise StateError(f"'pools' must be a list of 1 to {_MOST} places")
        places: Any = state.get("of_experts")
        is_list = isinstance(places, list) and all(type(one) is int and 0 <= one < len(saved) for one in places)
        if not is_list or len(places) != n_experts:
            raise StateError(f"'of_experts' must name places of {n_experts} experts")
        expect(state, {"pending": whole(-1, len(saved) - 1), "latest": whole(0, len(saved) - 1), "recent": tensor("n")})
        self.pools = [self._make() for _ in saved]
        for pool, one in zip(self.pools, saved, strict=True):
            pool.load_state_dict(one)
        self.of_experts, self._latest = list(places), state["latest"]
        self._recent = state["recent"].cpu().numpy().copy()[: len(saved)]
        self.pending = None if state["pending"] < 0 else state["pending"]


def _added(mixed: Floats | None, n: int, at: NDArray[np.int64], told: Floats, shares: Floats) -> Floats:
    """Adds what a place says of rows `at`, times its share of each, to what others say of all n."""
    if told.ndim == 3:  # first and second moments can be added
        mean, variance = told[:, 0], told[:, 1]
        told = np.stack([mean, variance + mean**2], axis=1)
        mixed = np.zeros((n, *told.shape[1:])) if mixed is None else mixed
        mixed[at] += shares[:, None, None] * told
        return mixed
    width = max(told.shape[1], 0 if mixed is None else mixed.shape[1])
    wider = np.zeros((n, width))
    if mixed is not None:
        wider[:, : mixed.shape[1]] = mixed
    wider[at, : told.shape[1]] += shares[:, None] * np.exp(told)
    return wider


def _answer(mixed: Floats) -> Floats:
    """Returns log-probabilities of probabilities, or means and variances of moments."""
    if mixed.ndim == 3:
        return np.stack([mixed[:, 0], np.maximum(mixed[:, 1] - mixed[:, 0] ** 2, 1e-300)], axis=1)
    answer: Floats = np.log(np.maximum(mixed / mixed.sum(axis=1, keepdims=True), 1e-300))
    return answer
