"""The commands that make runs again, resume them or add seeds, from the command line that their records hold."""

from __future__ import annotations

import shlex

from cndpm.experiments.description import OWN
from cndpm.reports.run import Run

_DEPTHS = {"run": 1, "compare": 2}
"""Folders between ``--out`` and a record; `reproduce` resumes by itself and lays its records as it always does."""


def repeat_command(run: Run) -> str:
    """Returns the command that was typed to make `run`; Python where it was made from Python."""
    typed = run.record.environment.get("command")
    return str(typed) if typed else _call(run, "runs/again")


def resume_command(run: Run) -> str:
    """Returns the command that lets an interrupted `run` go on."""
    words = _typed(run)
    if words is None:
        return repeat_command(run) if run.record.environment.get("command") else _call(run, run.record.folder, True)
    if words[1] not in _DEPTHS:
        return shlex.join(words)
    return shlex.join([*_without(words, "--out", "--resume"), "--out", _out(run, words[1]), "--resume"])


def seeds_command(run: Run, first: int, n: int) -> str | None:
    """Returns the command that makes runs like `run` with other seeds in its folder; None where no command made it."""
    words = _typed(run)
    if words is None:
        return None
    made = [*_without(words, "--seed", "--seeds", "--out", "--resume"), "--seed", str(first), "--seeds", str(n)]
    if words[1] not in _DEPTHS:
        return shlex.join([*_without(words, "--seed", "--seeds"), *made[-4:]])
    return shlex.join([*made, "--out", _out(run, words[1]), "--resume"])


def _typed(run: Run) -> list[str] | None:
    """Returns the words of the command that made the run; None where it was none of ours."""
    words = shlex.split(run.record.environment.get("command") or "")
    return words if len(words) > 1 and words[0] == "cndpm" and words[1] in (*_DEPTHS, "reproduce") else None


def _without(words: list[str], *options: str) -> list[str]:
    """Returns the words without some options and their values; ``--resume`` has none."""
    kept: list[str] = []
    skipping = False
    for word in words:
        if skipping:
            skipping = False
        elif word in options:
            skipping = word != "--resume"
        elif not word.startswith(tuple(f"{option}=" for option in options)):
            kept.append(word)
    return kept


def _out(run: Run, verb: str) -> str:
    return str(run.record.folder.parents[_DEPTHS[verb] - 1])


def _call(run: Run, folder: object, resume: bool = False) -> str:
    """Returns the call from Python that makes a run in `folder`."""
    also = ", resume=True" if resume else ""
    if run.config.get("preset") == OWN:
        return f"run(learner, stream, {str(folder)!r}{also})  # {run.learner} on {run.scenario}"
    return (
        'python -c "from cndpm.experiments import *; '
        f'run_config(RunConfig.from_json(read_record({str(run.record.folder)!r}).config), {str(folder)!r}{also})"'
    )
