r"""Weighs members by evidence: their log scores, discounted by two clocks and at three temperatures, and a stack.

Three candidates answer: the members weighed by what they predicted lately, the same by a longer past, and a log-linear
stack of members and these two mixtures, :math:`p(y) \propto \prod_m p_m(y)^{\beta_m}`, whose exponents follow Newton's
steps on the faded log loss; it begins as the mixtures' geometric mean. Evidence weighs the candidates in turn. A sample
counts as much as its weight. Rows whose evidence and models wait for each other are in a :class:`Backlog`, with what
was said to them when they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cndpm.experts.pool.moments import Labels
from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, State, integers, number, tensor

__all__ = ["LOWEST", "TEMPERATURES", "Mix", "Told", "log_normalised", "softmax", "tempered"]

TEMPERATURES = np.array([1.5, 0.75, 0.375])
"""Exponents that members' answers are tried with, each twice the next: models may be too sure, or not enough."""

LOWEST = -12.0
"""Nats below which no member puts a label."""

_FLOOR = 1e-3
"""Probability that every answer spreads over all labels: one surprise must not decide between members."""

_CLOCKS = np.array([[0.98], [0.998], [0.99]])
"""What evidence keeps after a sample: for members, of the latest 50 or 500; for the candidates, of 100."""

_N_MIXTURES = len(_CLOCKS) - 1
"""Candidates that are mixtures, one a clock of members."""

_RIDGE = 20.0
"""The stack's curvature that is always there; the rest fades with the slower clock of members."""

TOGETHER, _SURPRISE = 10, 1.0
"""Rows that are learned together, unless they have contradicted the answers to them by so many nats more than these
expected."""

_AXES = {"x": 0, "likely": 1, "by_rules": 1, "lifted": 0, "y": 0}


class Told(NamedTuple):
    """Holds what members and candidates said to B samples: M members, T temperatures, C labels.

    Attributes:
        logs: Log-probabilities of the members and of both mixtures, which the stack is of, (M + 2, B, C).
        each: Probabilities at every temperature, (T M, B, C).
        candidates: Probabilities, (3 or more, B, C).

    Example:
        >>> told = Mix(2).ask(np.log(np.full((2, 5, 4), 0.25)))
        >>> told.each.shape, told.candidates.shape
        ((6, 5, 4), (3, 5, 4))
    """

    logs: Floats
    each: Floats
    candidates: Floats


