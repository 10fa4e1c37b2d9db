"""Rows of a stream that are kept as examples of what is known: the latest, and a random choice of all.

The choice is made by a hash of the row's number, so it needs no random state, and the same rows are kept however the
stream is cut into calls. Rows join the others in steps, after an eighth more have come and at the latest after a
hundred: what is computed of the kept rows holds until the next step.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.state import State, expect, integers, tensor, whole

_MOST_NUMBERS = 2**21
"""Numbers kept at most, so that large images do not fill the memory; of 28 x 28 pixels a thousand rows stay."""

_STEP = 8
_LONGEST_STEP = 100

Rows = NDArray[np.float32]


class Exemplars:
    """Keeps at most `capacity` rows of `n_features` numbers: half the latest, half a uniform choice of those before.

    Fewer where rows are very long. `rows` are in the order of their arrival, (E, d), float32; `n_seen` have come.
    """

    def __init__(self, n_features: int, *, capacity: int, seed: int) -> None:
        self.capacity = min(capacity, max(2, _MOST_NUMBERS // n_features))
        self._seed = seed
        self.rows: Rows = np.zeros((0, n_features), dtype=np.float32)
        self._numbers = np.zeros(0, dtype=np.int64)
        self._coming: list[Tensor] = []
        self._n_coming = 0
        self.n_seen = 0

    def see(self, rows: Tensor) -> bool:
        """Takes note of the next rows, (n, d), float32; returns whether the kept rows have changed."""
        changed, start = False, 0
        while start < len(rows):
            stop = min(len(rows), start + self._due() - self._n_coming)
            self._coming.append(rows[start:stop].clone())  # on a GPU nothing waits for it
            self._n_coming += stop - start
            self.n_seen += stop - start
            start = stop
            if self._n_coming >= self._due():
                self.join()
                changed = True
        return changed

    def _due(self) -> int:
        """Returns how many rows wait before they join the others."""
        return min(_LONGEST_STEP, max(1, (self.n_seen - self._n_coming) // _STEP))

    def join(self) -> None:
        """Has rows that wait join the others now."""
        first = self.n_seen - self._n_coming
        rows = np.concatenate([self.rows, self._waiting()])
        numbers = np.concatenate([self._numbers, np.arange(first, self.n_seen)])
        if len(rows) > self.capacity:
            n_latest = self.capacity - self.capacity // 2
            older = np.argsort(_hashes(numbers[:-n_latest], self._seed))[: self.capacity // 2]
            kept = np.concatenate([np.sort(older), np.arange(len(rows) - n_latest, len(rows))])
            rows, numbers = rows[kept], numbers[kept]
        self.rows, self._numbers = rows, numbers
        self._coming, self._n_coming = [], 0

    def _waiting(self) -> Rows:
        """Returns the rows that wait, (n, d)."""
        first, *others = self._coming or [torch.from_numpy(self.rows[:0])]
        # Rows that were restored come first, and may lie elsewhere than those of a GPU.
        return torch.cat([first.to((others or [first])[-1].device), *others]).cpu().numpy()

    def state_dict(self) -> State:
        return {
            "rows": torch.tensor(self.rows),
            "numbers": torch.tensor(self._numbers),
            "coming": torch.tensor(self._waiting()),
            "n_seen": self.n_seen,
        }

    def load_state_dict(self, state: State) -> None:
        d, row = self.rows.shape[1], torch.float32
        forms = {"rows": tensor("kept", d, dtype=row), "numbers": integers("kept", low=0), "n_seen": whole()}
        expect(state, {**forms, "coming": tensor("coming", d, dtype=row)})
        self.rows, self._numbers = state["rows"].cpu().numpy().copy(), state["numbers"].cpu().numpy().copy()
        coming = state["coming"].clone()
        self._coming, self._n_coming = ([coming] if len(coming) else []), len(coming)
        self.n_seen = state["n_seen"]


def _hashes(numbers: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Mixes row numbers with a seed to numbers that behave as random ones."""
    with np.errstate(over="ignore"):
        start = np.uint64((seed + 1) * 0xD1342543DE82EF95 % 2**64)  # far apart for seeds that are neighbours
        return mixed_bits(start + numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))


def mixed_bits(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mixes the bits of numbers (splitmix64)."""
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
