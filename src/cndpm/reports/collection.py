"""Gathers runs from folders. What cannot be read, of a record or in it, is listed and does not stop the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cndpm.experiments.record import CHECKPOINT, LOG, RecordError, find_records, read_record
from cndpm.reports.run import Run

_MOST_NAMED = 5


@dataclass(frozen=True)
class Problem:
    """A folder that cannot be reported, or something in it that could not be read, with the reason."""

    folder: Path
    reason: str


@dataclass(frozen=True)
class Collection:
    """Runs that can be reported, and what cannot."""

    runs: tuple[Run, ...]
    problems: tuple[Problem, ...]


def collect(paths: Sequence[str | Path]) -> Collection:
    """Reads every record at or under the given folders, each once.

    A record without a single event is kept, since its run has just begun, unless that run was interrupted.
    """
    runs: list[Run] = []
    problems: list[Problem] = []
    seen = set()
    for path in map(Path, paths):
        if not path.exists():
            problems.append(Problem(path, "there is no such folder"))
            continue
        begun = {file.parent for name in (LOG, CHECKPOINT) for file in path.rglob(name)}
        headless = sorted(folder for folder in begun if not (folder / "config.json").exists())
        folders = [*find_records(path), *headless]
        if not folders and not (path / "pruning.json").exists():
            problems.append(Problem(path, "no record in it: neither the folder nor any below it has a config.json"))
        for folder in folders:
            if folder.resolve() not in seen:
                seen.add(folder.resolve())
                read = _read(folder)
                if isinstance(read, Run):
                    runs.append(read)
                    damage = (*read.record.problems[:_MOST_NAMED], read.portrait_problem)
                    problems += [Problem(folder, reason) for reason in damage if reason is not None]
                else:
                    problems.append(read)
    return Collection(tuple(runs), tuple(problems))


def _read(folder: Path) -> Run | Problem:
    try:
        run = Run(read_record(folder))
        missing = _missing(run)
    except RecordError as error:
        return Problem(folder, str(error))
    except (OSError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        return Problem(folder, f"the record is damaged: {type(error).__name__}: {error}")
    return Problem(folder, missing) if missing else run


def _missing(run: Run) -> str | None:
    """Returns why a record cannot be shown, or None; reads everything that a report relies on."""
    facts = (run.title, run.metric, run.batch_size, run.task_names, run.stages, run.config["preset"])
    if not all(isinstance(run.config[name], dict) for name in ("settings", "scenario", "run")):
        raise TypeError("a section of the configuration is missing")
    events = [row for row in run.record.rows if row["event"] in ("progress", "evaluation")]
    if facts and not events and run.record.status == "interrupted":
        return "empty: the run was stopped before it had learned anything"
    return None
