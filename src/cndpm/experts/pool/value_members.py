"""All members of a pool for values: regressions over three representations, and the nearest rows.

The last member takes what the waves say and adds what they leave of the nearest rows. How wide noise is at a row is a
regression of its own, of the log of squared errors on the waves: log-linear, by Newton's steps on the likelihood of
their ratios to the variance that was answered, with the ridge of the greatest evidence, so that noise is the same
everywhere unless rows tell otherwise.

Outside the range of the rows so far nothing is known of what bends. There members answer as at the edge, continued
along the straight line that the first representation learned, and the variance grows with the square of the way from
the edge times that of the slopes which the waves have inside, beside the straight line's.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np

from cndpm.experts.pool.latest_rows import WINDOWS, LatestRows
from cndpm.experts.pool.representations import Floats, Representations
from cndpm.experts.pool.value_moments import ERRORS_KEEP, Answer, ValueMoments
from cndpm.state import Keeps, State, StateError, expect, part, tensor

__all__ = ["KEEPS", "ValueMembers"]

KEEPS = ((0.95, 0.985, 0.996), (0.99, 0.998), (0.99, 0.998))
"""What is left of a row's weight after the next one: row, waves and steps; each has rules besides."""

N_MEMBERS = sum(len(keeps) + 1 for keeps in KEEPS) + len(WINDOWS)

_STEP = 0.25
"""Deviations over which slopes are measured."""

_MOST = 25.0
"""Squared error in units of the variance that counts at most, and how much wider noise may be somewhere."""


class Said(NamedTuple):
    """Holds what members say of B rows.

    Attributes:
        x: The rows, (B, d).
        z: Where they lie among those kept, (B, d).
        answers: Of the regressions, one for each representation.
        noise: That of the log of squared errors.
        widths: How much wider noise is at each row than elsewhere, (B, 1).
        far: Mean squares of the distances to the nearest rows, (4, B).
        mean: Of all members, (M, B, o).
        variance: Of all members, (M, B, o).
    """

    x: Floats
    z: Floats
    answers: list[Answer]
    noise: Answer
    widths: Floats
    far: Floats
    mean: Floats
    variance: Floats


