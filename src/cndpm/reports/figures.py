"""Figures as plain values with labels, drawn alike by matplotlib (:mod:`cndpm.reports.drawing`) and by the page.

Nothing here depends on records or on pixels. A figure carries its alternative text, its axes their units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Number = float | int
Values = Sequence[Number | None]


@dataclass(frozen=True)
class Figure:
    """The parts that all figures have.

    Attributes:
        key: A name for files and links, e.g. "accuracy".
        title: One line.
        caption: A sentence or two on how to read it.
        alt: A description in words, for readers who cannot see it.
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
        x: Positions, (n,).
        y: Values, (n,); None where nothing was measured.
        colour: A number; equal numbers have the same colour in all figures.
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
    """One pair of axes.

    Attributes:
        title: Its title; empty for a chart of one panel.
        lines: The curves.
        highlight: The stretches of x to shade, e.g. those in which a task is streamed.
    """

    title: str
    lines: Sequence[Line]
    highlight: Sequence[Band] = ()


@dataclass(frozen=True)
class LineChart(Figure):
    """Curves in one panel, or in small multiples that share their axes.

    Attributes:
        x_label: Name of the horizontal axis, with its unit.
        y_label: Name of the vertical axis, with its unit.
        panels: One or more.
        bands: Stages of the stream to shade.
        y_range: Limits of the vertical axis; None fits them.
        n_colours: How many colours the figure has in all.
    """

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
        value_label: The meaning of a number, with its unit.
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
    """One layer of a stack, with values y of shape (n,)."""

    label: str
    y: Sequence[Number]
    colour: int


@dataclass(frozen=True)
class AreaChart(Figure):
    """Layers on top of each other.

    Attributes:
        x_label: Name of the horizontal axis, with its unit.
        y_label: Name of the vertical axis, with its unit.
        x: Positions that all layers share, (n,).
        areas: The layers, from the bottom to the top.
        bands: Stages of the stream, whose edges are marked.
        n_colours: How many colours the figure has in all.
    """

    x_label: str
    y_label: str
    x: Sequence[Number]
    areas: Sequence[Area]
    bands: Sequence[Band] = ()
    n_colours: int = 1


@dataclass(frozen=True)
class Tile:
    """One small image, (height, width, channels) uint8, and the label below it."""

    image: NDArray[np.uint8]
    label: str


@dataclass(frozen=True)
class ImageGrid(Figure):
    """Named rows of small images of one size."""

    rows: Sequence[tuple[str, Sequence[Tile]]]