class Mix(Keeps):
    """Evidence for M members.

    Args:
        n_members: M.
        n_others: Further candidates, which answer by themselves.

    Example:
        >>> mix = Mix(2)
        >>> right, wrong = np.log([[[0.9, 0.1]], [[0.1, 0.9]]])
        >>> for _ in range(20):
        ...     mix.learn(mix.ask(np.stack([right, wrong])), np.array([0]), np.ones(1))
        >>> int(mix.answer(mix.ask(np.stack([right, wrong])).candidates).argmax())
        0
    """

    kept: ClassVar = {
        "scores": tensor(2, "tempered"),
        "top": tensor("candidates"),
        "exponents": tensor("stacked"),
        "curvature": tensor("stacked", "stacked"),
    }

    def __init__(self, n_members: int, n_others: int = 0) -> None:
        self.scores = np.zeros((2, len(TEMPERATURES) * n_members))
        self.top = np.zeros(3 + n_others)
        self.exponents = np.repeat([0.0, 0.5], [n_members, _N_MIXTURES])
        self.curvature = _RIDGE * np.eye(len(self.exponents))
        self._by_clock, self._by_candidate = softmax(self.scores), softmax(self.top)  # until more is learned

    @property
    def weights(self) -> Floats:
        """Shares that members have in an answer, (M,)."""
        top, by_clock = softmax(self.top[:3]), self._by_clock.reshape(2, len(TEMPERATURES), -1).sum(axis=1)
        exponents = np.maximum(self.exponents, 0.0)
        stacked = exponents[:-_N_MIXTURES] + exponents[-_N_MIXTURES:] @ by_clock
        return np.asarray(top[:2] @ by_clock + top[2] * stacked / max(stacked.sum(), 1.0))

    def ask(
        self,
        logs: Floats,
        kept_weights: Floats | None = None,
        part: float = 0.0,
        others: Sequence[Floats] = (),
        is_silent: NDArray[np.bool_] | None = None,
    ) -> Told:
        """Returns what members and candidates say.

        Args:
            logs: Log-probabilities of the members, (M, B, C).
            others: Log-probabilities of further candidates, (B, C) each.
            kept_weights: By kept rows, (T M,), in the place of those by the stream.
            part: How far they take that place.
            is_silent: Which members say nothing for now, (M,), and so have no weight; None where all speak.
        """
        each, shape = tempered(logs), logs.shape[1:]
        weights = self._by_clock
        if is_silent is not None:
            is_silent = np.tile(is_silent, len(TEMPERATURES))
            weights = softmax(np.where(is_silent, -np.inf, self.scores))
            kept_weights = None if kept_weights is None else np.where(is_silent, 0.0, kept_weights)
        if kept_weights is not None:
            weights = (1 - part) * weights + part * kept_weights / kept_weights.sum()
        candidates = np.empty((len(self.top), *shape))
        np.matmul(weights, each.reshape(len(each), -1), out=candidates[:_N_MIXTURES].reshape(_N_MIXTURES, -1))
        logs = np.concatenate([logs, np.log(candidates[:_N_MIXTURES])])
        candidates[2] = softmax((self.exponents @ logs.reshape(len(logs), -1)).reshape(shape))
        for i, other in enumerate(others):
            np.exp(other, out=candidates[3 + i])
        candidates[2:] += _FLOOR / shape[1]
        return Told(logs, each, candidates)

    def answer(self, candidates: Floats, *, by_kept_rows: bool = False) -> Floats:
        """Returns log-probabilities up to a constant, (B, C).

        Args:
            candidates: (3, B, C).
            by_kept_rows: Whether members were judged on kept rows, as the stack was not.
        """
        weights = np.array([0.5, 0.5, 0.0]) if by_kept_rows else self._by_candidate
        return np.asarray(np.log(weights @ candidates.reshape(len(candidates), -1)).reshape(candidates.shape[1:]))

    def learn(self, told: Told, y: Labels, weights: Floats) -> None:
        """Adds the evidence of B samples.

        Args:
            told: What was said to them.
            y: Their labels, (B,).
            weights: How much each counts, (B,), from 0 to 1.
        """
        at = np.arange(len(y)), y
        keep = 1 - (1 - _CLOCKS) * weights
        later = np.ones_like(keep)
        later[:, :-1] = np.cumprod(keep[:, :0:-1], axis=1)[:, ::-1]
        left, shares = keep[:, :1] * later[:, :1], weights * later
        self.scores = left[:2] * self.scores + shares[:2] @ np.log(told.each[:, *at]).T
        self.top = left[2] * self.top + np.log(told.candidates[:, *at]) @ shares[2]
        self._by_clock, self._by_candidate = softmax(self.scores), softmax(self.top)
        self._step(told, at, weights)

    def _step(self, told: Told, at: tuple[Labels, Labels], weights: Floats) -> None:
        """Moves the exponents by one of Newton's steps, a shorter one where a batch is long: many could overshoot."""
        logs, stacked = told.logs, told.candidates[2]
        expected = (logs * stacked).sum(axis=2)
        rows = logs.reshape(len(logs), -1)
        second = (rows * (stacked * weights[:, None]).ravel()) @ rows.T - (expected * weights) @ expected.T
        left = _CLOCKS[1, 0] ** weights.sum()
        self.curvature = left * self.curvature + second
        self.curvature.flat[:: len(logs) + 1] += (1 - left) * _RIDGE
        damped = self.curvature + max(len(weights) / TOGETHER - 1, 0.0) * _RIDGE * np.eye(len(logs))
        self.exponents = self.exponents + np.linalg.solve(damped, (logs[:, *at] - expected) @ weights)

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        sizes = {"tempered": self.scores.shape[1], "candidates": len(self.top), "stacked": len(self.exponents)}
        found = super().load_state_dict(state, **sizes)
        self._by_clock, self._by_candidate = softmax(self.scores), softmax(self.top)
        return found


