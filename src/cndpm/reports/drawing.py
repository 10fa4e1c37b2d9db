"""Draws figures with matplotlib: one function per kind of figure, chosen by its type.

Nothing here touches pyplot's current figure or a display, except where a notebook asks for axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import EngFormatter, MaxNLocator

from cndpm.reports.figures import AreaChart, Band, ChartPanel, Figure, HeatMap, ImageGrid, LineChart
from cndpm.reports.payload import RAMP, colour, dashes

_SHADE = "#8894a6"
_DPI = 160
_BACKENDS: Mapping[str, Any] = {"png": FigureCanvasAgg, "pdf": FigureCanvasPdf, "svg": FigureCanvasSVG}
_UNDATED: Mapping[str, dict[str, Any]] = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Without a date in the file, equal records give equal bytes."""


def draw(figure: Figure, ax: Axes | None = None) -> Any:
    """Draws a figure with matplotlib and returns its axes, (n_panels,); `ax` is for a figure of one panel."""
    if ax is not None:
        if isinstance(figure, LineChart) and len(figure.panels) > 1:
            raise ValueError(f"{figure.title!r} has {len(figure.panels)} panels and needs a figure of its own")
        axes = np.array([ax])
    else:
        from matplotlib import pyplot

        axes = _layout(pyplot.figure(layout="constrained"), figure)
    _draw(figure, axes)
    return axes


def save_figure(figure: Figure, stem: Path, formats: Sequence[str]) -> list[Path]:
    """Writes a figure as ``stem.png``, ``stem.pdf`` and so on; returns the files in the order of the formats."""
    canvas = Canvas(layout="constrained", dpi=_DPI)
    _draw(figure, _layout(canvas, figure))
    _settle(canvas)
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in formats]
    for kind, file in zip(formats, files, strict=True):
        canvas.set_dpi(_DPI)  # vector formats leave their own behind
        # Canvas.savefig would draw everything twice, first to find the layout that is known here.
        write = getattr(_BACKENDS[kind](canvas), f"print_{kind}")
        write(file, metadata=_UNDATED[kind] | ({} if kind == "png" else {"Title": figure.title}))
    return files


def _settle(canvas: Canvas) -> None:
    """Computes the layout once for all formats."""
    engine = canvas.get_layout_engine()
    assert engine is not None  # it was made with one
    engine.execute(canvas)
    canvas.set_layout_engine("none")


def _layout(canvas: Canvas, figure: Figure) -> Any:
    n = len(figure.panels) if isinstance(figure, LineChart) else 1
    n_columns = min(n, 3 if n in (3, 5, 6, 9) else 4)
    n_rows = math.ceil(n / n_columns)
    canvas.set_size_inches(_size(figure) if n == 1 else (3.0 * n_columns, 0.6 + 2.0 * n_rows))
    axes = canvas.subplots(n_rows, n_columns, squeeze=False, sharex=n > 1, sharey=n > 1).ravel()
    for unused in axes[n:]:
        unused.remove()
    return axes[:n]


def _size(figure: Figure) -> tuple[float, float]:
    if isinstance(figure, ImageGrid):
        height, width, _ = figure.rows[0][1][0].image.shape
        n_columns = max(len(tiles) for _, tiles in figure.rows)
        return 1.1 + 0.5 * n_columns * width / height, 0.6 + 0.62 * len(figure.rows)
    if isinstance(figure, HeatMap):
        return (6.4, 1.4 + 0.3 * len(figure.rows)) if figure.ticks is not None else (5.2, 4.2)
    return 6.4, 3.6


@singledispatch
def _draw(figure: Figure, axes: Any) -> None:  # noqa: ARG001
    raise TypeError(f"figures are charts, maps or grids; got {type(figure).__name__}")


@_draw.register
def _(figure: LineChart, axes: Any) -> None:
    for ax, panel in zip(axes, figure.panels, strict=True):
        _shade(ax, figure.bands or panel.highlight, every=bool(panel.highlight))
        _draw_lines(ax, panel, figure.n_colours)
        ax.set_title(panel.title or figure.title, fontsize="medium")
        if figure.y_range is not None:
            ax.set_ylim(*figure.y_range)
        if ax.get_ylim()[1] > 10_000:
            ax.yaxis.set_major_formatter(EngFormatter(sep=""))
        ax.spines[["top", "right"]].set_visible(False)
    canvas = axes[0].figure
    if len(axes) == 1:
        axes[0].set(xlabel=figure.x_label, ylabel=figure.y_label)
        axes[0].legend(frameon=False, fontsize="small")
    else:
        canvas.supxlabel(figure.x_label, fontsize="medium")
        canvas.supylabel(figure.y_label, fontsize="medium")
        handles = axes[0].get_legend_handles_labels()
        if len(handles[0]) > 1:
            canvas.legend(*handles, loc="outside upper center", ncols=4, frameon=False, fontsize="small")


