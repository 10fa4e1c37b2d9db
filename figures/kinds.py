"""The table that says how many numbers of every page name a cell of a record, and how many have none."""

from __future__ import annotations

from pathlib import Path

from figures.records import replaced
from figures.tracing import load_traced

__all__ = ["KindsTable"]


class KindsTable:
    """The table in ``docs/results/index.md``, written from the traced pages.

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
        """Returns a row for every page whose numbers outside of written tables have records, and one for all others."""
        kinds = {page.path.relative_to(self._root).as_posix(): page.kinds() for page in load_traced(self._root)}
        recorded = {path: found for path, found in kinds.items() if found[0]}
        others = [found for path, found in kinds.items() if path not in recorded and any(found)]
        settings, without = (sum(found[kind] for found in others) for kind in (1, 2))
        recorded[f"{len(others)} other pages"] = (0, settings, without)
        rows = [f"| {path} | {' | '.join(map(str, found))} |" for path, found in recorded.items()]
        return "\n".join(
            ["| page | cells of records | settings and derivations | without a record |", "|---|---|---|---|", *rows]
        )

    def written(self) -> str:
        """Returns the page with its table written anew."""
        return replaced(self.path, self.name, self.table())
