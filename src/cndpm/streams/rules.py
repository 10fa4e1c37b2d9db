"""Rows whose rule changes while the distribution of x need not: drawn from a seed, without any download.

Every function draws the same rows for the same seed on every machine, as far as numpy's generators do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cndpm.streams.rows import Rows

Array = NDArray[np.float64]

_N, _CHANGE = 6000, 3000


def flipped_rule(seed: int) -> Rows:
    """Draws 6,000 rows of five features whose linear rule is reversed at row 3,000."""
    x, y, _ = _halfspace(np.random.default_rng(seed))
    return Rows(x, np.where(np.arange(_N) < _CHANGE, y, 1 - y), (_CHANGE,))


def rotated_rule(seed: int) -> Rows:
    """Draws the rows of :func:`flipped_rule` with a rule that is turned by 90 degrees at row 3,000 instead."""
    rng = np.random.default_rng(seed)
    x, y, normal = _halfspace(rng)
    other = _orthogonal(rng, normal)
    return Rows(x, np.where(np.arange(_N) < _CHANGE, y, x @ other > 0).astype(np.int64), (_CHANGE,))


def rules_in_turn(seed: int) -> Rows:
    """Draws 8,000 rows of five features under two linear rules at right angles that take turns of 2,000 rows."""
    rng = np.random.default_rng(seed)
    x, y, normal = _halfspace(rng, n=8000)
    other = (x @ _orthogonal(rng, normal) > 0).astype(np.int64)
    return Rows(x, np.where(np.arange(8000) // 2000 % 2 == 0, y, other), (2000, 4000, 6000))


def turning_rule(seed: int) -> Rows:
    """Draws 6,000 rows of ten features and three classes whose linear rule turns by 180 degrees, a little every row."""
    rng = np.random.default_rng(seed)
    _orthogonal(rng, _halfspace(rng)[2])  # follows these draws, so that a seed gives one family of streams
    sine, cosine, x = rng.normal(size=(10, 3)), rng.normal(size=(10, 3)), rng.normal(size=(_N, 10))
    angle = np.arange(_N)[:, None] / _N * np.pi
    return Rows(x, (np.cos(angle) * (x @ cosine) + np.sin(angle) * (x @ sine)).argmax(1))


def tripling_scales(seed: int) -> Rows:
    """Draws five domains of 1,000 rows, eight features, a linear rule of its own each; the scale triples every time."""
    rng = np.random.default_rng(seed)
    rules, x = rng.normal(size=(5, 8)), rng.normal(size=(5, 1000, 8))
    y = np.einsum("knd,kd->kn", x, rules) > 0
    x *= 3.0 ** np.arange(5)[:, None, None]
    return Rows(x.reshape(5000, 8), y.reshape(5000).astype(np.int64), (1000, 2000, 3000, 4000))


def flipped_sign(seed: int) -> Rows:
    """Draws 6,000 rows of five features and a linear target whose sign is reversed at row 3,000.

    Its deviation is the square root of five for every seed, that of the noise on it 0.1.
    """
    rng = np.random.default_rng(seed)
    weights, x = rng.normal(size=5), rng.normal(size=(_N, 5))
    weights *= np.sqrt(5 / (weights @ weights))
    sign = np.where(np.arange(_N) < _CHANGE, 1.0, -1.0)
    return Rows(x, sign * (x @ weights) + 0.1 * rng.normal(size=_N), (_CHANGE,))


def _halfspace(rng: np.random.Generator, n: int = _N) -> tuple[Array, NDArray[np.int64], Array]:
    """Draws rows (n, 5), the side of a plane on which they lie (n,), and the plane's normal (5,)."""
    normal = rng.normal(size=5)
    x = rng.normal(size=(n, 5))
    return x, (x @ normal > 0).astype(np.int64), normal


def _orthogonal(rng: np.random.Generator, normal: Array) -> Array:
    """Draws a direction at right angles to another, (5,)."""
    other: Array = rng.normal(size=5)
    other -= normal * (normal @ other) / (normal @ normal)
    return other
