"""Recovery after a change: counts the samples until a model answers almost as well as before."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from cndpm.state import State

REGAINED = 0.95
"""The share of the former accuracy that counts as regained."""


class Recovery:
    """Follows the losses of a stream that knows where it changes: samples before each change, ascending.

    Before a change the mean loss of the last `window` samples is noted. The change is over after n samples where the
    `window` samples that follow these n are the first to be answered with 95 % of the former accuracy (where losses are
    errors of values and not `shares` of wrong answers, with a mean error of at most the former one divided by 0.95). A
    window never reaches over a change, so a change that is followed too soon by another is never over. What is kept
    does not grow with the stream.
    """

    def __init__(self, changes: Sequence[int], *, window: int, shares: bool) -> None:
        self._changes, self._window, self._shares = tuple(changes), window, shares
        self._latest: deque[float] = deque(maxlen=window)
        self._n_seen = 0
        self._since: int | None = None
        self._found: list[list[float | None]] = []

    def add(self, losses: Sequence[float]) -> None:
        """Follows further samples; losses (n,)."""
        for loss in losses:
            if self._n_seen in self._changes:
                self._begin()
            self._n_seen += 1
            self._latest.append(loss)
            self._look()

    def skip(self, n: int) -> None:
        """Passes over `n` samples that were not answered."""
        for _ in range(n):
            if self._n_seen in self._changes:
                self._begin()
            self._n_seen += 1

    def results(self) -> list[dict[str, float | int | None]]:
        """Returns a row for each change so far.

        It tells the ``change``, the accuracy (or error) ``before``, None where nothing had been answered, and the
        ``samples`` after which it was over, None where it was not or is not yet.
        """
        return [
            {
                "change": int(change or 0),
                "before": 100 * (1 - loss) if self._shares and loss is not None else loss,
                "samples": None if n is None else int(n),
            }
            for change, loss, n in self._found
        ]

    def state_dict(self) -> State:
        return {"latest": list(self._latest), "n_seen": self._n_seen, "since": self._since, "found": self._found}

    def load_state_dict(self, state: State) -> None:
        self._latest = deque(state["latest"], maxlen=self._window)
        self._n_seen, self._since = state["n_seen"], state["since"]
        self._found = [list(row) for row in state["found"]]

    def _begin(self) -> None:
        former = sum(self._latest) / len(self._latest) if self._latest else None
        self._found.append([self._n_seen, former, None])
        self._since = self._n_seen
        self._latest.clear()

    def _look(self) -> None:
        """Ends the latest change where the latest window is full and good enough."""
        if self._since is None or len(self._latest) < self._window:
            return
        former, loss = self._found[-1][1], sum(self._latest) / self._window
        if former is None:
            self._since = None
        elif self._is_regained(former, loss):
            self._found[-1][2] = self._n_seen - self._window - self._since
            self._since = None

    def _is_regained(self, former: float, loss: float) -> bool:
        return 1 - loss >= REGAINED * (1 - former) if self._shares else loss * REGAINED <= former
