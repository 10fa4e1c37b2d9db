"""Sweeps: seeds x learners x scenarios x settings, as one TOML file.

    scenarios = ["split-digits"]
    learners = ["cndpm", "reservoir"]
    seeds = 3                                  # or a list: [0, 1, 2]
    preset = "default"
    set = ["run.evaluations=2"]                # for all runs, as --set

    [[settings]]                               # each of these, with every learner that it names, or with all
    name = "small"
    learners = ["cndpm"]
    set = ["learner.memory_size=100"]

A sweep can be run again at any time: complete runs are only read, and interrupted ones go on.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Unpack

from pydantic import BaseModel, ConfigDict, Field

from cndpm.experiments.config import RunConfig, configure
from cndpm.experiments.sweep import folder_name, run_sweeps
from cndpm.experiments.workers import SweepOptions
from cndpm.validation import ConfigError, validate

_Names = Annotated[tuple[str, ...], Field(min_length=1)]


class SweepSettings(BaseModel):
    """One of the settings that are crossed with everything else."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""  # of its folders; empty for the settings as they are
    learners: tuple[str, ...] = ()  # those it is for; all where there are none
    set: tuple[str, ...] = ()  # overrides, as ``--set`` takes them


class Sweep(BaseModel):
    """Names everything that is to be run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenarios: _Names  # names or files; files are looked for beside the sweep's own, too
    learners: _Names = ("cndpm",)  # names, or ``package.module:Class``
    # Number of seeds, from 0 on, or the seeds
    seeds: Annotated[int, Field(ge=1)] | Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] = 1
    preset: str = "default"  # settings to start from
    set: tuple[str, ...] = ()  # overrides for all runs
    settings: tuple[SweepSettings, ...] = (SweepSettings(),)  # crossed with scenarios, learners and seeds

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    def configs(self, *, device: str = "auto", beside: Path | None = None) -> dict[Path, RunConfig]:
        """Returns every configuration, by the folder of its runs within that of the sweep.

        ConfigError: two settings have the same name, or one names a learner that the sweep has not.
        """
        made: dict[Path, RunConfig] = {}
        for scenario in self.scenarios:
            source = beside / scenario if beside is not None and (beside / scenario).is_file() else scenario
            for settings in self.settings:
                for learner in self._learners_of(settings):
                    overrides = [*self.set, *settings.set]
                    config = configure(
                        str(source), learner=learner, preset=self.preset, device=device, overrides=overrides
                    )
                    name = folder_name("-".join(filter(None, [learner, settings.name])))
                    folder = Path(folder_name(config.scenario.name), name)
                    if folder in made:
                        raise ConfigError(f"the sweep has {folder} twice; give its settings different names")
                    made[folder] = config
        return made

    def _learners_of(self, settings: SweepSettings) -> tuple[str, ...]:
        unknown = set(settings.learners) - set(self.learners)
        if unknown:
            raise ConfigError(
                f"settings {settings.name!r} are for {', '.join(sorted(unknown))}, not among the sweep's learners: "
                f"{', '.join(self.learners)}"
            )
        return settings.learners or self.learners


def read_sweep(path: str | Path) -> Sweep:
    """Reads a sweep's file; ConfigError for a value that is not allowed, UnknownNameError for an unknown field."""
    path = Path(path)
    if path.suffix.lower() != ".toml":
        raise ConfigError(f"a sweep is a file that ends with .toml; got {path}")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        said = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise ConfigError(f"cannot read {path}: {said[:300]}") from error
    return validate(Sweep, content, "sweep")


def run_sweep(
    sweep: Sweep, out: str | Path, *, device: str = "auto", beside: Path | None = None, **options: Unpack[SweepOptions]
) -> list[dict[str, Any]]:
    """Runs what is missing of a sweep, each in ``out/SCENARIO/LEARNER-NAME/seed-N``; returns results over seeds.

    RunsFailedError is raised when some runs failed and all others have ended.
    """
    configs = {Path(out) / folder: config for folder, config in sweep.configs(device=device, beside=beside).items()}
    options["resume"] = True
    return run_sweeps(configs, sweep.all_seeds, **options)