def _draw_lines(ax: Axes, panel: ChartPanel, n_colours: int) -> None:
    for line in panel.lines:
        y = [math.nan if value is None else value for value in line.y]
        ax.plot(
            line.x,
            y,
            color=colour(line.colour, n_colours),
            linestyle=dashes(line.colour, n_colours),
            alpha=0.25 if line.faint else 1.0,
            linewidth=1.0 if line.faint else 2.0,
            drawstyle="steps-post" if line.stepped else "default",
            label="_" + line.label if line.faint else line.label,
        )


@_draw.register
def _(figure: AreaChart, axes: Any) -> None:
    ax = axes[0]
    colours = [colour(area.colour, figure.n_colours) for area in figure.areas]
    ax.stackplot(figure.x, *(area.y for area in figure.areas), labels=[a.label for a in figure.areas], colors=colours)
    for band in figure.bands[1:]:
        ax.axvline(band.start, color=_SHADE, linewidth=0.8, linestyle=":")
    ax.set(xlabel=figure.x_label, ylabel=figure.y_label, title=figure.title, xlim=(0, max(figure.x)))
    ax.spines[["top", "right"]].set_visible(False)
    if len(figure.areas) > 1:
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize="small", reverse=True)


@_draw.register
def _(figure: HeatMap, axes: Any) -> None:
    ax = axes[0]
    values = np.array([[math.nan if v is None else v for v in row] for row in figure.values], dtype=float)
    low, high = figure.limits
    image = ax.imshow(values, aspect="auto", cmap=RAMP, vmin=low, vmax=high, interpolation="nearest")
    ticks = list(range(len(figure.columns))) if figure.ticks is None else list(figure.ticks)
    named = ticks if len(ticks) <= 20 else ticks[:: math.ceil(len(ticks) / 20)]
    ax.set_xticks(named, [figure.columns[i].partition("–")[0] for i in named])
    ax.set_yticks(range(len(figure.rows)), figure.rows)
    ax.set(xlabel=figure.x_label, ylabel=figure.y_label)
    ax.set_title(figure.title, fontsize="medium")
    ax.figure.colorbar(image, ax=ax, label=figure.value_label)
    if figure.written:
        middle = (low + high) / 2
        for (i, j), value in np.ndenumerate(values):
            ax.text(j, i, f"{value:.3g}", ha="center", va="center", color="black" if value > middle else "white")


@_draw.register
def _(figure: ImageGrid, axes: Any) -> None:
    ax = axes[0]
    n_columns = max(len(tiles) for _, tiles in figure.rows)
    height, width, _ = figure.rows[0][1][0].image.shape
    tall, wide = round(1.45 * height), round(1.15 * width)  # of a tile with its label and the gaps
    sheet = np.full((tall * len(figure.rows), wide * n_columns, 3), 255, dtype=np.uint8)  # one image draws fast
    for i, (name, tiles) in enumerate(figure.rows):
        ax.text(-0.3 * width, tall * i + height / 2, name, ha="right", va="center", fontsize="small")
        for j, tile in enumerate(tiles):
            sheet[tall * i : tall * i + height, wide * j : wide * j + width] = tile.image
            middle, below = wide * j + width / 2, tall * i + 1.22 * height
            ax.text(middle, below, tile.label, ha="center", va="center", fontsize="x-small", color="#555555")
    ax.imshow(sheet, extent=(0, sheet.shape[1], sheet.shape[0], 0), interpolation="nearest")
    ax.set_title(figure.title, fontsize="medium")
    ax.axis("off")


def _shade(ax: Axes, bands: Sequence[Band], *, every: bool) -> None:
    for i, band in enumerate(bands):
        if every or i % 2:
            ax.axvspan(band.start, band.end, color=_SHADE, alpha=0.16, linewidth=0)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
