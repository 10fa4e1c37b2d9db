"""Drawings as rows: strokes are centred, scaled and inked on a grid, whose lowest frequencies are the row.

Frequencies make a small row of a drawing (64 numbers), let similar drawings lie near each other, and can be turned back
into a smooth image, so that one can see what an expert dreams of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn, idctn

from cndpm.errors import CNDPMError

_EDGE = 16
"""Pixels along an edge of the grid that drawings are inked on."""
_N_FREQUENCIES = 8
N_COLUMNS = _N_FREQUENCIES**2
"""Numbers of a row."""

_FRAME = 1.25
"""Width of the grid where the longer side of a drawing is 1."""
_PEN = 0.08
"""Width of the pen in the same unit."""
_MOST_STROKES, _MOST_POINTS, _MOST_SEGMENTS = 60, 4000, 160

Array = NDArray[np.float64]


class DrawingError(CNDPMError, ValueError):
    """Strokes are not what a page sends."""


def read_strokes(values: Any) -> list[Array]:
    """Returns strokes that came from outside, each (n_points, 2); DrawingError for what is none, or too many."""
    if not isinstance(values, list) or not 0 < len(values) <= _MOST_STROKES:
        raise DrawingError(f"a drawing has 1 to {_MOST_STROKES} strokes")
    if not all(isinstance(stroke, list) and stroke for stroke in values):
        raise DrawingError("a stroke is a list of at least one point")
    if sum(map(len, values)) > _MOST_POINTS:
        raise DrawingError(f"a drawing has at most {_MOST_POINTS} points")
    try:
        strokes = [np.array(stroke, dtype=np.float64) for stroke in values]
    except (TypeError, ValueError, OverflowError):
        strokes = []
    if not strokes or not all(s.ndim == 2 and s.shape[1] == 2 and (np.abs(s) <= 1e6).all() for s in strokes):
        raise DrawingError("a point is a pair of numbers")
    return strokes


def variations(strokes: Sequence[Array], n: int, random: np.random.Generator) -> Array:
    """Returns a drawing and n - 1 copies that are turned, stretched, slanted and moved a little, as a hand would.

    They are lines between points, (n, n_segments, 2, 2), centred, the longer side of the first drawing being 1.
    """
    segments = _segments(strokes)
    made = [segments]
    for _ in range(n - 1):
        angle, slant = random.normal(0, 0.1, 2)
        width, height = np.exp(random.normal(0, 0.1, 2))
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        stretch = np.array([[width, slant * height], [0.0, height]])
        made.append(segments @ (turn @ stretch).T + random.normal(0, 0.03, 2))
    return np.stack(made)


def rows(segments: Array) -> NDArray[np.float32]:
    """Returns drawings, lines between points (n, n_segments, 2, 2), as rows, (n, N_COLUMNS)."""
    waves = dctn(np.stack([_inked(one) for one in segments]), axes=(1, 2), norm="ortho")
    lowest = waves[:, :_N_FREQUENCIES, :_N_FREQUENCIES]
    return np.ascontiguousarray(lowest.reshape(len(segments), -1), dtype=np.float32)


def images(of: NDArray[Any], edge: int = 32) -> NDArray[np.uint8]:
    """Returns rows (n, N_COLUMNS) as images (n, edge, edge), 0 for paper and 255 for ink."""
    waves = of.reshape(-1, _N_FREQUENCIES, _N_FREQUENCIES)
    drawn = idctn(waves, s=(edge, edge), axes=(1, 2), norm="ortho") * (edge / _EDGE)
    return np.asarray(np.clip(255 * drawn, 0, 255).round(), dtype=np.uint8)


def _segments(strokes: Sequence[Array]) -> Array:
    """Returns the lines between the points of all strokes, centred and scaled, (n_segments, 2, 2)."""
    points = np.concatenate(strokes)
    low, high = points.min(axis=0), points.max(axis=0)
    size = float((high - low).max()) or 1.0
    step = math.ceil(len(points) / _MOST_SEGMENTS)
    thinned = [np.concatenate([stroke[:-1:step], stroke[-1:]]) for stroke in strokes]
    ends = [(s, s) if len(s) == 1 else (s[:-1], s[1:]) for s in thinned]  # a dot is a line of no length
    both = np.stack([np.concatenate([a for a, _ in ends]), np.concatenate([b for _, b in ends])], axis=1)
    centred: Array = (both - (low + high) / 2) / size
    return centred


def _inked(segments: Array) -> Array:
    """Inks lines, (n_segments, 2, 2), with a soft pen on the grid, (edge, edge)."""
    places = ((np.arange(_EDGE) + 0.5) / _EDGE - 0.5) * _FRAME
    pixels = np.stack(np.meshgrid(places, places, indexing="xy"), axis=-1).reshape(-1, 1, 2)
    start, way = segments[None, :, 0], segments[None, :, 1] - segments[None, :, 0]
    along = ((pixels - start) * way).sum(axis=-1) / np.maximum((way**2).sum(axis=-1), 1e-12)
    nearest = start + np.clip(along, 0, 1)[..., None] * way
    distance = ((pixels - nearest) ** 2).sum(axis=-1).min(axis=1)
    ink: Array = np.exp(-distance / _PEN**2).reshape(_EDGE, _EDGE)
    return ink
