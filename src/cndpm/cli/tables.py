"""Tables of the terminal: what does not fit beside each other is printed below each other, and nothing is cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.table import Table

__all__ = ["FoldingTable"]

_GAP = 2
"""Characters between two columns."""
_SENTENCES = 16
"""Characters that a column of sentences needs."""


class FoldingTable:
    """Shows a table as wide as the terminal allows; columns that find no room follow in a second table, and so on.

    Headings of several words are broken between them. Every part begins with the columns that name a row. A column
    without a name holds sentences, which are broken wherever there is a space; such a table is never parted.

    Args:
        title: Title of the first part.
        header: Names of the columns, (n_columns,).
        rows: Texts, (n_rows, n_columns).
        n_names: Number of columns, from the left, that name a row.

    Example:
        >>> from rich.console import Console
        >>> results = FoldingTable("", ["learner", "accuracy %", "seconds"], [["cndpm", "98.31 ± 0.30", "7.6"]])
        >>> [len(part) for part in results.parts(80)], [len(part) for part in results.parts(24)]
        ([3], [2, 2])
    """

    def __init__(self, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, n_names: int = 1) -> None:
        self.title, self.header, self.rows, self.n_names = title, list(header), [list(row) for row in rows], n_names

    def parts(self, width: int) -> list[list[int]]:
        """Returns the numbers of the columns of every part in a terminal of `width` characters."""
        columns, names = range(len(self.header)), list(range(self.n_names))
        if "" in self.header or sum(map(self._width, columns)) <= width:
            return [list(columns)]
        room = width - sum(map(self._width, names))
        wide = 0
        parts = [list(names)]
        for column in columns[self.n_names :]:
            wide += self._width(column)
            if wide > room and len(parts[-1]) > self.n_names:
                parts.append(list(names))
                wide = self._width(column)
            parts[-1].append(column)
        return parts

    def _width(self, column: int) -> int:
        """Returns the characters that a column takes, its gap included, where its heading is broken between words."""
        if not self.header[column]:
            return _GAP + _SENTENCES
        return _GAP + max(map(cell_len, [*self.header[column].split(), *(row[column] for row in self.rows)]))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        """Yields the parts, for rich."""
        for i, part in enumerate(self.parts(options.max_width)):
            yield self._part(part, "" if i else self.title, options.max_width)

    def _part(self, columns: Sequence[int], title: str, width: int) -> Table:
        """Makes one part; where even that is too wide for the terminal, words are broken rather than cut off."""
        made = Table(title=title or None, box=SIMPLE, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
        fits = sum(map(self._width, columns)) <= width
        for column in columns:
            least = self._width(column) - _GAP if fits else None
            made.add_column(self.header[column], min_width=least, overflow="fold")
        for row in self.rows:
            made.add_row(*(row[column] for column in columns))
        return made
