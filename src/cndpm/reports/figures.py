"""What a figure is: plain values with labels, drawn alike by matplotlib (:mod:`cndpm.reports.drawing`) and the page.

Nothing here knows of records or of pixels. A figure carries its own alternative text, and its axes their units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Area", "AreaChart", "Band", "ChartPanel", "Figure", "HeatMap", "ImageGrid", "Line", "LineChart", "Tile"]

Number = float | int
Values = Sequence[Number | None]


@dataclass(frozen=True)
class Figure:
    """What all figures have.

    Attributes:
        key: A name for files and links, e.g. "accuracy".
        title: One line.
        caption: A sentence or two that says how to read it.
        alt: What it shows, in words, for those who cannot see it.
    """

    key: str
    title: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Band:
    """A stage of the stream, from one batch to another."""

    start: Number
    end: Number
    label: str


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        label: Its name in the legend.
        x: (n,).
        y: (n,); None where nothing was measured.
        colour: A number; equal numbers are drawn alike in all figures.
        faint: Whether it is one of several that a bold line summarises.
        stepped: Whether values hold until they change.
    """

    label: str
    x: Sequence[Number]
    y: Values
    colour: int = 0
    faint: bool = False
    stepped: bool = False


@dataclass(frozen=True)
class ChartPanel:
    """One pair of axes; `highlight` is the stretch of x that it is about."""

    title: str
    lines: Sequence[Line]
    highlight: Sequence[Band] = ()


@dataclass(frozen=True)
class LineChart(Figure):
    """Curves in one panel, or in small multiples that share their axes."""

    x_label: str
    y_label: str
    panels: Sequence[ChartPanel]
    bands: Sequence[Band] = ()
    y_range: tuple[Number, Number] | None = None
    n_colours: int = 1


@dataclass(frozen=True)
class HeatMap(Figure):
    """A matrix of numbers.

    Attributes:
        values: (n_rows, n_columns); None is left blank.
        rows: Name of every row.
        columns: Name of every column.
        value_label: What a number is, with its unit.
        limits: The numbers with the darkest and the brightest colour.
        written: Whether the numbers are written into the cells.
        ticks: Columns that are named on the axis; None names all.
    """

    x_label: str
    y_label: str
    values: Sequence[Values]
    rows: Sequence[str]
    columns: Sequence[str]
    value_label: str
    limits: tuple[Number, Number]
    written: bool = False
    ticks: Sequence[int] | None = None


@dataclass(frozen=True)
class Area:
    """One layer of a stack, (n,)."""

    label: str
    y: Sequence[Number]
    colour: int


@dataclass(frozen=True)
class AreaChart(Figure):
    """Layers on top of each other."""

    x_label: str
    y_label: str
    x: Sequence[Number]
    areas: Sequence[Area]
    bands: Sequence[Band] = ()
    n_colours: int = 1


@dataclass(frozen=True)
class Tile:
    """One small image, (height, width, channels) uint8, and what is written below it."""

    image: NDArray[np.uint8]
    label: str


@dataclass(frozen=True)
class ImageGrid(Figure):
    """Rows of small images of one size."""

    rows: Sequence[tuple[str, Sequence[Tile]]]
