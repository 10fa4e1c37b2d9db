"""Tables as they are printed: names and values of metrics, and columns that fold in a narrow terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table
from rich.text import Text


class Metric(NamedTuple):
    """Says how a metric is printed and compared."""

    label: str  # its name, with its unit
    digits: int | None = 2  # behind the point; None writes it as a count
    better: int = 0  # 1 where more is better, -1 where less is, 0 where no value is marked as the best


METRICS = {
    "accuracy": Metric("accuracy (%)", better=1),
    "bits_per_dim": Metric("bits/dim", digits=4, better=-1),
    "prequential_accuracy": Metric("prequential (%)", better=1),
    "prequential_error": Metric("mean abs. error", digits=3, better=-1),
    "prequential_bits_per_dim": Metric("prequential bits/dim", digits=4, better=-1),
    "classifier_accuracy_init": Metric("classifier, init (%)"),
    "classifier_accuracy_final": Metric("classifier, final (%)"),
    "gating_accuracy": Metric("gating (%)", better=1),
    "forgetting": Metric("forgetting (%)"),
    "n_experts": Metric("experts"),
    "n_parameters": Metric("parameters", digits=None),
    "n_numbers_kept": Metric("numbers kept", digits=None),
    "memory_samples": Metric("samples kept", digits=0),
    "seconds": Metric("time (s)", digits=1),
}
"""Metrics in the order of their columns."""


def format_count(n: float) -> str:
    """Writes a count as the paper prints it.

    Example:
        >>> format_count(478410), format_count(11173962), format_count(5)
        ('478K', '11.2M', '5')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if n >= size:
            return f"{n / size:.3g}{unit}"
    return f"{n:.4g}"


def format_value(metric: str, value: float | None, error: float | None = None) -> str:
    """Writes a value and its standard error as a table shows them; a dash where there is none."""
    if value is None or value != value:
        return "–"
    digits = METRICS[metric].digits
    if digits is None:
        return format_count(value)
    if metric == "n_experts" and not error and value == int(value):
        return f"{value:.0f}"
    return f"{value:.{digits}f}" + (f" ± {error:.{digits}f}" if error is not None else "")


_GAP = 2
"""Characters between two columns."""
_SENTENCES = 16
"""Characters that a column of sentences needs."""


class FoldingTable:
    """Shows a table as wide as the terminal allows; columns that find no room follow in a second table, and so on.

    Headings of several words are broken between them. Every part begins with the first column, which names a row; with
    `right` the others are set to the right. A column without a name holds sentences, which are broken wherever there is
    a space; such a table is never parted. Texts of rich keep their style.
    """

    def __init__(
        self, title: str, header: Sequence[str], rows: Sequence[Sequence[str | Text]], *, right: bool = False
    ) -> None:
        self.title, self.header, self.right = title, list(header), right
        self.rows = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]

    def parts(self, width: int) -> list[list[int]]:
        """Returns the numbers of the columns of every part in a terminal of `width` characters."""
        columns = range(len(self.header))
        if "" in self.header or sum(map(self._width, columns)) <= width:
            return [list(columns)]
        room, wide, parts = width - self._width(0), 0, [[0]]
        for column in columns[1:]:
            wide += self._width(column)
            if wide > room and len(parts[-1]) > 1:
                parts.append([0])
                wide = self._width(column)
            parts[-1].append(column)
        return parts

    def _width(self, column: int) -> int:
        """Returns the characters that a column takes, its gap included, where its heading is broken between words."""
        if not self.header[column]:
            return _GAP + _SENTENCES
        return _GAP + max(map(cell_len, [*self.header[column].split(), *(row[column].plain for row in self.rows)]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        """Yields the parts, for rich."""
        for i, part in enumerate(self.parts(options.max_width)):
            yield self._part(part, "" if i else self.title, options.max_width)

    def _part(self, columns: Sequence[int], title: str, width: int) -> Table:
        """Makes one part; where even that is too wide for the terminal, words are broken rather than cut off."""
        shown = Text(title) if title else None
        made = Table(title=shown, box=SIMPLE, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
        for column, wide in zip(columns, self._widths(columns, width), strict=True):
            side: Literal["left", "right"] = "right" if self.right and column else "left"
            made.add_column(Text(self.header[column]), width=wide, overflow="fold", justify=side)
        for row in self.rows:
            made.add_row(*(row[column] for column in columns))
        return made

    def _widths(self, columns: Sequence[int], width: int) -> list[int | None]:
        """Returns the characters of each column without its gap; None leaves it to rich.

        Headings stay in one line, from the left on, as long as there is room for it.
        """
        room = width - sum(map(self._width, columns))
        if room < 0:
            return [None] * len(columns)
        found: list[int | None] = []
        for column in columns:
            wide = self._width(column) - _GAP
            more = max(cell_len(self.header[column]) - wide, 0)
            if more <= room:
                wide, room = wide + more, room - more
            found.append(wide if self.header[column] else None)
        return found