class Backlog(Keeps):
    """Holds B rows. M members, K rules, C labels.

    Attributes:
        x: The rows, (B, d).
        y: Their labels, (B,).
        likely: log p(x | y) of the members when they came, (M, B, C).
        by_rules: log p(y | x) of the rules, (K, B, C).
        lifted: What the labels before them told, (B, C).
        surprise: Nats by which labels contradicted the answers, more than these expected.

    Example:
        >>> backlog = Backlog()
        >>> one = np.zeros((1, 1, 2))
        >>> for _ in range(10):
        ...     backlog.add(np.zeros((1, 3)), np.array([0]), one, one, np.zeros((1, 2)))
        >>> len(backlog), backlog.is_pressing
        (10, True)
    """

    kept: ClassVar = {
        "x": tensor("b", "d"),
        "y": integers("b", low=0),
        "likely": tensor("m", "b", "labels"),
        "by_rules": tensor("k", "b", "labels"),
        "lifted": tensor("b", "labels"),
        "surprise": number(0),
    }

    def __init__(self) -> None:
        self.y: Labels = np.zeros(0, np.int64)
        self.x = self.lifted = np.zeros((0, 0))
        self.likely = self.by_rules = np.zeros((0, 0, 0))
        self.surprise = 0.0

    def __len__(self) -> int:
        return len(self.y)

    def add(self, x: Floats, y: Labels, likely: Floats, by_rules: Floats, lifted: Floats) -> None:
        """Takes b rows in; see the attributes."""
        added: dict[str, Any] = {"x": x, "likely": likely, "by_rules": by_rules, "lifted": lifted, "y": y}
        for name, part in added.items():
            setattr(self, name, np.concatenate([getattr(self, name), part], _AXES[name]) if len(self.y) else part)

    @property
    def is_pressing(self) -> bool:
        """Whether it is time to learn them."""
        return len(self.y) >= TOGETHER or self.surprise > _SURPRISE

    def compare(self, said: Floats, y: Labels) -> None:
        """Adds to the surprise how far labels y (b,) were from the log-probabilities that were said, (b, C)."""
        expected = float(np.vdot(np.exp(said), said))
        self.surprise = max(0.0, self.surprise + expected - float(said[np.arange(len(y)), y].sum()))


def shares(weights: Floats, rules: Labels, others: Mapping[str, int]) -> dict[str, float]:
    """Returns how much of an answer comes from whom.

    Args:
        weights: Of the members, (M,): models first.
        rules: Which of them forget nothing, by number.
        others: What comes behind the models, and how many members that has.
    """
    part = weights / weights.sum()
    ends = np.cumsum([len(part) - sum(others.values()), *others.values()])
    told = {name: float(one.sum()) for name, one in zip(others, np.split(part, ends)[1:], strict=False)}
    by_rules = float(part[rules].sum())
    return {"rules": by_rules, "recent models": max(1 - by_rules - sum(told.values()), 0.0), **told}


def tempered(logs: Floats) -> Floats:
    """Returns probabilities at every temperature with the floor beneath them, (T M, B, C), of logs (M, B, C)."""
    told = np.empty((len(TEMPERATURES), *logs.shape))
    np.exp(TEMPERATURES[-1] * logs, out=told[-1])
    for i in range(len(TEMPERATURES) - 1, 0, -1):
        np.square(told[i], out=told[i - 1])  # each exponent is twice the one behind it
    told /= np.add.reduce(told, axis=3, keepdims=True)
    told += _FLOOR / logs.shape[2]
    return told.reshape(-1, *logs.shape[1:])


def softmax(logs: Floats) -> Floats:
    """Returns probabilities over the last dimension."""
    values: Floats = np.exp(logs - np.maximum.reduce(logs, axis=-1, keepdims=True))
    values /= np.add.reduce(values, axis=-1, keepdims=True)
    return values


def log_normalised(logs: Floats) -> Floats:
    """Returns log-probabilities over the last dimension, none below `LOWEST`."""
    values: Floats = logs - np.maximum.reduce(logs, axis=-1, keepdims=True)
    values -= np.log(np.add.reduce(np.exp(values), axis=-1, keepdims=True))
    return np.maximum(values, LOWEST, out=values)
