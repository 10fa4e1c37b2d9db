"""Ridge regressions over one representation that forget at several rates, and rules that forget nothing.

Each rests on faded sums over rows f with a constant, A = sum w f f' and b = sum w f y', and answers f' W with
W = P b, P = (A + ridge)^-1. A batch changes P and W by Woodbury's identity, which costs the square of the features;
from time to time P is made anew of A, since the identity lets the ridge fade with the rows and rounding add up. The
ridge is then moved towards the maximum of the evidence by a step of MacKay's fixed point (Bayesian interpolation,
1992): it is chosen by the rows, its share falls smoothly as they become more, and it is no constant of ours.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrf, dpotri

from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, tensor

__all__ = ["ValueMoments"]

ERRORS_KEEP = 0.995
"""What is left of a squared error's weight after the next one: noise rests on the latest 200."""

_FASTEST = 0.99
"""The same for what forgets fast."""

_GROWN = 0.1
"""Share of its rows that a regression without forgetting learns before P is made anew."""

_FIRST_STEPS = 3
"""Times that a regression of many rows at once is solved, each with a likelier ridge: after two, rules were founded
where nothing changed (friedman1, seeds 101 to 103)."""


class Answer(NamedTuple):
    """Holds what regressions say of B rows.

    Attributes:
        rows: Features and a constant, (B, d + 1).
        gains: Rows times every P, (R + K, B, d + 1).
        mean: (R + K, B, o).
        spread: 1 + f' P f, (R + K, B): the variance of a target in units of the noise.
    """

    rows: Floats
    gains: Floats
    mean: Floats
    spread: Floats


