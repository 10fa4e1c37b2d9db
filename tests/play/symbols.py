"""Symbols drawn by a hand that is never quite the same: strokes of points around (0, 0), about 1 to each side."""

from itertools import pairwise

import numpy as np


def _line(*corners, n=8):
    ends = np.array(corners, dtype=float)
    pieces = [a + (b - a) * np.linspace(0, 1, n)[:, None] for a, b in pairwise(ends)]
    return np.concatenate(pieces)


_TURNS = np.linspace(0, 2 * np.pi, 24)
_TIPS = [(np.sin(i * np.pi / 5) * r, -np.cos(i * np.pi / 5) * r) for i in range(11) for r in [1 if i % 2 == 0 else 0.4]]

SYMBOLS = {
    "ring": [np.stack([np.sin(_TURNS), -np.cos(_TURNS)], axis=1)],
    "tent": [_line((0, -1), (1, 0.9), (-1, 0.9), (0, -1))],
    "cross": [_line((-1, -1), (1, 1)), _line((1, -1), (-1, 1))],
    "star": [_line(*_TIPS, n=4)],
}


def drawn(kind, random):
    """Returns the strokes of a symbol, turned, slanted, stretched and shaken a little."""
    angle, slant = random.normal(0, 0.1, 2)
    width, height = np.exp(random.normal(0, 0.1, 2))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    form = turn @ np.array([[width, slant], [0, height]])
    return [(stroke + random.normal(0, 0.04, stroke.shape)) @ form.T for stroke in SYMBOLS[kind]]
