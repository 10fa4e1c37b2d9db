"""All members of a pool for values: regressions over three representations, and means of the nearest rows.

Outside the range of the rows so far nothing is known of what bends. There members answer as at the edge, continued
along the straight line that the first representation learned, and the variance grows with the square of the way from
the edge times that of the slopes which the waves have inside, beside the straight line's.
"""

from __future__ import annotations

import numpy as np
import torch

from cndpm.experts.pool.latest_rows import WINDOWS, LatestRows
from cndpm.experts.pool.representations import Floats, Representations
from cndpm.experts.pool.value_moments import Answer, ValueMoments
from cndpm.state import State, StateError, expect, part, tensor

__all__ = ["KEEPS", "Said", "ValueMembers"]

KEEPS = ((0.95, 0.985, 0.996), (0.99, 0.998), (0.99, 0.998))
"""What is left of a row's weight after the next one: row, waves and steps; each has rules besides."""

N_MEMBERS = sum(len(keeps) + 1 for keeps in KEEPS) + len(WINDOWS)

_ERRORS_KEEP = 0.995
_STEP = 0.25
"""Deviations over which slopes are measured."""

_ARRAYS = ("middle", "scale", "low", "high", "relevance", "bends", "errors", "far", "n_errors")


class Said:
    """Holds what members say of B rows.

    Attributes:
        x: The rows, (B, d).
        z: Where they lie among those kept, (B, d).
        answers: Of the regressions, one for each representation.
        distances: To the nearest rows, in units of the usual one, (4, B).
        far: The same, as they are.
        mean: Of all members, (M, B, o).
        variance: Of all members, (M, B, o).
        width: How much larger squared errors are near each row than everywhere, (B,).

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 2))
        >>> rows = LatestRows(2, 1, room=50)
        >>> rows.add(x, x[:, :1], np.ones(50))
        >>> said = ValueMembers(rows, seed=[0]).say(x[:3], rows, np.ones(1))
        >>> said.mean.shape == (N_MEMBERS, 3, 1)
        True
    """

    x: Floats
    z: Floats
    answers: list[Answer]
    distances: Floats
    far: Floats
    mean: Floats
    variance: Floats
    width: Floats