class ValueMoments(Keeps):
    """R regressions that forget, and K rules behind them.

    Args:
        n_features: d.
        n_outputs: o.
        keeps: What is left of a row's weight after the next one, of the R that forget.

    Example:
        >>> f = np.linspace(-1, 1, 50)[:, None]
        >>> regressions = ValueMoments(1, 1, keeps=(0.9,))
        >>> regressions.begin(f, 2 * f + 1)
        >>> regressions.answer(np.array([[0.5]])).mean.round(2).ravel()
        array([2., 2.])
    """

    kept: ClassVar = {
        **dict.fromkeys(("sums", "inverses"), tensor("members", "f", "f")),
        **dict.fromkeys(("products", "weights"), tensor("members", "f", "o")),
        **dict.fromkeys(("squares", "errors"), tensor("members", "o")),
        **dict.fromkeys(("n", "ridges", "since", "n_errors"), tensor("members")),
    }

    def __init__(self, n_features: int, n_outputs: int, keeps: tuple[float, ...]) -> None:
        self.keeps = np.array([*keeps, 1.0])
        d, m = n_features + 1, len(self.keeps)
        self.sums, self.inverses = np.zeros((m, d, d)), np.tile(np.eye(d), (m, 1, 1))
        self.products, self.weights = np.zeros((m, d, n_outputs)), np.zeros((m, d, n_outputs))
        self.squares, self.errors = np.zeros((m, n_outputs)), np.ones((m, n_outputs))
        self.n, self.ridges, self.since, self.n_errors = np.zeros(m), np.ones(m), np.zeros(m), np.ones(m)

    @property
    def n_recent(self) -> int:
        """R."""
        return len(self.keeps) - 1

    def answer(self, f: Floats) -> Answer:
        """Answers rows of features (B, d)."""
        rows = _with_constant(f)
        gains = rows @ self.inverses
        return Answer(rows, gains, rows @ self.weights, 1 + (gains * rows).sum(axis=2))

    def learn(self, y: Floats, answered: Answer, *, rule: int) -> None:
        """Learns rows that were answered.

        Args:
            y: Targets, (B, o).
            answered: What :meth:`answer` said of the rows since something was learned last.
            rule: Which rule learns besides those that forget.
        """
        slots = [*range(self.n_recent), self.n_recent + rule]
        ages = np.arange(len(y) - 1, -1, -1)
        squares = (y - answered.mean[slots]) ** 2 / answered.spread[slots][:, :, None]
        keeps = np.clip(self.keeps, _FASTEST, ERRORS_KEEP)[:, None]
        fades, left = keeps**ages, keeps ** len(y)
        self.errors[slots] = left * self.errors[slots] + np.einsum("sb,sbo->so", fades, squares)
        self.n_errors[slots] = left[:, 0] * self.n_errors[slots] + fades.sum(axis=1)
        for slot, keep in zip(slots, self.keeps, strict=True):
            self._learn(slot, y, answered, keep ** len(y), keep**ages)
            if self.since[slot] >= (1 / (1 - keep) if keep < 1 else max(10.0, _GROWN * self.n[slot])):
                self._solve(slot)

    def begin(self, f: Floats, y: Floats) -> None:
        """Learns rows at once as if they had come in turn and nothing before them.

        Args:
            f: Features, (n, d).
            y: Targets, (n, o).
        """
        for slot, keep in enumerate(self.keeps):
            self._begin(slot, keep, _with_constant(f), y)

    def refresh(self) -> None:
        """Makes anew what rests on a ridge that faded."""
        for slot in np.flatnonzero(self.since):
            self._solve(int(slot))

    def found(self, f: Floats, y: Floats) -> None:
        """Adds a rule.

        Args:
            f: Features of the rows that it has learned, (n, d).
            y: Their targets, (n, o).
        """
        for name in self.kept:
            setattr(self, name, np.concatenate([part := getattr(self, name), np.zeros_like(part[:1])]))
        self.ridges[-1] = 1.0
        self._begin(len(self.n) - 1, 1.0, _with_constant(f), y)

    def mean_of_rule(self, f: Floats, rule: int) -> Floats:
        """Returns what a rule says of rows, (B, o).

        Args:
            f: Features, (B, d).
            rule: Its index.
        """
        weights = self.weights[self.n_recent + rule]
        return np.asarray(f @ weights[:-1] + weights[-1])

    def log_densities(self, y: Floats, answered: Answer) -> Floats:
        """Returns the log density of targets under each rule up to a constant, (K, B).

        Args:
            y: Targets, (B, o).
            answered: Of the rows.
        """
        variance = self.variance(answered)[self.n_recent :]
        return np.asarray(-0.5 * ((y - answered.mean[self.n_recent :]) ** 2 / variance + np.log(variance)).sum(axis=-1))

    def variance(self, answered: Answer) -> Floats:
        """Returns variances of targets, (R + K, B, o)."""
        return np.asarray((self.errors / self.n_errors[:, None])[:, None] * answered.spread[:, :, None])

    def errors_of_rows(self, f: Floats, y: Floats) -> Floats:
        """Returns squared errors of the latest rule at rows that it has learned, each as if it were left out, (n, o).

        Args:
            f: Features, (n, d).
            y: Targets, (n, o).
        """
        rows = _with_constant(f)
        own = ((rows @ self.inverses[-1]) * rows).sum(axis=1)
        return np.asarray((y - rows @ self.weights[-1]) ** 2 / np.maximum(1 - own, 0.02)[:, None])

    def copy_rule(self, rule: int) -> dict[str, Floats]:
        """Returns a copy of everything about a rule."""
        return {name: getattr(self, name)[[self.n_recent + rule]] for name in self.kept}

    def set_rule(self, rule: int, copied: dict[str, Floats]) -> None:
        """Puts a rule back to what it was.

        Args:
            rule: Its index.
            copied: As :meth:`copy_rule` returned it.
        """
        for name in self.kept:
            getattr(self, name)[[self.n_recent + rule]] = copied[name]

    def drop(self, rule: int) -> None:
        """Forgets a rule."""
        for name in self.kept:
            setattr(self, name, np.delete(getattr(self, name), self.n_recent + rule, axis=0))

    def _learn(self, slot: int, y: Floats, answered: Answer, left: float, fade: Floats) -> None:
        rows, n = answered.rows, len(y)
        self._add(slot, rows, y, left, fade)
        gains = answered.gains[slot] / left  # rows P
        inner = gains @ rows.T
        inner.flat[:: n + 1] += 1 / fade
        factor = np.linalg.cholesky(inner)
        half = np.linalg.solve(factor, gains)  # P' = P / left - half' half
        dgemm(-1.0, half.T, half.T, 1 / left, self.inverses[slot].T, trans_b=1, overwrite_c=1)
        self.weights[slot] += half.T @ np.linalg.solve(factor, y - rows @ self.weights[slot])
        self.since[slot] += n

    def _add(self, slot: int, rows: Floats, y: Floats, left: float, fade: Floats) -> None:
        faded = rows * fade[:, None]
        # Transposed, arrays have the order of Fortran, and nothing is copied.
        dgemm(1.0, rows.T, faded.T, left, self.sums[slot].T, trans_b=1, overwrite_c=1)
        self.products[slot] = left * self.products[slot] + faded.T @ y
        self.squares[slot] = left * self.squares[slot] + fade @ (y * y)
        self.n[slot] = left * self.n[slot] + fade.sum()

    def _begin(self, slot: int, keep: float, rows: Floats, y: Floats) -> None:
        """Learns rows, with the errors of the latest, each left out of what learned it."""
        fade = keep ** np.arange(len(y) - 1.0, -1, -1)
        self._add(slot, rows, y, 0.0, fade)
        for _ in range(_FIRST_STEPS):
            self._solve(slot)
        own = fade * ((rows @ self.inverses[slot]) * rows).sum(axis=1)
        squares = (y - rows @ self.weights[slot]) ** 2 / np.maximum(1 - own, 0.02)[:, None]
        fade = fade * ERRORS_KEEP ** np.arange(len(y) - 1.0, -1, -1)
        self.n_errors[slot] = fade.sum()
        self.errors[slot] = fade @ squares + 1e-12

    def _solve(self, slot: int) -> None:
        """Makes P and W of the sums and takes one step towards the ridge of the greatest evidence."""
        precision, ridge = self.sums[slot].copy(), self.ridges[slot]
        precision.flat[:: len(precision) + 1] += ridge
        precision[-1, -1] += 1e-6 - ridge  # the constant has no ridge
        factor, failed = dpotrf(precision, lower=1, overwrite_a=1)
        self.since[slot] = 0
        if failed:  # features depend on each other to the last bit: what stood, stands
            return
        inverse = np.tril(dpotri(factor, lower=1, overwrite_c=1)[0])
        self.inverses[slot] = inverse + np.tril(inverse, -1).T
        weights = self.inverses[slot] @ self.products[slot]
        self.weights[slot] = weights
        determined = len(inverse) - 1 - ridge * np.trace(inverse[:-1, :-1])
        left = np.maximum(self.squares[slot] - (self.products[slot] * weights).sum(axis=0), 1e-9)
        size = ((weights[:-1] ** 2).sum(axis=0) / left).sum() * max(self.n[slot] - determined, 1.0)
        likelier = len(left) * determined / max(size, 1e-12)
        self.ridges[slot] = np.clip(likelier, 1e-3, 1e3 + self.n[slot])


def _with_constant(f: Floats) -> Floats:
    return np.hstack([f, np.ones((len(f), 1))])
