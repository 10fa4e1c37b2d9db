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
    """The parts that all figures have."""

    key: str  # a name for files and links, e.g. "accuracy"
    title: str  # one line
    caption: str  # a sentence or two on how to read it
    alt: str  # a description in words, for readers who cannot see it


@dataclass(frozen=True)
class Band:
    """A stage of the stream, from one batch to another."""

    start: Number
    end: Number
    label: str


@dataclass(frozen=True)
class Line:
    """One curve."""

    label: str  # its name in the legend
    x: Sequence[Number]  # positions, (n,)
    y: Values  # values, (n,); None where nothing was measured
    colour: int = 0  # a number; equal numbers have the same colour in all figures
    faint: bool = False  # whether it is one of several that a bold line summarises
    stepped: bool = False  # whether values hold until they change


@dataclass(frozen=True)
class ChartPanel:
    """One pair of axes."""

    title: str  # its title; empty for a chart of one panel
    lines: Sequence[Line]  # the curves
    highlight: Sequence[Band] = ()  # the stretches of x to shade, e.g. those in which a task is streamed


@dataclass(frozen=True, kw_only=True)
class Chart(Figure):
    """The parts that figures with two axes have."""

    x_label: str  # name of the horizontal axis, with its unit
    y_label: str  # name of the vertical axis, with its unit
    bands: Sequence[Band] = ()  # stages of the stream, which are shaded or whose edges are marked
    n_colours: int = 1  # how many colours the figure has in all


@dataclass(frozen=True, kw_only=True)
class LineChart(Chart):
    """Curves in one panel, or in small multiples that share their axes."""

    panels: Sequence[ChartPanel]  # one or more
    y_range: tuple[Number, Number] | None = None  # limits of the vertical axis; None fits them


@dataclass(frozen=True, kw_only=True)
class HeatMap(Chart):
    """A matrix of numbers."""

    values: Sequence[Values]  # (n_rows, n_columns); None is left blank
    rows: Sequence[str]  # name of every row
    columns: Sequence[str]  # name of every column
    value_label: str  # the meaning of a number, with its unit
    limits: tuple[Number, Number]  # the numbers with the darkest and the brightest colour
    written: bool = False  # whether the numbers are written into the cells
    ticks: Sequence[int] | None = None  # columns that are named on the axis; None names all


@dataclass(frozen=True)
class Area:
    """One layer of a stack, with values y of shape (n,)."""

    label: str
    y: Sequence[Number]
    colour: int


@dataclass(frozen=True, kw_only=True)
class AreaChart(Chart):
    """Layers on top of each other."""

    x: Sequence[Number]  # positions that all layers share, (n,)
    areas: Sequence[Area]  # the layers, from the bottom to the top


@dataclass(frozen=True)
class Tile:
    """One small image, (height, width, channels) uint8, and the label below it."""

    image: NDArray[np.uint8]
    label: str


@dataclass(frozen=True)
class ImageGrid(Figure):
    """Named rows of small images of one size."""

    rows: Sequence[tuple[str, Sequence[Tile]]]
