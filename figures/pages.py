"""Pages whose tables are written from records.

A file ``figures/NAME.toml`` describes one table:

    page = "README.md"

    [figures.paper]
    record = "split-mnist-ten-seeds-h200.json"    # below docs/results/records
    value = "accuracy"
    where = { preset = "paper" }                  # which of its rows; none for all

    table = '''| Split-MNIST | {=93.23 ± 0.09} | {paper}, {paper:seeds} |'''

``{paper}`` is a figure, ``{paper:seeds}`` the number of its seeds and ``{paper:commits}`` what it was measured at;
``{paper drift-flip}`` is that of the rows whose field `by` is the second word, and with ``against = { record = ...,
where = ... }`` it is what rows of the same seed differ by; ``{paper over before}`` is what rows gain over those of
another figure, pair by pair of the same seed and `by`, with the error of as many means as there are of `by` (a figure
with ``each = "dataset"`` is such a mean, too);
``{=93.23}`` was published in the paper, or is a setting that a table `given` names with what it is. A number with a
decimal point that is none of these, and no part of code, is refused. The table stands in the page between
``<!-- figures: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cndpm.paper import EXPERIMENTS
from figures.printed import printed_in
from figures.records import Figure, FigureError, commits_of, replaced
from figures.sources import published

__all__ = ["Page", "load_pages"]

_MARK = re.compile(r"\{([^{}]+)\}")
_NUMBER = re.compile(r"\d+\.\d+")
_CODE = re.compile(r"`[^`\n]*`")


class Page:
    """A page with a table of figures.

    Args:
        file: The description, ``figures/NAME.toml``.
        root: The project.

    Attributes:
        name: Of the table.
        path: The page.

    Example:
        >>> page = Page(Path("figures/drift.toml"), Path())
        >>> page.path.name
        'drift.md'
    """

    def __init__(self, file: Path, root: Path) -> None:
        described = tomllib.loads(file.read_text(encoding="utf-8"))
        self.name, self.path = file.stem, root / described["page"]
        self._records = root / "docs" / "results" / "records"
        self._entries: dict[str, Any] = described["figures"]
        self._template = described["table"].strip("\n")
        loose = _NUMBER.findall(_CODE.sub("", _MARK.sub("", self._template)))
        if loose:
            raise FigureError(f"{file}: {', '.join(loose)} come from nowhere: name a figure, or {{=...}}")
        self._check_published(described.get("given", {}))

    def _check_published(self, given: Mapping[str, str]) -> None:
        """Raises where a number of no record is neither the paper's nor explained, or the explained is absent."""
        told = [number for mark in _MARK.findall(self._template) if mark[0] == "=" for number in printed_in(mark[1:])]
        values = sorted(value for experiment in EXPERIMENTS for value in published(experiment))
        lost = [number.text for number in told if number.text not in given and not number.is_in(values)]
        if lost:
            raise FigureError(f"{self.name}: the paper did not publish {', '.join(lost)}: say under given what it is")
        if unused := given.keys() - {number.text for number in told}:
            raise FigureError(f"{self.name}: {', '.join(sorted(unused))} are explained and not in the table")

    def table(self) -> str:
        """Returns the table with the figures of the records."""
        return _MARK.sub(lambda mark: self._filled(mark[1]), self._template)

    def written(self) -> str:
        """Returns the page with its table written anew."""
        return replaced(self.path, self.name, self.table())

    def commits(self) -> list[str]:
        """Returns the commits that its figures were measured at, each once."""
        found = [commit for entry in self._entries.values() for commit in commits_of(self._records, entry)]
        return list(dict.fromkeys(found))

    def _filled(self, mark: str) -> str:
        if mark[0] == "=":
            return mark[1:]
        if " over " in mark:
            mine, other = (self._entry(name) for name in mark.split(" over "))
            return Figure.gain(f"{self.name}: {mark}", self._records, mine, other).text
        wanted, _, which = mark.partition(":")
        name, _, word = wanted.partition(" ")
        entry = self._entry(name)
        if which == "commits":
            return ", ".join(commits_of(self._records, entry))
        figure = Figure.of(f"{self.name}: {mark}", self._records, entry, {entry["by"]: word} if word else {})
        return figure.n_seeds if which == "seeds" else figure.text

    def _entry(self, name: str) -> Mapping[str, Any]:
        if name not in self._entries:
            raise FigureError(f"{self.name}: there is no figure {name!r}")
        entry: Mapping[str, Any] = self._entries[name]
        return entry


def load_pages(root: Path) -> list[Page]:
    """Returns the pages of a project, by name."""
    return [Page(file, root) for file in sorted((root / "figures").glob("*.toml"))]
