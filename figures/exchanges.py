"""Tries whether the check notices two numbers of a page that are exchanged: ``python -m figures.exchanges``."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from figures.printed import places_of
from figures.records import FigureError
from figures.tracing import TracedPage, load_traced

__all__ = ["exchanged", "main", "noticed"]

_MOST = 60
"""Exchanges tried on a page."""


def exchanged(text: str, seed: int = 0) -> Iterator[str]:
    """Yields texts of a page in which two different numbers have changed places: all pairs, or sixty drawn.

    Args:
        text: Of the page.
        seed: Of the choice.
    """
    places = [(start, number.text) for start, number in places_of(text)]
    pairs = [(a, b) for a, b in combinations(places, 2) if a[1] != b[1]]
    for (i, a), (j, b) in random.Random(seed).sample(pairs, min(_MOST, len(pairs))):
        yield text[:i] + b + text[i + len(a) : j] + a + text[j + len(b) :]


def noticed(page: TracedPage) -> list[bool]:
    """Returns, for every exchange on a page, whether the check fails."""
    return [_fails(page, text) for text in exchanged(page.path.read_text(encoding="utf-8"))]


def _fails(page: TracedPage, text: str) -> bool:
    try:
        return bool(page.lost(text))
    except FigureError:
        return True


def main(root: Path = Path()) -> int:
    """Prints how many exchanges the check notices on every page; returns 1 where it is less than 99 in a hundred.

    Args:
        root: The project.
    """
    found = {page.path: noticed(page) for page in load_traced(root)}
    for path, tries in found.items():
        if tries:
            print(f"{path.relative_to(root)}: {sum(tries)} of {len(tries)}")
    tries = [one for page in found.values() for one in page]
    print(f"all: {sum(tries)} of {len(tries)}")
    return int(sum(tries) < 0.99 * len(tries))


if __name__ == "__main__":
    sys.exit(main())
