"""Converts figures and tables to JSON values for the page; numbers are rounded, a figure's images are one picture."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb
from PIL import Image

from cndpm.experiments.printed_tables import METRICS
from cndpm.reports.figures import AreaChart, Figure, HeatMap, ImageGrid, LineChart
from cndpm.reports.formats import lay_out
from cndpm.reports.tables import Table

_DISTINCT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
_DASHES = ("solid", "dashed", "dotted", "dashdot")

RAMP = "cividis"
"""The colour map of heat maps."""


def colour(i: int, n: int) -> str:
    """Returns the colour number i of n, as #rrggbb."""
    if n > 2 * len(_DISTINCT):
        return to_hex(colormaps[RAMP](i / (n - 1)))
    red, green, blue = to_rgb(_DISTINCT[i % len(_DISTINCT)])
    if i < len(_DISTINCT):
        return to_hex((red, green, blue))
    return to_hex((0.45 * red + 0.55, 0.45 * green + 0.55, 0.45 * blue + 0.55))


def dashes(i: int, n: int) -> str:
    """Returns matplotlib's name of a line's style."""
    if n <= len(_DISTINCT):
        return _DASHES[0]
    return _DASHES[(i if n > 2 * len(_DISTINCT) else i // len(_DISTINCT)) % len(_DASHES)]


_DIGITS = 5


def ramp_values() -> list[str]:
    """Returns the colours of heat maps from low to high."""
    return [to_hex(each) for each in colormaps[RAMP](np.linspace(0, 1, 17))]


_KINDS: dict[type, str] = {LineChart: "lines", AreaChart: "areas", HeatMap: "heat"}


def figure_values(figure: Figure) -> dict[str, Any]:
    """Converts a figure to the values that the page's script draws."""
    if isinstance(figure, ImageGrid):
        return _grid_values(figure)
    if type(figure) not in _KINDS:
        raise TypeError(f"figures are charts, maps or grids; got {type(figure).__name__}")
    return {"kind": _KINDS[type(figure)], **_short(asdict(figure))}


def _grid_values(figure: ImageGrid) -> dict[str, Any]:
    height, width, _ = figure.rows[0][1][0].image.shape
    n_columns = max(len(tiles) for _, tiles in figure.rows)
    sheet = np.zeros((height * len(figure.rows), width * n_columns, 3), dtype=np.uint8)
    for i, (_, tiles) in enumerate(figure.rows):
        for j, tile in enumerate(tiles):
            sheet[height * i : height * (i + 1), width * j : width * (j + 1)] = tile.image
    grey = figure.rows[0][1][0].image.shape[2] == 1
    return {
        "kind": "images",
        **{name: getattr(figure, name) for name in ("key", "title", "caption", "alt")},
        "tile": [width, height],
        "sprite": _png(sheet[:, :, 0] if grey else sheet),
        "sprite_size": [sheet.shape[1], sheet.shape[0]],
        "rows": [{"label": name, "labels": [tile.label for tile in tiles]} for name, tiles in figure.rows],
    }


def table_values(table: Table, *, metric: str | None = None, coloured: bool = False) -> dict[str, Any]:
    """Converts a table to the values that the page's script shows."""
    header, rows = lay_out(table)
    values: dict[str, Any] = {
        "title": table.title,
        "header": header,
        "rows": [[cell.text for cell in row] for row in rows],
        "best": [[cell.entry.best for cell in row] for row in rows],
        "differs": [[cell.entry.beyond_noise for cell in row] for row in rows],
        "coloured": coloured,
        "bars": None,
    }
    if metric in ("accuracy", "prequential_accuracy") and metric in table.metrics:
        column = header.index(METRICS[metric].label)
        shares = [row.entries[metric].value for row in table.rows]
        values["bars"] = {"column": column, "shares": [None if s is None else round(s, 2) for s in shares]}
    return values


def _png(pixels: Any) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def _short(node: Any) -> Any:
    """Rounds floats to a few significant digits; numbers that JSON does not have become None."""
    if isinstance(node, float):
        if not math.isfinite(node):
            return None
        return int(node) if node == int(node) else float(f"{node:.{_DIGITS}g}")
    if isinstance(node, dict):
        return {key: _short(value) for key, value in node.items()}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_short(value) for value in node]
    return node
