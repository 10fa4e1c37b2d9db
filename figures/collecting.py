"""Gathers runs of the one loop into one record, a line a run: ``python -m figures.collecting FOLDER ... --out RECORD``.

A line has what the tables need and what traces a figure: command, commit, machine, device, versions, scenario, learner,
preset, seed, the cell of the paper's tables if it is one, and the run's summary. Runs that are not complete are named
and left out.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cndpm.experiments import Record, read_record
from figures.facts import without_places
from figures.paper import cell_of

__all__ = ["lines", "main"]


def lines(roots: Sequence[Path], **facts: Any) -> Iterator[dict[str, Any]]:
    """Yields one line for every complete run below some folders, by path.

    Args:
        roots: The folders.
        **facts: Further fields, and those that win over the environment's: a commit, where a source had no repository.
    """
    folders = sorted({path.parent for root in roots for path in root.rglob("config.json")})
    for folder in folders:
        record = read_record(folder)
        if record.summary is None:
            print(f"{folder}: {record.status}, left out")
        else:
            yield _line(record) | facts


def _line(record: Record) -> dict[str, Any]:
    config, environment = record.config, record.environment
    summary, scenario = record.summary or {}, config["scenario"]
    words = without_places(shlex.split(environment.get("command") or ""))
    given = dict(word.removeprefix("learner.").split("=", 1) for word in words if word.startswith("learner."))
    return {
        "command": shlex.join(words) or None,
        "commit": environment.get("commit"),
        "machine": f"{environment.get('device')}, torch {environment.get('torch')}",
        "scenario": scenario["name"],
        "fraction": scenario.get("fraction", 1.0),
        "epochs": scenario["stages"][0].get("epochs") if scenario.get("stages") else None,
        "stages": len(scenario.get("stages", ())),
        "validation": scenario.get("validation", False),
        "learner": config["learner"],
        "preset": config["preset"],
        "seed": config["seed"],
        **({"given": given} if given else {}),
        **({"cell": cell} if (cell := cell_of(config)) else {}),
    } | {name: value for name, value in summary.items() if name not in ("seed", "scenario", "learner", "preset")}


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the record.

    Args:
        arguments: Of the command line; None: those of this process.
    """
    parser = argparse.ArgumentParser(prog="python -m figures.collecting", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--commit", help="where the source had no repository about it")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    facts = {"commit": options.commit} if options.commit else {}
    found = list(lines(options.folders, **facts))
    options.out.write_text("".join(json.dumps(line) + "\n" for line in found), encoding="utf-8")
    print(f"{options.out}: {len(found)} runs")


if __name__ == "__main__":
    main()
