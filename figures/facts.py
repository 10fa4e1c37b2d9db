"""The facts that every line of a record names, and the commands that add such lines.

A line says by which command its figures were measured, of which commit, with which seeds and on which machine:
:func:`facts` gives all but the seeds. A command that only prints JSON is kept with

    python -m figures.facts --out docs/results/records/replay.jsonl --seeds 0 -- python -m benchmarks.replay

:func:`missing_facts` says what a record lacks; a test asks it of every record in the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from figures.records import read_rows

__all__ = ["add_options", "append", "facts", "main", "missing_facts", "processor", "without_places"]

_OWN = ("--out", "--record", "--commit", "--data", "--data-dir", "--weights")
"""Options that say where things lie on one machine; a command is told without them."""

_NAMES = {
    "command": ("command",),
    "commit": ("commit",),
    "machine": ("machine", "device"),
    "seeds": ("seed", "seeds"),
}
"""The facts, and the fields that hold each."""

_WITHIN = ("environment", "options")
"""Mappings of a row that may hold facts too."""


def facts(device: str = "cpu", *, commit: str | None = None, words: Sequence[str] | None = None) -> dict[str, Any]:
    """Returns command, commit and machine of what this process measures.

    Args:
        device: Where it is measured: "cpu" or a GPU's name.
        commit: Of the source, where no repository is about it.
        words: Of the command; None for those that started this process.

    Example:
        >>> facts(commit="abc1234", words=["cndpm", "run", "my stream", "--out", "here"])["command"]
        "cndpm run 'my stream'"
    """
    from cndpm.experiments.description import describe_environment  # loads torch, which workers of attacks do without

    told = describe_environment(device)
    name = told["device"] if device.startswith("cuda") else f"{processor()}, {os.cpu_count()} cores"
    return {
        "command": shlex.join(without_places(_started_by() if words is None else words)),
        "commit": commit or told["commit"],
        "machine": f"{name}, Python {told['python']}, torch {told['torch']}",
    }


def processor() -> str:
    """Returns the processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _started_by() -> list[str]:
    """Returns the words of the command that started this process, without its folders."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    called = ["-m", spec.name.removesuffix(".__main__")] if spec is not None else [Path(sys.argv[0]).name]
    return ["python", *called, *sys.argv[1:]]


def without_places(words: Sequence[str]) -> list[str]:
    """Returns the words of a command without the options that say where things lie, and their values."""
    own = {n for n, word in enumerate(words) if word in _OWN}
    values = {n + 1 for n in own}
    return [w for n, w in enumerate(words) if n not in own | values and not w.startswith(tuple(f"{o}=" for o in _OWN))]


def add_options(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Adds the options that say where a record goes and of which commit it is.

    Args:
        parser: Of the command.
        required: Whether the record must be named.
    """
    parser.add_argument("--out", type=Path, required=required, help="a record, to which lines are added")
    parser.add_argument("--commit", help="of the source, where no repository is about it")


def append(record: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Adds lines to a record.

    Args:
        record: A ``.jsonl`` file; made where it is missing.
        lines: One mapping each.
    """
    with record.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def missing_facts(record: Path) -> list[str]:
    """Returns the facts that some row of a record does not name: command, commit, machine, seeds.

    Args:
        record: A ``.json`` or ``.jsonl`` file.
    """
    rows = read_rows(record)
    return [fact for fact, names in _NAMES.items() if not all(_names(row, names) for row in rows)]


def _names(row: Mapping[str, Any], names: Sequence[str]) -> bool:
    places = [row, *(row[part] for part in _WITHIN if isinstance(row.get(part), Mapping))]
    return any(place.get(name) not in (None, "", []) for place in places for name in names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command that prints JSON last, and adds it with its facts to a record; returns the command's exit code.

    Args:
        arguments: Of the command line; None: those of this process.
    """
    parser = argparse.ArgumentParser(prog="python -m figures.facts", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", required=True, help="that the command uses")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("words", nargs=argparse.REMAINDER, help="-- and the command")
    add_options(parser, required=True)
    options = parser.parse_args(arguments)
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    done = subprocess.run([sys.executable, *words[1:]] if words[0] == "python" else words, stdout=subprocess.PIPE)
    told = json.loads(done.stdout.decode().strip().splitlines()[-1])
    line = facts(options.device, commit=options.commit, words=words) | {"seeds": options.seeds} | told
    append(options.out, [line])
    print(json.dumps(line))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
