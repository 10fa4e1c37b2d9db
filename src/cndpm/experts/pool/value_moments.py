"""Ridge regressions over one representation that forget at several rates, and rules that forget nothing.

Each rests on faded sums over rows f with a constant, A = sum w f f' and b = sum w f y', and answers f' W with
W = P b, P = (A + ridge)^-1. A batch changes P and W by Woodbury's identity, which costs the square of the features;
from time to time P is made anew of A, since the identity lets the ridge fade with the rows and rounding add up. The
ridge is then moved towards the maximum of the evidence by a step of MacKay's fixed point (Bayesian interpolation,
1992): it is chosen by the rows, its share falls smoothly as they become more, and it is no constant of ours.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import dpotrf, dpotri

from cndpm.experts.pool.representations import Floats
from cndpm.state import State, expect, tensor

__all__ = ["ValueMoments"]

_GROWN = 0.1
"""Share of its rows that a regression without forgetting learns before P is made anew."""

_ERRORS_KEEP = (0.99, 0.998)
"""What is left of an error's weight after the next one, at least and at most: the noise rests on 100 to 500 errors."""

_NAMES = ("sums", "products", "squares", "n", "ridges", "inverses", "weights", "since", "errors", "n_errors")


class ValueMoments:
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

    def __init__(self, n_features: int, n_outputs: int, keeps: tuple[float, ...]) -> None:
        self.n_features, self.n_outputs, self.keeps = n_features, n_outputs, keeps
        d, m = n_features + 1, len(keeps) + 1
        self._sums, self._products = np.zeros((m, d, d)), np.zeros((m, d, n_outputs))
        self._squares, self._n, self._since = np.zeros((m, n_outputs)), np.zeros(m), np.zeros(m)
        self._ridges, self._weights = np.full(m, 1.0), np.zeros((m, d, n_outputs))
        self._inverses = np.tile(np.eye(d), (m, 1, 1))
        self._errors, self._n_errors = np.ones((m, n_outputs)), np.ones(m)

    @property
    def n_rules(self) -> int:
        """K."""
        return len(self._n) - len(self.keeps)

    @property
    def n_of_rules(self) -> Floats:
        """Rows that every rule has learned, (K,)."""
        return self._n[len(self.keeps) :]

    @property
    def noise(self) -> Floats:
        """Variance of the targets beside that of the weights, (R + K, o)."""
        return self._errors / self._n_errors[:, None]

    def answer(self, f: Floats) -> Answer:
        """Returns means and leverages of rows (B, d)."""
        rows = _with_constant(f)
        gains = rows @ self._inverses
        return Answer(rows, gains, rows @ self._weights, (gains * rows).sum(axis=2), self.noise)

    def learn(self, y: Floats, answered: Answer, *, rule: int) -> None:
        """Learns rows that were answered.

        Args:
            y: Targets, (B, o).
            answered: What :meth:`answer` said of the rows since something was learned last.
            rule: Which rule learns besides those that forget.
        """
        for slot in (*range(len(self.keeps)), len(self.keeps) + rule):
            self._note_errors(slot, y, answered)
            self._learn(slot, y, answered)

    def begin(self, f: Floats, y: Floats) -> None:
        """Learns rows at once as if they had come in turn, with errors of each row left out of what learned it."""
        rows = _with_constant(f)
        for slot in range(len(self._n)):
            self._begin(slot, rows, y)

    def refresh(self) -> None:
        """Makes anew what rests on a ridge that faded."""
        for slot in np.flatnonzero(self._since):
            self._solve(int(slot))

    def found(self, f: Floats, y: Floats) -> None:
        """Adds a rule that has learned rows (n, d) and targets (n, o)."""
        for name in _NAMES:
            part = getattr(self, f"_{name}")
            setattr(self, f"_{name}", np.concatenate([part, np.zeros_like(part[:1])]))
        self._ridges[-1], self._n_errors[-1] = 1.0, 1.0
        self._begin(len(self._n) - 1, _with_constant(f), y)

    def mean_of_rule(self, f: Floats, rule: int) -> Floats:
        """Returns what a rule says of rows (B, d), (B, o)."""
        weights = self._weights[len(self.keeps) + rule]
        return np.asarray(f @ weights[:-1] + weights[-1])

    def rule_state(self, rule: int) -> State:
        """Returns a copy of everything about a rule."""
        at = len(self.keeps) + rule
        return {name: torch.from_numpy(getattr(self, f"_{name}")[at : at + 1].copy()) for name in _NAMES}

    def set_rule(self, rule: int, state: State) -> None:
        """Puts a rule back to what :meth:`rule_state` returned."""
        for name in _NAMES:
            getattr(self, f"_{name}")[len(self.keeps) + rule] = state[name].numpy()[0]

    def drop(self, rule: int) -> None:
        """Forgets a rule."""
        for name in _NAMES:
            setattr(self, f"_{name}", np.delete(getattr(self, f"_{name}"), len(self.keeps) + rule, axis=0))

    def _keep(self, slot: int) -> float:
        return self.keeps[slot] if slot < len(self.keeps) else 1.0

    def _note_errors(self, slot: int, y: Floats, answered: Answer) -> None:
        squares = (y - answered.mean[slot]) ** 2 / (1 + answered.leverage[slot])[:, None]
        keep = min(max(self._keep(slot), _ERRORS_KEEP[0]), _ERRORS_KEEP[1])
        fade, left = _fading(keep, len(y)), keep ** len(y)
        self._errors[slot] = left * self._errors[slot] + fade @ squares
        self._n_errors[slot] = left * self._n_errors[slot] + fade.sum()

    def _learn(self, slot: int, y: Floats, answered: Answer) -> None:
        n, keep, rows = len(y), self._keep(slot), answered.rows
        left, fade = keep**n, _fading(keep, n)
        self._add(slot, rows, y, left, fade)
        gains = answered.gains[slot] / left  # rows P
        inner = gains @ rows.T
        inner.flat[:: n + 1] += 1 / fade
        factor = np.sqrt(inner) if n == 1 else np.linalg.cholesky(inner)
        half = _solved(factor, gains)  # P' = P / left - half' half
        _add_product(self._inverses[slot], half, half, alpha=-1.0, beta=1 / left)
        self._weights[slot] += half.T @ _solved(factor, y - rows @ self._weights[slot])
        self._since[slot] += n
        if self._since[slot] >= (1 / (1 - keep) if keep < 1 else max(10.0, _GROWN * self._n[slot])):
            self._solve(slot)

    def _add(self, slot: int, rows: Floats, y: Floats, left: float, fade: Floats) -> None:
        faded = rows * fade[:, None]
        _add_product(self._sums[slot], rows, faded, alpha=1.0, beta=left)
        self._products[slot] = left * self._products[slot] + faded.T @ y
        self._squares[slot] = left * self._squares[slot] + fade @ (y * y)
        self._n[slot] = left * self._n[slot] + fade.sum()

    def _begin(self, slot: int, rows: Floats, y: Floats) -> None:
        fade = _fading(self._keep(slot), len(y))
        self._add(slot, rows, y, 1.0, fade)
        for _ in range(_FIRST_STEPS):
            self._solve(slot)
        some = slice(-100, None)
        own = fade[some] * ((rows[some] @ self._inverses[slot]) * rows[some]).sum(axis=1)
        squares = (y[some] - rows[some] @ self._weights[slot]) ** 2 / np.maximum(1 - own, 0.02)[:, None]
        self._n_errors[slot] = fade[some].sum()
        self._errors[slot] = fade[some] @ squares + 1e-12

    def _solve(self, slot: int) -> None:
        """Makes P and W of the sums and takes one step towards the ridge of the greatest evidence."""
        d = self.n_features
        precision = self._sums[slot].copy()
        precision.flat[:: d + 2] += self._ridges[slot]
        precision[d, d] += 1e-6 - self._ridges[slot]  # the constant has no ridge
        factor, failed = dpotrf(precision, lower=1, overwrite_a=1)
        self._since[slot] = 0
        if failed:  # features depend on each other to the last bit: what stood, stands
            return
        inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
        inverse = np.tril(inverse)
        self._inverses[slot] = inverse + np.tril(inverse, -1).T
        self._weights[slot] = self._inverses[slot] @ self._products[slot]
        self._ridges[slot] = self._likelier_ridge(slot)

    def _likelier_ridge(self, slot: int) -> float:
        d, ridge, weights = self.n_features, self._ridges[slot], self._weights[slot]
        determined = d - ridge * np.trace(self._inverses[slot][:d, :d])
        left = np.maximum(self._squares[slot] - (self._products[slot] * weights).sum(axis=0), 1e-9)
        noise = left / max(self._n[slot] - determined, 1.0)
        size = (weights[:d] ** 2).sum(axis=0) / noise
        return float(np.clip(len(size) * determined / max(size.sum(), 1e-12), 1e-3, 1e3 + self._n[slot]))

    def state_dict(self) -> State:
        """Returns everything as tensors."""
        return {name: torch.from_numpy(getattr(self, f"_{name}").copy()) for name in _NAMES}

    def load_state_dict(self, state: State) -> None:
        """Takes a state of :meth:`state_dict`."""
        self.check(state)
        for name in _NAMES:
            setattr(self, f"_{name}", state[name].numpy().copy())

    def check(self, state: State) -> int:
        """Returns the rules of a state, or raises StateError where it has another form."""
        d, o = self.n_features + 1, self.n_outputs
        matrix, square = ("sums", "inverses"), tensor("members", d, d)
        forms = {name: tensor("members") for name in ("n", "ridges", "since", "n_errors")}
        forms |= {name: tensor("members", o) for name in ("squares", "errors")}
        forms |= {name: tensor("members", d, o) for name in ("products", "weights")}
        return expect(state, forms | dict.fromkeys(matrix, square))["members"] - len(self.keeps)


