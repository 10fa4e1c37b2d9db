"""Has runs measured again take the place of older ones in a record: ``python -m figures.renewing NEW RECORD``.

Runs are alike that have scenario, learner, preset, share of the samples and given settings in common. Those of which
NEW has none stay, so that a part of a record can be measured again; their lines name their own commits.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from figures.records import Row, read_rows

__all__ = ["main", "renewed"]

_ALIKE = ("scenario", "learner", "preset", "fraction", "given")


def renewed(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Returns the rows of a record after others have taken the place of those that are alike, old ones first.

    Args:
        old: Of the record.
        new: Measured again.

    Example:
        >>> renewed([{"scenario": "a", "seed": 0}, {"scenario": "b"}], [{"scenario": "a", "seed": 1}])
        [{'scenario': 'b'}, {'scenario': 'a', 'seed': 1}]
    """
    again = {_kind(row) for row in new}
    return [*(row for row in old if _kind(row) not in again), *new]


def _kind(row: Row) -> str:
    defaults = {"fraction": 1.0, "preset": "default"}
    return json.dumps([row.get(name) or defaults.get(name) for name in _ALIKE], sort_keys=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the record.

    Args:
        arguments: Of the command line; None: those of this process.
    """
    parser = argparse.ArgumentParser(prog="python -m figures.renewing", description=__doc__)
    parser.add_argument("new", type=Path)
    parser.add_argument("record", type=Path)
    options = parser.parse_args(arguments)
    new, old = read_rows(options.new), read_rows(options.record)
    rows = renewed(old, new)
    options.record.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{options.record}: {len(new)} new lines, {len(rows) - len(new)} of {len(old)} kept")


if __name__ == "__main__":
    main()
