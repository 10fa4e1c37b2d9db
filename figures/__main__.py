"""Writes the tables of the documentation from the records and traces all other numbers: ``python -m figures``.

Beside every written table it says how old its figures are. ``--check`` writes nothing; ``--name`` adds the cells of
numbers that name none; ``--follow`` prints numbers anew whose cells have changed, and shows their sentences. Otherwise
a number that is not that of the cell which it names is an error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from figures.ages import changes_since
from figures.kinds import KindsTable
from figures.missing import MissingTable
from figures.pages import Page, load_pages
from figures.paper import PaperTable, load_paper_tables
from figures.records import FigureError
from figures.tracing import TracedPage, load_traced

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if all pages agree with the records, or do now; 1 where one differs, 2 where a number has no record."""
    parser = argparse.ArgumentParser(prog="python -m figures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page differs")
    parser.add_argument("--name", action="store_true", help="name the cells of numbers that are new, and show them")
    parser.add_argument("--follow", action="store_true", help="print numbers anew whose cells changed, and show them")
    options = parser.parse_args(arguments)
    check = options.check
    try:
        for page in load_traced(ROOT):
            for line in [*(page.follow() if options.follow else ()), *(page.write_names() if options.name else ())]:
                print(line)
        tables: tuple[Page | PaperTable | MissingTable | KindsTable, ...]
        tables = (*load_pages(ROOT), *load_paper_tables(ROOT), MissingTable(ROOT), KindsTable(ROOT))
        differing = [table for table in tables if not _agrees(table, check)]
        lost = [page for page in load_traced(ROOT) if not _is_traced(page)]
    except FigureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 2 if lost else int(check and bool(differing))


def _agrees(page: Page | PaperTable | MissingTable | KindsTable, check: bool) -> bool:
    """Compares a written table with the records, and writes it anew unless it is only checked."""
    written = page.written()
    agrees = written == page.path.read_text(encoding="utf-8")
    if not agrees and not check:
        page.path.write_text(written, encoding="utf-8")
    state = "agrees with the records" if agrees else "differs from the records" if check else "written"
    print(f"{page.path.relative_to(ROOT)}, table {page.name}: {state}{_age(page)}")
    return agrees


def _age(page: Page | PaperTable | MissingTable | KindsTable) -> str:
    """Returns how often the package has changed since a table's figures were measured, where a repository tells it."""
    if not isinstance(page, Page):
        return ""
    ages = [age for commit in page.commits() if (age := changes_since(ROOT, commit)) is not None]
    return f"; measured {_span(ages)} commits of the package ago" if ages else ""


def _span(ages: Sequence[int]) -> str:
    return " to ".join(map(str, sorted({min(ages), max(ages)})))


def _is_traced(page: TracedPage) -> bool:
    """Returns whether every number of a page is that of the cell which it names, and says which are not."""
    lost = page.lost()
    if lost:
        print(f"{page.path.relative_to(ROOT)}: numbers that are not those of their cells; python -m figures --name")
    for line in lost:
        print(f"  {line}")
    return not lost


if __name__ == "__main__":
    sys.exit(main())
