"""The command that makes a run again, found by resolving it and comparing what comes out with the record."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cndpm.datasets import MissingDataError
from cndpm.experiments.config import configure
from cndpm.experiments.overrides import parse_value
from cndpm.experiments.recorder import differing_keys
from cndpm.names import UnknownNameError
from cndpm.reports.run import Run
from cndpm.streams import ScenarioFileError

__all__ = ["repeat_command", "resume_command", "run_command"]

_IGNORED = ("seed", "device")
_UNRESOLVED = (UnknownNameError, ScenarioFileError, MissingDataError, OSError, KeyError, TypeError, ValueError)
"""What goes wrong where a configuration comes from elsewhere: another version, a scenario or learner of one's own."""


def repeat_command(run: Run) -> str:
    """What makes `run` again; Python where no command line can say it (a scenario of one's own)."""
    return run_command(run.config, run.seed) or (
        'python -c "from cndpm.experiments import *; from cndpm.experiments.config import RunConfig; '
        f"run(RunConfig.from_json(read_record({str(run.record.folder)!r}).config), 'runs/again')\""
    )


def resume_command(run: Run) -> str:
    """What lets an interrupted `run` go on; a record lies in ``OUT/seed-N``."""
    command = run_command(run.config, run.seed)
    if command is None or run.record.folder.name != f"seed-{run.seed}":
        return repeat_command(run)
    return f"{command} --out {shlex.quote(str(run.record.folder.parent))} --resume"


def run_command(config: Mapping[str, Any], seed: int) -> str | None:
    """The ``cndpm run`` that resolves to this configuration with this seed; None where there is none."""
    frozen = json.dumps({key: value for key, value in config.items() if key not in _IGNORED}, sort_keys=True)
    arguments = _find_arguments(frozen)
    return None if arguments is None else f"cndpm run {arguments}" + (f" --seed {seed}" if seed else "")


@lru_cache(maxsize=512)
def _find_arguments(frozen: str) -> str | None:
    config = json.loads(frozen)
    try:
        options = _scenario_options(config)
        base = _resolve(config, options, ())
        changes = [*_changes("scenario", config["scenario"], base["scenario"])]
        changes += _changes("learner", config["settings"], base["settings"])
        changes += _changes("run", config["run"], base["run"])
        if differing_keys(_resolve(config, options, tuple(changes)), config):
            return None
    except _UNRESOLVED:
        return None
    words = [config["scenario"]["name"], "--learner", config["learner"], "--preset", config["preset"]]
    words += [word for name, value in options.items() for word in (f"--{name}", f"{value:g}")]
    words += [word for change in changes for word in ("--set", change)]
    return shlex.join(words)


def _resolve(config: Mapping[str, Any], options: Mapping[str, Any], overrides: tuple[str, ...]) -> dict[str, Any]:
    made = configure(
        config["scenario"]["name"],
        learner=config["learner"],
        preset=config["preset"],
        device="cpu",
        overrides=overrides,
        **options,
    ).to_json()
    return {key: value for key, value in made.items() if key not in _IGNORED}


def _scenario_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Repeats, epochs and fraction, where the recipe differs from the scenario of that name by them."""
    base, recipe = _resolve(config, {}, ())["scenario"], config["scenario"]
    options: dict[str, Any] = {}
    repeats, rest = divmod(len(recipe["stages"]), len(base["stages"]))
    if repeats > 1 and rest == 0:
        options["repeats"] = repeats
    epochs = {stage["epochs"] for stage in recipe["stages"]}
    if len(epochs) == 1 and epochs != {stage["epochs"] for stage in base["stages"]} and None not in epochs:
        options["epochs"] = epochs.pop()
    if recipe["fraction"] != base["fraction"]:
        options["fraction"] = recipe["fraction"]
    return options


def _changes(section: str, ours: Mapping[str, Any], base: Mapping[str, Any]) -> list[str]:
    changes = []
    for key, value in ours.items():
        before, name = base.get(key), f"{section}.{key}"
        if isinstance(value, dict) and isinstance(before, dict) and value.get("kind") == before.get("kind"):
            changes += _changes(name, value, before)
        elif value != before:
            changes.append(f"{name}={_written(value)}")
    return changes


def _written(value: Any) -> str:
    """A value as ``--set`` reads it: words stand as they are unless they would be read as something else."""
    return value if isinstance(value, str) and parse_value(value) == value else json.dumps(value)
