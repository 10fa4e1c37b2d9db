"""Measures answers along a stream: in windows, overall, and how it recovers from changes. Can be stopped and go on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from cndpm.experiments.scores import (
    ClassAnswers,
    ClassScores,
    DensityAnswers,
    DensityScores,
    Sums,
    ValueAnswers,
    ValueScores,
    counted,
)

REGAINED = 0.95
"""The share of the former accuracy that counts as regained."""


class Recovery(Sums):
    """Follows the losses of a stream that knows where it changes: samples before each change, ascending.

    Before a change the mean loss of the last `window` samples is noted. The change is over after n samples where the
    `window` samples that follow these n are the first to be answered with 95 % of the former accuracy (where losses are
    errors of values and not `shares` of wrong answers, with a mean error of at most the former one divided by 0.95). A
    window never reaches over a change, so a change that is followed too soon by another is never over. What is kept
    does not grow with the stream.
    """

    kept = ("_latest", "_n_seen", "_since", "_found")

    def __init__(self, changes: Sequence[int], *, window: int, shares: bool) -> None:
        self._changes, self._window, self._shares = tuple(changes), window, shares
        self._latest: list[float] = []
        self._n_seen = 0
        self._since: int | None = None
        self._found: list[list[float | None]] = []

    def add(self, losses: Sequence[float]) -> None:
        """Follows further samples; losses (n,)."""
        for loss in losses:
            if self._n_seen in self._changes:
                self._begin()
            self._n_seen += 1
            self._latest = [*self._latest, loss][-self._window :]
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


Target = Literal["classes", "values", "none"]
"""Kinds of y that are judged."""

Answers = ClassAnswers | ValueAnswers | DensityAnswers
"""Answers of a model, of the kind that its target asks for."""

_SCORES: Mapping[Target, type[Any]] = {"classes": ClassScores, "values": ValueScores, "none": DensityScores}


@dataclass(frozen=True)
class Window:
    """Scores of some consecutive samples, each answered before it was learned."""

    first: int  # samples of the stream before the window
    n_samples: int  # samples in it
    # By name: ``accuracy`` (percent), ``kappa`` and ``log_loss`` (nats) for classes; ``absolute_error``,
    # ``root_squared_error``, ``r_squared`` and ``log_loss`` for values; ``bits_per_dim`` for densities
    scores: dict[str, float]
    # How many samples each expert would have answered by itself; empty while there is none, None for models that are no
    # mixture
    experts: list[int] | None = None

    def __getitem__(self, name: str) -> float:
        return self.scores[name]


class Meter(Sums):
    """Adds up answers batch by batch.

    A window ends with the batch that fills it, and where the stream changes (`changes`: samples before each change).
    The windows that tell when a change is over have the same size.
    """

    kept = ("n_seen", "n_unanswered", "_whole", "_part", "_first", "_experts", "_recovery")

    def __init__(self, target: Target, *, window: int = 100, changes: Sequence[int] = ()) -> None:
        self.target, self.window, self.changes = target, window, tuple(changes)
        self.n_seen, self.n_unanswered = 0, 0
        self._whole = _SCORES[target]()
        self._recovery = Recovery(changes if target != "none" else (), window=window, shares=target == "classes")
        self._first, self._part, self._experts = self._opened()

    def add(self, answers: Answers, log_gate: Tensor | None = None) -> Window | None:
        """Adds the answers to a batch, and a mixture's log-gate (batch, n_experts); returns the window it completes."""
        losses = answers.losses().tolist()
        self._whole.add(answers)
        self._part.add(answers)
        self._recovery.add(losses)
        if log_gate is not None:
            chosen = log_gate.argmax(1) if log_gate.shape[1] else torch.zeros(0, dtype=torch.int64)
            self._experts = counted(self._experts or [], chosen, log_gate.shape[1])
        return self._advance(len(losses))

    def skip(self, n: int) -> Window | None:
        """Passes over `n` samples to which the model had no answer yet; returns the window that they complete."""
        self.n_unanswered += n
        self._recovery.skip(n)
        return self._advance(n)

    def close(self) -> Window | None:
        """Ends the window in progress; None where it is empty."""
        part, first, experts = self._part, self._first, self._experts
        self._first, self._part, self._experts = self._opened()
        return Window(first, part.n_samples, part.results(), experts) if part.n_samples else None

    def results(self) -> dict[str, Any]:
        """Returns the scores of all answers so far, and for each change when it was over."""
        return {
            **self._whole.results(),
            "n_samples": self._whole.n_samples,
            "n_unanswered": self.n_unanswered,
            "window": self.window,
            "recovery": self._recovery.results(),
        }

    def _opened(self) -> tuple[int, Any, list[int] | None]:
        """Returns where a window begins, and its empty scores."""
        return self.n_seen, _SCORES[self.target](), None

    def _advance(self, n: int) -> Window | None:
        before, self.n_seen = self.n_seen, self.n_seen + n
        has_changed = bisect_right(self.changes, self.n_seen) > bisect_right(self.changes, before)
        return self.close() if has_changed or self.n_seen - self._first >= self.window else None