_FIRST_STEPS = 3
"""Times that a regression of many rows at once is solved, each with a likelier ridge: after two, rules were founded
where nothing changed (friedman1, seeds 101 to 103)."""


class Answer:
    """What regressions say of B rows.

    Attributes:
        rows: Features and a constant, (B, d + 1).
        gains: Rows times every P, (R + K, B, d + 1).
        mean: (R + K, B, o).
        leverage: f' P f, (R + K, B).
        variance: (R + K, B, o).
    """

    def __init__(self, rows: Floats, gains: Floats, mean: Floats, leverage: Floats, noise: Floats) -> None:
        self.rows, self.gains, self.mean, self.leverage = rows, gains, mean, leverage
        self.variance = noise[:, None] * (1 + leverage)[:, :, None]


def _fading(keep: float, n: int) -> Floats:
    """Returns the weights of n rows, the latest of which has one, (n,)."""
    return np.asarray(keep ** np.arange(n - 1, -1, -1), dtype=np.float64)


def _add_product(matrix: Floats, a: Floats, b: Floats, *, alpha: float, beta: float) -> None:
    """Makes a symmetric matrix beta matrix + alpha a' b, in place, of a and b (n, d)."""
    # Transposed, arrays have the order of Fortran, and nothing is copied.
    dgemm(alpha, a.T, b.T, beta, matrix.T, trans_b=1, overwrite_c=1)


def _solved(factor: Floats, right: Floats) -> Floats:
    """Solves for a triangular factor; of a single row it is a number."""
    return np.asarray(right / factor if len(factor) == 1 else np.linalg.solve(factor, right))


def _with_constant(f: Floats) -> Floats:
    return np.hstack([f, np.ones((len(f), 1))])
