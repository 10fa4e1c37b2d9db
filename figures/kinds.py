"""The line that says how many numbers of every page name a cell of a record, and how many have none."""

from __future__ import annotations

from pathlib import Path

from figures.records import replaced
from figures.tracing import load_traced

__all__ = ["KindsTable"]


class KindsTable:
    """The line in ``docs/results/index.md``, written from the traced pages.

    Args:
        root: The project.

    Attributes:
        name: Of the table.
        path: The page that has it.
    """

    name = "kinds"

    def __init__(self, root: Path) -> None:
        self.path = root / "docs" / "results" / "index.md"
        self._root = root

    def table(self) -> str:
        """Says how many numbers outside of written tables have which source."""
        kinds = [page.kinds() for page in load_traced(self._root)]
        cells, settings, without = (sum(found[kind] for found in kinds) for kind in range(3))
        n_pages = sum(found[0] > 0 for found in kinds)
        return (
            f"Outside of written tables {cells} numbers on {n_pages} pages are cells of records, {settings} are "
            f"settings or follow from others, and {without}, on pages without records, have no record."
        )

    def written(self) -> str:
        """Returns the page with its table written anew."""
        return replaced(self.path, self.name, self.table())
