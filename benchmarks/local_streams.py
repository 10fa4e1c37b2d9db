"""Six streams whose rule is local, or whose labels come in runs: what smooth experts miss.

Seed 0 draws the rows that the project's figures belong to; every other seed draws others of the same kind. They are for
development: what is reported should also be tried on streams that nobody chose a form by.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cndpm.streams import Rows

__all__ = ["STREAMS", "draw"]

Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]


def board(rng: np.random.Generator, side: int = 6, n_visits: int = 160, stay: int = 50) -> Labelled:
    """Draws fields of a board in one of five colours, visited for a while each; then 2,000 rows from everywhere."""
    colours = rng.integers(0, 5, (side, side))
    xs, ys = [], []
    for _ in range(n_visits):
        i, j = rng.integers(0, side, 2)
        xs.append(np.stack([i + rng.uniform(size=stay), j + rng.uniform(size=stay)], 1))
        ys.append(np.full(stay, colours[i, j]))
    everywhere = rng.uniform(0, side, (2000, 2))
    columns, lines = everywhere.astype(int).T
    return np.concatenate([*xs, everywhere]), np.concatenate([*ys, colours[columns, lines]])


def objects(rng: np.random.Generator, n_classes: int = 30, n_columns: int = 20, n_visits: int = 500) -> Labelled:
    """Draws objects that are turned about for 8 to 15 rows each, in a light that wanders."""
    shapes = rng.normal(size=(n_classes, n_columns))
    light = rng.normal(size=(3, n_columns))
    state, xs, ys = np.zeros(3), [], []
    for _ in range(n_visits):
        k, n = int(rng.integers(n_classes)), rng.integers(8, 16)
        pose = 0.8 * rng.normal(size=n_columns)
        for _ in range(n):
            state = 0.98 * state + 0.2 * rng.normal(size=3)
            pose = 0.9 * pose + 0.3 * rng.normal(size=n_columns)
            xs.append(shapes[k] + pose + 0.7 * state @ light)
            ys.append(k)
    return np.array(xs), np.array(ys)


def demand(rng: np.random.Generator, n: int = 8000, day: int = 48) -> Labelled:
    """Draws whether a price is above its mean of a day; what demand does to it changes half-way."""
    t = np.arange(n + day)
    walk = np.zeros(n + day)
    for i in range(1, n + day):
        walk[i] = 0.97 * walk[i - 1] + rng.normal()
    asked = np.sin(2 * np.pi * t / day) + 0.3 * rng.normal(size=n + day)
    price = walk + np.where(t < (n + day) // 2, 1.0, -0.4) * asked
    mean = np.convolve(price, np.ones(day) / day)[: n + day]
    seen = mean + 0.5 * rng.normal(size=n + day)
    x = np.stack([(t % day) / day, asked, np.roll(asked, 1), (t // day % 7) / 7, seen], 1)
    return x[day:], (price > mean)[day:].astype(np.int64)


def spirals(rng: np.random.Generator, n: int = 6000) -> Labelled:
    """Draws two spirals that are turned by a quarter half-way."""
    y = rng.integers(0, 2, n)
    r = np.sqrt(rng.uniform(size=n)) * 3
    angle = 2.2 * r + np.pi * y + np.where(np.arange(n) < n // 2, 0.0, np.pi / 2)
    return np.stack([r * np.cos(angle), r * np.sin(angle)], 1) + 0.12 * rng.normal(size=(n, 2)), y


def clusters(rng: np.random.Generator, n: int = 8000, n_classes: int = 15, n_columns: int = 12) -> Labelled:
    """Draws classes of five clusters each."""
    centres = 1.6 * rng.normal(size=(n_classes, 5, n_columns))
    y, part = rng.integers(0, n_classes, n), rng.integers(0, 5, n)
    return centres[y, part] + 0.8 * rng.normal(size=(n, n_columns)), y


def squares(rng: np.random.Generator, n: int = 8000) -> Labelled:
    """Draws four squares that go round together; their labels come in turn, three rows each."""
    y = np.arange(n) // 3 % 4
    corner = np.stack([np.cos(np.arange(n) / 150), np.sin(np.arange(n) / 150)], 1) * 4
    shift = np.array([[0, 0], [2.5, 0], [0, 2.5], [2.5, 2.5]])[y]
    return corner + shift + rng.uniform(0, 2, (n, 2)), y


_CHANGES = {"demand": (3976,), "spirals": (3000,)}

STREAMS: dict[str, Callable[[np.random.Generator], Labelled]] = {
    make.__name__: make for make in (board, objects, demand, spirals, clusters, squares)
}
"""The streams by name, in order."""


def draw(name: str, seed: int = 0) -> Rows:
    """Returns the rows of a stream, and where its rule changes at once.

    Args:
        name: Of :data:`STREAMS`.
        seed: Of the rows.
    """
    number = list(STREAMS).index(name)
    return Rows(*STREAMS[name](np.random.default_rng(100 + number + 1000 * seed)), _CHANGES.get(name, ()))