class ValueMembers:
    """Members made of the rows so far.

    Args:
        kept: At least two rows.
        seed: Of the waves.

    Example:
        >>> kept = LatestRows(1, 1, room=100)
        >>> x = np.linspace(-1, 1, 60)[:, None]
        >>> kept.add(x, 3 * x, np.ones(60))
        >>> said = ValueMembers(kept, seed=0).say(x[:5], kept, np.ones(1))
        >>> said.mean.shape == (N_MEMBERS, 5, 1)
        True
    """

    def __init__(self, kept: LatestRows, seed: int | list[int]) -> None:
        x, y = kept.x, kept.y
        deviation = y.std(axis=0)
        self.middle, self.scale = y.mean(axis=0), np.where(deviation > 1e-12, deviation, 1.0)
        self.low, self.high = x.min(axis=0), x.max(axis=0)
        values = self.in_units(y)
        self.maps = Representations.fit(x, values, np.random.default_rng(seed))
        self.moments = _empty_moments(self.maps, y.shape[1])
        for moments, features in zip(self.moments, self.maps(x), strict=True):
            moments.begin(features, values)
        self.relevance, self.bends = np.ones(x.shape[1]), np.zeros((x.shape[1], y.shape[1]))
        self.errors, self.far, self.n_errors = np.ones((len(WINDOWS), y.shape[1])), np.ones(len(WINDOWS)), np.ones(1)
        self.measure_slopes(kept, 0)

    def in_units(self, y: Floats) -> Floats:
        """Returns targets in standard units."""
        return np.asarray((y - self.middle) / self.scale)

    def say(self, x: Floats, kept: LatestRows, weights: Floats) -> Said:
        """Asks all members.

        Args:
            x: Rows, (B, d).
            kept: Where neighbours are looked for.
            weights: Of the rules, (K,).
        """
        said = Said()
        said.x, features = x.copy(), self.maps(x)
        said.answers = [moments.answer(f) for moments, f in zip(self.moments, features, strict=True)]
        edge = np.clip(x, self.low, self.high)
        outside = bool((edge != x).any())
        at_edge = self.maps(edge) if outside else features
        shown = (
            [said.answers[0], *(m.answer(f) for m, f in zip(self.moments[1:], at_edge[1:], strict=True))]
            if outside
            else said.answers
        )
        regressions = [
            _with_rules(answer, len(m.keeps), weights) for answer, m in zip(shown, self.moments, strict=True)
        ]
        said.z = features[0] * self.relevance
        near = kept.near(at_edge[0] * self.relevance)
        said.far, said.distances, said.width = near.far, near.far / self._usual_distance()[:, None], near.width
        noise = (self.errors / self.n_errors)[:, None] * (1 + said.distances)[:, :, None]
        said.mean = np.concatenate([*(mean for mean, _ in regressions), self.in_units(near.mean)])
        said.variance = np.maximum(np.concatenate([*(variance for _, variance in regressions), noise]), 1e-12)
        if outside:
            self._continue(said, features[0], at_edge[0], weights)
        return said

    def _continue(self, said: Said, z: Floats, at_edge: Floats, weights: Floats) -> None:
        """Continues what was said at the edge to rows outside."""
        straight = self.moments[0]
        steps = [straight.mean_of_rule(z, k) - straight.mean_of_rule(at_edge, k) for k in range(len(weights))]
        said.mean[len(KEEPS[0]) + 1 :] += np.tensordot(weights, np.stack(steps), 1)
        said.variance += (z - at_edge) ** 2 @ self.bends**2

    def _usual_distance(self) -> Floats:
        return np.maximum(self.far / self.n_errors, 1e-12)

    def learn(self, values: Floats, said: Said, rule: int) -> None:
        """Learns what was asked.

        Args:
            values: Targets in standard units, (B, o).
            said: Of the rows.
            rule: That learns them.
        """
        for moments, answer in zip(self.moments, said.answers, strict=True):
            moments.learn(values, answer, rule=rule)
        fade, left = _ERRORS_KEEP ** np.arange(len(values) - 1, -1, -1), _ERRORS_KEEP ** len(values)
        squares = (values - said.mean[-len(WINDOWS) :]) ** 2 / (1 + said.distances)[:, :, None]
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
        for moments, features in zip(self.moments, self.maps(x), strict=True):
            moments.found(features, values)

    def measure_slopes(self, kept: LatestRows, rule: int) -> None:
        """Measures how much the waves rise along each column, and says anew where the rows kept lie.

        Distances count columns by their slopes, as expected gradients do (Trivedi et al. 2014); with few rows less so.

        Args:
            kept: The rows.
            rule: The one whose waves are looked at.
        """
        d, n = kept.x.shape[1], len(kept)
        some = kept.x[:: max(1, n * d // 300)]  # asked 2 d times
        step = _STEP * np.diag(np.maximum(kept.x.std(axis=0), 1e-9))
        both = np.concatenate([some + way for way in (*step, *-step)])
        features = self.maps(both)
        rise = self.moments[1].mean_of_rule(features[1], rule).reshape(2, d, len(some), -1)
        straight = self.moments[0].mean_of_rule(features[0], rule).reshape(2, d, len(some), -1)
        slopes = (rise[0] - rise[1]) / (2 * _STEP)
        squares = (slopes**2).mean(axis=(1, 2))
        self.bends = np.sqrt(((slopes - (straight[0] - straight[1]) / (2 * _STEP)) ** 2).mean(axis=1))
        self.relevance = np.sqrt((squares + (d / n) * squares.mean() + 1e-9) / (squares.mean() + 1e-9))
        kept.place(self.maps.units(kept.x) * self.relevance)
        middle = kept.near(self.maps.units(some) * self.relevance).far.mean(axis=1)
        self.far = 1.25 * middle * self.n_errors  # each is the nearest of itself

    def state_dict(self) -> State:
        """Returns everything as tensors."""
        arrays = {name: torch.from_numpy(getattr(self, name).copy()) for name in _ARRAYS}
        return arrays | {"maps": self.maps.state_dict(), "moments": [m.state_dict() for m in self.moments]}

    @classmethod
    def from_state(cls, state: State, n_columns: int, n_outputs: int) -> ValueMembers:
        """Makes them of a state.

        Args:
            state: Of :meth:`state_dict`.
            n_columns: d.
            n_outputs: o.
        """
        windows = len(WINDOWS)
        forms = dict.fromkeys(("low", "high", "relevance"), tensor("d")) | dict.fromkeys(
            ("middle", "scale"), tensor("o")
        )
        forms |= {
            "bends": tensor("d", "o"),
            "errors": tensor(windows, "o"),
            "far": tensor(windows),
            "n_errors": tensor(1),
        }
        expect(state, forms | {"maps": part()}, d=n_columns, o=n_outputs)
        made = cls.__new__(cls)
        for name in _ARRAYS:
            setattr(made, name, state[name].numpy().copy())
        made.maps = Representations()
        made.maps.load_state_dict(state["maps"], d=n_columns)
        made.moments = _empty_moments(made.maps, n_outputs)
        parts = state.get("moments")
        if not isinstance(parts, list) or len(parts) != len(KEEPS):
            raise StateError(
                f"'moments' must be a list of {len(KEEPS)}, one for each representation; got {str(parts)[:80]}"
            )
        for moments, one in zip(made.moments, parts, strict=True):
            moments.load_state_dict(one)
        return made


def _empty_moments(maps: Representations, n_outputs: int) -> list[ValueMoments]:
    return [ValueMoments(size, n_outputs, keeps) for size, keeps in zip(maps.sizes, KEEPS, strict=True)]


def _with_rules(answer: Answer, n_recent: int, weights: Floats) -> tuple[Floats, Floats]:
    """Returns means and variances, (R + 1, B, o), of what forgets and of the rules by their weights."""
    if len(weights) == 1:
        return answer.mean, answer.variance
    mean, variance = answer.mean[n_recent:], answer.variance[n_recent:]
    middle = np.tensordot(weights, mean, 1)
    spread = np.tensordot(weights, variance + (mean - middle) ** 2, 1)
    return (
        np.concatenate([answer.mean[:n_recent], middle[None]]),
        np.concatenate([answer.variance[:n_recent], spread[None]]),
    )
