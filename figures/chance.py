"""The table that says how often a number would be found in the records of its section by chance."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

from figures.records import replaced
from figures.tracing import load_traced

__all__ = ["ChanceTable"]


class ChanceTable:
    """The table of chances in ``docs/results/index.md``, written from the traced pages.

    Args:
        root: The project.

    Attributes:
        name: Of the table.
        path: The page that has it.
    """

    name = "chance"

    def __init__(self, root: Path) -> None:
        self.path = root / "docs" / "results" / "index.md"
        self._root = root

    def table(self) -> str:
        """Returns a row for every page: numbers outside of written tables, and the mean chance of one of their form."""
        rows = ["| page | numbers looked for | found by chance (%) |", "|---|---|---|"]
        every: list[float] = []
        for page in load_traced(self._root):
            chances = page.chances()
            every += chances
            rows.append(f"| {page.path.relative_to(self._root)} | {_cells(chances)} |")
        return "\n".join([*rows, f"| all | {_cells(every)} |"])

    def written(self) -> str:
        """Returns the page with its table written anew."""
        return replaced(self.path, self.name, self.table())


def _cells(chances: list[float]) -> str:
    return f"{len(chances)} | {100 * mean(chances):.1f}" if chances else "0 | –"
