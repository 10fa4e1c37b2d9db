"""Measures answers along a stream: in windows, overall, and after each change. Can be stopped and go on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from cndpm.experiments.recovery import Recovery
from cndpm.experiments.scores import (
    ClassAnswers,
    ClassScores,
    DensityAnswers,
    DensityScores,
    Scores,
    ValueAnswers,
    ValueScores,
)
from cndpm.state import State

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


class Meter:
    """Adds up answers batch by batch.

    A window ends with the batch that fills it, and where the stream changes (`changes`: samples before each change).
    The windows that tell when a change is over have the same size.
    """

    def __init__(self, target: Target, *, window: int = 100, changes: Sequence[int] = ()) -> None:
        self.target, self.window, self.changes = target, window, tuple(changes)
        self.n_seen, self.n_unanswered = 0, 0
        self._whole: Scores = _SCORES[target]()
        self._recovery = Recovery(changes if target != "none" else (), window=window, shares=target == "classes")
        self._first, self._part, self._experts = self._opened()

    def add(self, answers: Answers, log_gate: Tensor | None = None) -> Window | None:
        """Adds the answers to a batch, and a mixture's log-gate (batch, n_experts); returns the window it completes."""
        losses = answers.losses().tolist()
        self._whole.add(answers)
        self._part.add(answers)
        self._recovery.add(losses)
        if log_gate is not None:
            self._experts = _added(self._experts or [], log_gate)
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

    def state_dict(self) -> State:
        return {
            "n_seen": self.n_seen,
            "n_unanswered": self.n_unanswered,
            "whole": self._whole.state_dict(),
            "part": self._part.state_dict(),
            "first": self._first,
            "experts": self._experts,
            "recovery": self._recovery.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        self.n_seen, self.n_unanswered = state["n_seen"], state["n_unanswered"]
        self._whole.load_state_dict(state["whole"])
        self._part.load_state_dict(state["part"])
        self._first, self._experts = state["first"], state["experts"]
        self._recovery.load_state_dict(state["recovery"])

    def _opened(self) -> tuple[int, Scores, list[int] | None]:
        """Returns where a window begins, and its empty scores."""
        return self.n_seen, _SCORES[self.target](), None

    def _advance(self, n: int) -> Window | None:
        before, self.n_seen = self.n_seen, self.n_seen + n
        has_changed = bisect_right(self.changes, self.n_seen) > bisect_right(self.changes, before)
        return self.close() if has_changed or self.n_seen - self._first >= self.window else None


def _added(counts: list[int], log_gate: Tensor) -> list[int]:
    """Adds the samples for which each expert is the most probable one; counts grow with the experts."""
    n_experts = log_gate.shape[1]
    if not n_experts:
        return counts
    new = torch.bincount(log_gate.argmax(1), minlength=n_experts).tolist()
    counts = counts + [0] * (n_experts - len(counts))
    return [count + (new[k] if k < n_experts else 0) for k, count in enumerate(counts)]
