"""Runs that belong together: seeds of a configuration, learners on a scenario, or what a TOML or YAML file names.

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Unpack

from pydantic import BaseModel, ConfigDict, Field

from cndpm.experiments.config import RunConfig, configure, differing_keys
from cndpm.experiments.metrics import combine_seeds
from cndpm.experiments.record import RecordError, find_records, read_record
from cndpm.experiments.record_files import write_json
from cndpm.experiments.workers import Job, SweepOptions, run_jobs
from cndpm.streams.scenario_files import parsed
from cndpm.validation import ConfigError, validate

__all__ = ["compare_learners", "run_seeds"]


def run_seeds(
    config: RunConfig, seeds: Sequence[int], out: str | Path, **options: Unpack[SweepOptions]
) -> dict[str, Any]:
    """Runs one configuration with several seeds, each in its own folder ``out/seed-N``.

    Args:
        config: What to run; its own seed is replaced.
        seeds: The seeds.
        out: The folder; ``result.json`` in it holds what is returned: means, standard errors and every seed's values.
        **options: `data_dir`, where datasets lie; `resume`, which skips seeds that are complete and goes on with those
            that were interrupted; `monitor_of`, which gives the monitor of a folder's run; `jobs`, runs at the same
            time; `engine`, which carries them out: "local", "ray", or an engine; and `command`, the command line that
            was typed, for the records.
    """
    return run_sweeps({Path(out): config}, seeds, **options)[0]


def run_sweeps(
    configs: Mapping[Path, RunConfig], seeds: Sequence[int], *, jobs: int = 1, **options: Any
) -> list[dict[str, Any]]:
    """Runs several configurations, by their folders, with the same seeds; as :func:`run_seeds` does one."""
    planned = [
        Job(config.model_copy(update={"seed": seed}), folder / f"seed-{seed}")
        for folder, config in configs.items()
        for seed in seeds
    ]
    with _without_empty_folders(configs):
        summaries = iter(run_jobs(planned, jobs, **options))
    results = []
    for folder, config in configs.items():
        runs = [{"seed": seed, "folder": str(folder / f"seed-{seed}"), **next(summaries)} for seed in seeds]
        results.append(combine_seeds(config.scenario.name, config.learner, config.preset, runs))
        write_json(folder / "result.json", results[-1], sealed=False)
    return results


@contextmanager
def _without_empty_folders(folders: Iterable[Path]) -> Iterator[None]:
    """Removes folders that are empty after an error and, below the current folder, empty ones around them."""
    try:
        yield
    except Exception:
        for folder in folders:
            around = () if folder.is_absolute() else folder.parents[:-1]
            with suppress(OSError):  # one holds something, and so do those around it
                for path in (folder, *around):
                    path.rmdir()
        raise


def claim_folder(name: str, parent: str | Path = "runs") -> Path:
    """Creates a folder of its own for a new run: ``runs/name``, or ``runs/name-2`` and so on where that is taken."""
    name = folder_name(name)
    free = (folder for i in count(1) if _created(folder := Path(parent) / (name if i == 1 else f"{name}-{i}")))
    return next(free)


def folder_name(name: str) -> str:
    """Replaces what may stand in the name of a scenario or learner, but not in that of a folder."""
    return name.replace("/", "_").replace(":", "_")


def _created(folder: Path) -> bool:
    """Creates a folder; False where somebody has done so before."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError as error:
        raise RecordError(f"cannot create {folder}: {error.strerror}. Name another folder with --out.") from error
    return True


def latest_folder(config: RunConfig, name: str, parent: str | Path = "runs") -> Path | None:
    """Finds the newest folder that :func:`claim_folder` made for runs with this configuration, whatever their seed."""
    candidates = sorted(Path(parent).glob(f"{folder_name(name)}*"), key=lambda path: path.stat().st_mtime, reverse=True)
    wanted = config.to_json() | {"seed": None}
    for folder in candidates:
        if any(_has_config(record, wanted) for record in find_records(folder)):
            return folder
    return None


def _has_config(record: Path, wanted: dict[str, Any]) -> bool:
    """Tells whether a record has this configuration, whatever its seed; one that cannot be read has not."""
    try:
        return not differing_keys(read_record(record).config | {"seed": None}, wanted)
    except RecordError:
        return False


def compare_learners(
    scenario: str,
    learners: Sequence[str],
    out: str | Path | None = None,
    *,
    seeds: Sequence[int] = (0,),
    **options: Any,
) -> dict[str, Any]:
    """Runs several learners on one scenario, each in ``out/LEARNER/seed-N``; returns the folder and a result for each.

    Args:
        scenario: Name or file.
        learners: Their names; ``package.module:Class`` for those of one's own.
        out: The folder; None: ``runs/compare-SCENARIO``, the newest one of the same kind when resuming.
        seeds: The seeds, the same for every learner.
        **options: As for :func:`run_seeds` and :func:`~cndpm.experiments.config.configure`. Overrides of ``learner`` go
            to all learners.
    """
    if not learners:
        raise ConfigError("name at least one learner, e.g. --learners cndpm,finetune")
    kept: Any = {name: options.pop(name) for name in SweepOptions.__annotations__ if name in options}
    configs = [configure(scenario, learner=learner, **options) for learner in learners]  # all, before the first run
    name = f"compare-{configs[0].scenario.name}"
    folder = Path(out or (latest_folder(configs[0], name) if kept.get("resume") else None) or claim_folder(name))
    results = run_sweeps({folder / folder_name(config.learner): config for config in configs}, seeds, **kept)
    return {"scenario": configs[0].scenario.name, "folder": str(folder), "learners": results}


_SUFFIXES = (".toml", ".yaml", ".yml")
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
    if path.suffix.lower() not in _SUFFIXES:
        raise ConfigError(f"a sweep is a file that ends with {', '.join(_SUFFIXES)}; got {path}")
    try:
        content = parsed(path)
    except (OSError, ValueError, RecursionError) as error:
        said = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise ConfigError(f"cannot read {path}: {said[:300]}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} should name scenarios and learners; got a {type(content).__name__}")
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
