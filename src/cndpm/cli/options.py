"""The arguments and options that commands share, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import typer

Scenario = Annotated[str, typer.Argument(help="Name of a scenario, or a TOML or YAML file.")]
Learner = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A name of `cndpm list learners`; package.module:Class for your own; sklearn:... or river:... for theirs.",
    ),
]
Learners = Annotated[
    str, typer.Option(metavar="A,B,C", help="Names of learners, yours and those of sklearn and river as for run.")
]
Preset = Annotated[str, typer.Option(metavar="NAME", help="Settings to start from: default (ours), paper or fast.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="The first seed.")]
Seeds = Annotated[int, typer.Option(metavar="N", min=1, help="Number of seeds, from --seed on.")]
Jobs = Annotated[int, typer.Option(metavar="N", min=1, help="Runs at the same time, each in its own process.")]
EngineName = Annotated[str, typer.Option("--engine", metavar="E", help="local (processes) or ray (a cluster).")]
Address = Annotated[
    str | None, typer.Option(metavar="A", help="Of a Ray cluster that runs.", show_default="starts one here")
]
Epochs = Annotated[
    float | None, typer.Option(metavar="E", help="Epochs of every stage.", show_default="the scenario's")
]
Repeats = Annotated[int | None, typer.Option(metavar="R", min=1, help="Repeat the scenario R times.", show_default="1")]
Fraction = Annotated[float | None, typer.Option(metavar="F", help="Share of training data.", show_default="1.0")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="S.F=V", help="Set field F of section S (learner, scenario, run) to V; repeatable."),
]
Device = Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or cuda:N.")]
DataDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder of the datasets.", show_default="CNDPM_DATA, else a cache folder"),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the same run where it stopped.")]
OwnMonitors = Annotated[
    list[str] | None, typer.Option("--monitor", metavar="M:C", help="Also tell a monitor of your own; repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of output.")]
Validate = Annotated[
    bool, typer.Option("--validate", help="Hold out a tenth of every class's training samples as the test set.")
]
Prequential = Annotated[bool, typer.Option("--prequential", help="Answer each batch before learning it.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


RECIPE: dict[str, tuple[Any, Any]] = {
    "preset": (Preset, "default"),
    "seed": (Seed, 0),
    "seeds": (Seeds, 1),
    "epochs": (Epochs, None),
    "repeats": (Repeats, None),
    "fraction": (Fraction, None),
    "prequential": (Prequential, False),
    "validate": (Validate, False),
    "set_": (Set, None),
    "device": (Device, "auto"),
}
"""Options of what is run, with their defaults."""

CARRIED: dict[str, tuple[Any, Any]] = {
    "data_dir": (DataDir, None),
    "resume": (Resume, False),
    "jobs": (Jobs, 1),
    "engine": (EngineName, "local"),
    "address": (Address, None),
    "quiet": (Quiet, False),
    "json": (Json, False),
}
"""Options of how runs are carried out."""

Command = TypeVar("Command", bound=Callable[..., None])


def takes(*groups: dict[str, tuple[Any, Any]]) -> Callable[[Command], Command]:
    """Gives a command the options of some groups behind its own: it gets them as ``**given``."""

    def add(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        kept = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for group in groups
            for name, (kind, default) in group.items()
        ]
        command.__signature__ = own.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
        return command

    return add


def recipe(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the options of :data:`RECIPE`, but for seeds, as :func:`cndpm.experiments.configure` takes them."""
    named = {name: given[name] for name in ("preset", "device", "epochs", "repeats", "fraction", "prequential")}
    return {**named, "overrides": given["set_"] or (), "validation": given["validate"] or None}


@contextmanager
def carried(given: dict[str, Any], command: str, monitor_of: Any) -> Iterator[Any]:
    """Gives the options of :data:`CARRIED` as :func:`cndpm.experiments.run_seeds` takes them, with their engine."""
    with chosen_engine(given["engine"], given["jobs"], given["address"]) as engine:
        named = {name: given[name] for name in ("data_dir", "resume", "jobs") if name in given}
        yield {**named, "engine": engine, "command": command, "monitor_of": monitor_of}


@contextmanager
def chosen_engine(
    name: str, workers: int, address: str | None = None, *, n_gpus: float = 0.0, retries: int = 0
) -> Iterator[Any]:
    """Makes an engine and closes it; with one local worker there is none, and runs take place in this process."""
    from cndpm.engines.local import opened_engine

    with opened_engine(name, workers, address=address, n_gpus=n_gpus, retries=retries) as engine:
        yield "local" if name == "local" and workers == 1 else engine