class ValueMembers(Keeps):
    """Members made of the rows so far.

    Args:
        kept: At least two rows.
        seed: Of the waves.
        former: Those of fewer rows; waves go by the slopes that they had, and neighbours by their errors.

    Example:
        >>> rows = LatestRows(1, 1, room=100)
        >>> x = np.linspace(-1, 1, 60)[:, None]
        >>> rows.add(x, 3 * x)
        >>> said = ValueMembers(rows, seed=0).say(x[:5], rows, np.ones(1))
        >>> said.mean.shape == (N_MEMBERS, 5, 1)
        True
    """

    kept: ClassVar = {
        **dict.fromkeys(("low", "high", "relevance"), tensor("d")),
        **dict.fromkeys(("middle", "scale"), tensor("o")),
        "bends": tensor("d", "o"),
        "errors": tensor(len(WINDOWS), "o"),
        "far": tensor(len(WINDOWS)),
        "n_errors": tensor(1),
    }

    relevance: Floats
    errors: Floats
    n_errors: Floats

    def __init__(self, rows: LatestRows, seed: int | list[int], former: ValueMembers | None = None) -> None:
        x, y, (d, o) = rows.x, rows.y, (rows.x.shape[1], rows.y.shape[1])
        deviation = y.std(axis=0)
        self.middle, self.scale = y.mean(axis=0), np.where(deviation > 1e-12, deviation, 1.0)
        self.low, self.high = x.min(axis=0), x.max(axis=0)
        self.maps = Representations.fit(x, self.in_units(y), np.random.default_rng(seed))
        if former is not None:
            self.maps.frequencies *= former.relevance[:, None]
        self._begin(o)
        features = self.maps(x)
        for moments, f in zip(self.moments, features, strict=True):
            moments.begin(f, self.in_units(y))
        self.relevance, self.bends = np.ones(d), np.zeros((d, o))
        self.errors, self.far, self.n_errors = np.ones((len(WINDOWS), o)), np.ones(len(WINDOWS)), np.ones(1)
        if former is not None:
            self.errors, self.n_errors = former.errors * (former.scale / self.scale) ** 2, former.n_errors
        self.measure_slopes(rows, 0)

    def _begin(self, n_outputs: int) -> None:
        sizes = self.maps.sizes
        self.moments = [ValueMoments(size, n_outputs, keeps) for size, keeps in zip(sizes, KEEPS, strict=True)]
        self.noise = ValueMoments(sizes[1], 1, ())

    def _begin_widths(self, features: list[Floats], values: Floats) -> None:
        """Learns how wide noise is of the errors of the best rule at rows left out of it, (n, d) and (n, o)."""
        errors = [m.errors_of_rows(f, values) for m, f in zip(self.moments, features, strict=True)]
        squares = min(errors, key=lambda one: float(one.mean())).mean(axis=1)
        ratios = squares / max(squares.mean(), 1e-12)
        for _ in range(4):
            self.noise.begin(features[1], _of_log(self.noise.mean_of_rule(features[1], 0), ratios))

    def in_units(self, y: Floats) -> Floats:
        """Returns targets in standard units."""
        return np.asarray((y - self.middle) / self.scale)

    def say(self, x: Floats, rows: LatestRows, weights: Floats) -> Said:
        """Asks all members.

        Args:
            x: Rows, (B, d).
            rows: Where neighbours are looked for.
            weights: Of the rules, (K,).
        """
        edge, features = np.clip(x, self.low, self.high), self.maps(x)
        outside = bool((edge != x).any())
        at_edge = self.maps(edge) if outside else features
        noise = self.noise.answer(at_edge[1])
        answers = [moments.answer(f) for moments, f in zip(self.moments, features, strict=True)]
        shown = answers
        if outside:
            shown = [answers[0], *(m.answer(f) for m, f in zip(self.moments[1:], at_edge[1:], strict=True))]
        near, far = self._near(at_edge[0] * self.relevance, rows, shown[1], weights)
        told = [_with_rules(one, m, weights) for one, m in zip(shown, self.moments, strict=True)]
        usual = np.maximum(self.far / self.n_errors, 1e-12)
        spread = (self.errors / self.n_errors)[:, None] * (1 + far / usual[:, None])[:, :, None]
        mean = np.concatenate([*(mean for mean, _ in told), near])
        variance = np.maximum(np.concatenate([*(variance for _, variance in told), spread]), 1e-12)
        widths = np.exp(_bounded(noise.mean[0]))
        if outside:
            self._continue(mean, variance, features[0], at_edge[0], weights)
            widths = np.where((edge != x).any(axis=1, keepdims=True), np.maximum(widths, 1), widths)
        return Said(x.copy(), features[0] * self.relevance, answers, noise, widths, far, mean, variance)

    def _near(self, z: Floats, rows: LatestRows, waves: Answer, weights: Floats) -> tuple[Floats, Floats]:
        """Returns what the nearest rows say, (4, B, o), and how far they are, (4, B)."""
        found, y = rows.near(z), self.in_units(rows.y)
        if not len(rows):
            return np.zeros((len(found), len(z), len(self.middle))), np.full((len(found), len(z)), 1e6)
        mean = [np.einsum("bk,bko->bo", w, y[at]) for at, w, _ in found[:-1]]
        at, w, _ = found[-1]
        moments, f = self.moments[1], self.maps(rows.x[at.ravel()])[1]
        fitted = sum(p * moments.mean_of_rule(f, k) for k, p in enumerate(weights)).reshape(*at.shape, -1)
        mean.append(
            np.tensordot(weights, waves.mean[moments.n_recent :], 1) + np.einsum("bk,bko->bo", w, y[at] - fitted)
        )
        return np.stack(mean), np.stack([far.mean(axis=1) for _, _, far in found])

    def _continue(self, mean: Floats, variance: Floats, z: Floats, at_edge: Floats, weights: Floats) -> None:
        """Continues what was said at the edge to rows outside."""
        straight = self.moments[0]
        steps = [straight.mean_of_rule(z, k) - straight.mean_of_rule(at_edge, k) for k in range(len(weights))]
        mean[len(KEEPS[0]) + 1 :] += np.tensordot(weights, np.stack(steps), 1)
        variance += (z - at_edge) ** 2 @ self.bends**2

    def learn(self, values: Floats, said: Said, ratios: Floats, rule: int) -> None:
        """Learns what was asked.

        Args:
            values: Targets in standard units, (B, o).
            said: Of the rows.
            ratios: Squared errors in units of the variance that was answered, (B,).
            rule: That learns them.
        """
        for moments, answer in zip(self.moments, said.answers, strict=True):
            moments.learn(values, answer, rule=rule)
        self.noise.learn(_of_log(said.noise.mean[0], ratios), said.noise, rule=0)
        fade, left = ERRORS_KEEP ** np.arange(len(values) - 1, -1, -1), ERRORS_KEEP ** len(values)
        usual = np.maximum(self.far / self.n_errors, 1e-12)
        spread = 1 + said.far / usual[:, None]
        squares = (values - said.mean[-len(WINDOWS) :]) ** 2 / spread[:, :, None]
        self.errors = left * self.errors + np.tensordot(squares, fade, (1, 0))
        self.far = left * self.far + said.far @ fade
        self.n_errors = left * self.n_errors + fade.sum()
        self.low, self.high = np.minimum(self.low, said.x.min(axis=0)), np.maximum(self.high, said.x.max(axis=0))

    def found(self, x: Floats, values: Floats) -> None:
        """Adds a rule.

        Args:
            x: The rows that it is of, (n, d).
            values: Their targets in standard units, (n, o).
        """
        for moments, f in zip(self.moments, self.maps(x), strict=True):
            moments.found(f, values)

    def measure_slopes(self, rows: LatestRows, rule: int) -> None:
        """Measures how much the waves rise along each column, and says anew where the rows kept lie.

        Distances count columns by their slopes, as expected gradients do (Trivedi et al. 2014); with few rows less so.

        Args:
            rows: Those kept.
            rule: The one whose waves are looked at.
        """
        d, n = rows.x.shape[1], len(rows)
        some = rows.x[:: max(1, n * d // 300)]  # asked 2 d times
        step = _STEP * np.diag(np.maximum(rows.x.std(axis=0), 1e-9))
        both = self.maps(np.concatenate([some + way for way in (*step, *-step)]))
        told = [m.mean_of_rule(f, rule).reshape(2, d, len(some), -1) for m, f in zip(self.moments, both, strict=True)]
        straight, slopes, _ = ((rise[0] - rise[1]) / (2 * _STEP) for rise in told)
        squares = (slopes**2).mean(axis=(1, 2))
        self.bends = np.sqrt(((slopes - straight) ** 2).mean(axis=1))
        self.relevance = np.sqrt((squares + (d / n) * squares.mean() + 1e-9) / (squares.mean() + 1e-9))
        rows.place(self.maps.units(rows.x) * self.relevance)
        if n <= 1000 and len(self.moments[0].n) == self.moments[0].n_recent + 1:
            self._begin_widths(self.maps(rows.x), self.in_units(rows.y))
        near = rows.near(self.maps.units(some) * self.relevance)
        self.far = 1.25 * np.array([far.mean() for _, _, far in near]) * self.n_errors  # each is the nearest of itself

    def state_dict(self) -> State:
        """Returns everything as tensors."""
        parts = {"maps": self.maps.state_dict(), "noise": self.noise.state_dict()}
        return super().state_dict() | parts | {"moments": [m.state_dict() for m in self.moments]}

    @classmethod
    def from_state(cls, state: State, n_columns: int, n_outputs: int, n_rules: int) -> ValueMembers:
        """Makes them of a state.

        Args:
            state: Of :meth:`state_dict`.
            n_columns: d.
            n_outputs: o.
            n_rules: K.
        """
        made = cls.__new__(cls)
        made.load_state_dict(state, d=n_columns, o=n_outputs)
        expect(state, {"maps": part(), "noise": part()})
        made.maps = Representations()
        made.maps.load_state_dict(state["maps"], d=n_columns)
        made._begin(n_outputs)
        parts = state.get("moments")
        if not isinstance(parts, list) or len(parts) != len(KEEPS):
            raise StateError(f"'moments' must be a list of {len(KEEPS)}; got {str(parts)[:80]}")
        for moments, one in zip(made.moments, parts, strict=True):
            moments.load_state_dict(one, f=moments.sums.shape[1], o=n_outputs, members=moments.n_recent + n_rules)
        made.noise.load_state_dict(state["noise"], f=made.noise.sums.shape[1], o=1, members=1)
        return made


def _of_log(logs: Floats, ratios: Floats) -> Floats:
    """Returns what logs of widths (B, 1) would be to the first order, given squared errors (B,), (B, 1)."""
    logs = _bounded(logs)
    return np.asarray(logs + np.minimum(ratios[:, None] / np.exp(logs), _MOST) - 1)


def _bounded(logs: Floats) -> Floats:
    return np.clip(logs, -np.log(_MOST), np.log(_MOST))


def _with_rules(answer: Answer, moments: ValueMoments, weights: Floats) -> tuple[Floats, Floats]:
    """Returns means and variances, (R + 1, B, o), of what forgets and of the rules by their weights."""
    mean, variance, n = answer.mean, moments.variance(answer), moments.n_recent
    if len(weights) == 1:
        return mean, variance
    middle = np.tensordot(weights, mean[n:], 1)
    spread = np.tensordot(weights, variance[n:] + (mean[n:] - middle) ** 2, 1)
    return np.concatenate([mean[:n], middle[None]]), np.concatenate([variance[:n], spread[None]])
