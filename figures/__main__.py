"""Writes the tables of the documentation from the records: ``python -m figures``; ``--check`` only compares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from figures.pages import load_pages
from figures.records import FigureError
from figures.tracing import load_traced

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if all pages agree with the records, or do now; 1 where one differs, 2 where a figure has no source."""
    parser = argparse.ArgumentParser(prog="python -m figures", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page differs")
    check = parser.parse_args(arguments).check
    differing = 0
    try:
        for page in (*load_pages(ROOT), *load_traced(ROOT)):
            written = page.written()
            differs = written != page.path.read_text(encoding="utf-8")
            differing += differs
            if differs and not check:
                page.path.write_text(written, encoding="utf-8")
            state = ("differs from the records" if check else "written") if differs else "agrees with the records"
            print(f"{page.path.relative_to(ROOT)}: {state}")
            if page.without_record:
                print(f"  without a record: {', '.join(page.without_record)}")
    except FigureError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return int(check and differing > 0)


if __name__ == "__main__":
    sys.exit(main())
