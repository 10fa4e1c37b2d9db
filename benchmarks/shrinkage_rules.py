"""What rules for the shrinkage of classes would have given, by the record of :mod:`benchmarks.choices`.

    python -m benchmarks.shrinkage_rules docs/results/records/choices.jsonl docs/results/records/shrinkage-rules.jsonl

The record has, for every pass, the held-out accuracy at every shrinkage of a grid, the shrinkages that densities and
the foretold accuracy ask for, and how many samples of the latest classes each would have got right on the way. A rule
picks one of the grid; its accuracy is looked up, nothing is run. One line of the new record is one rule on one pass.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from figures.facts import facts

Row = dict[str, Any]
Rule = Callable[[Row], float]

_HALF_DECADE = math.sqrt(10)


def _geometric(row: Row) -> float:
    return math.sqrt(row["density"] * row["foretold"])


def _has_more_samples_than_features(row: Row) -> bool:
    return bool(row["n_samples"] >= row["n_features"])


def _prequential(row: Row) -> float:
    """Returns the shrinkage that got most of the waiting rows right; of several the middle one."""
    hits = {float(value): n for value, n in row["hits"].items()}
    best = [value for value, n in hits.items() if n == max(hits.values())]
    return best[len(best) // 2]


RULES: Mapping[str, Rule] = {
    "density": lambda row: row["density"],
    "foretold": lambda row: row["foretold"],
    "geometric": _geometric,
    "geometric, else density": lambda row: _geometric(row) if _has_more_samples_than_features(row) else row["density"],
    "geometric, else half a decade": lambda row: (
        _geometric(row) if _has_more_samples_than_features(row) else _HALF_DECADE * row["density"]
    ),
    "half a decade": lambda row: _HALF_DECADE * row["density"],
    "a decade": lambda row: 10 * row["density"],
    "prequential": _prequential,
    "best": lambda row: max((accuracy, float(value)) for value, accuracy in row["by_shrinkage"].items())[1],
}
"""By name; "else" is where samples are fewer than features, "best" is the best of the grid, which no rule can know."""


def accuracy_at(row: Row, shrinkage: float) -> float:
    """Returns the held-out accuracy at the point of the grid nearest to a shrinkage.

    Args:
        row: A pass.
        shrinkage: lambda.
    """
    grid = {float(value): accuracy for value, accuracy in row["by_shrinkage"].items()}
    return float(grid[min(grid, key=lambda value: abs(math.log(value / shrinkage)))])


def main() -> None:
    """Writes the record of all rules."""
    source, out = map(Path, sys.argv[1:3])
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    lines, command = [], facts()["command"]
    for row in (row for row in rows if row["choice"] == "shrinkage"):
        kept = {name: row[name] for name in ("dataset", "seed", "fraction", "n_patches", "n_samples", "n_features")}
        made_by = {"command": command} | {name: row[name] for name in ("commit", "machine")}
        for name, rule in RULES.items():
            accuracy = accuracy_at(row, rule(row))
            gained = accuracy - accuracy_at(row, _geometric(row))
            lines.append({"rule": name, **kept, "accuracy": accuracy, "gained": round(gained, 6), **made_by})
    out.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
