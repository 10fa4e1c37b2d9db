"""The commands. Each resolves its options and makes one call; what they import, they import when they run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cndpm.cli import options
from cndpm.cli.data import data_app
from cndpm.cli.models import fit, merge, play, serve
from cndpm.cli.options import chosen_engine
from cndpm.cli.reports import leave_report, report, watch

__all__ = ["app"]


def sweep(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="TOML or YAML: scenarios, learners, seeds, settings.")],
    engine: options.EngineName = "local",
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Runs at the same time.")] = 1,
    address: options.Address = None,
    gpus: Annotated[float, typer.Option(metavar="G", min=0, help="GPUs of a run on Ray, e.g. 0.25.")] = 0.0,
    retries: Annotated[
        int, typer.Option(metavar="N", min=0, help="How often a run goes on whose worker was lost.")
    ] = 2,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Folder.", show_default="runs/NAME-OF-FILE")] = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Run seeds x learners x scenarios x settings, as a file says.

    Complete runs are not repeated, and interrupted ones are resumed. `cndpm
    watch` shows records while they grow.

    Example: cndpm sweep mine.toml --engine ray --workers 8
    """
    from cndpm.cli.show import monitors_of, show_results
    from cndpm.experiments.sweep import read_sweep, run_sweep

    folder = out or f"runs/{Path(file).stem}"
    with chosen_engine(engine, workers, address, n_gpus=gpus, retries=retries) as made:
        results = run_sweep(
            read_sweep(file),
            folder,
            engine=made,
            jobs=workers,
            device=device,
            beside=Path(file).parent,
            data_dir=data_dir,
            monitor_of=monitors_of(quiet=quiet),
            command=context.obj,
        )
    names = [str(Path(result["runs"][0]["folder"]).parent.relative_to(folder)) for result in results]
    show_results(results, f"records in {folder}", {"folder": folder, "results": results}, as_json=json, names=names)
    leave_report(results, f"{folder}/report", as_json=json)


_HELD_OUT = " (validation: a tenth of the training data held out)"

app = typer.Typer(
    help="Task-free continual learning with a Dirichlet-process mixture of neural experts (CN-DPM).\n\n"
    "Start with `cndpm list`, then `cndpm run split-digits`, which needs no download.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")


def _find_own_modules() -> None:
    """Lets ``package.module:Class`` name what lies in the current folder, after everything that is installed."""
    if not {"", os.getcwd()} & set(sys.path):  # noqa: PTH109
        sys.path.append(os.getcwd())  # noqa: PTH109


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.", is_eager=True)] = False,
) -> None:
    if version:
        from cndpm import __version__

        print(__version__)
        raise typer.Exit


@app.command("list")
def list_names(
    kind: Annotated[
        str, typer.Argument(help="scenarios, learners, datasets, experiments or presets.", show_default="all of them")
    ] = "all",
    json: options.Json = False,
) -> None:
    """List scenarios, learners, datasets, experiments, presets."""
    from cndpm.cli.listing import list_kinds

    list_kinds(kind, as_json=json)


@app.command()
@options.takes(options.RECIPE, options.CARRIED)
def run(
    context: typer.Context,
    scenario: options.Scenario,
    learner: options.Learner = "cndpm",
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the record.", show_default="runs/SCENARIO-LEARNER")
    ] = None,
    monitor: options.OwnMonitors = None,
    **given: Any,
) -> None:
    """Run one learner on a scenario; write a record and a report.

    Example: cndpm run split-mnist --preset paper --seeds 3 --set learner.log_alpha=-600
    """
    from cndpm.cli.show import monitors_of, show_results
    from cndpm.experiments import configure, run_seeds
    from cndpm.experiments.sweep import claim_folder, latest_folder

    _find_own_modules()
    monitor_of = monitors_of(quiet=given["quiet"], monitors=monitor or ())
    seed = given["seed"]
    config = configure(scenario, learner=learner, seed=seed, **options.recipe(given))
    name = f"{config.scenario.name}-{learner}"
    folder = out or (latest_folder(config, name) if given["resume"] else None) or claim_folder(name)
    with options.carried(given, context.obj, monitor_of) as carried:
        result = run_seeds(config, range(seed, seed + given["seeds"]), folder, **carried)
    title = f"{config.scenario.name}{_HELD_OUT * given['validate']}: records in {folder}"
    show_results([result], title, result, as_json=given["json"])
    leave_report([result], f"{folder}/report", as_json=given["json"])


@app.command()
@options.takes(options.RECIPE, options.CARRIED)
def compare(
    context: typer.Context,
    scenario: options.Scenario,
    learners: options.Learners = "cndpm,finetune,reservoir",
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the records.", show_default="runs/compare-SCENARIO")
    ] = None,
    **given: Any,
) -> None:
    """Run several learners on one scenario; write a report.

    Example: cndpm compare split-mnist --learners cndpm,finetune,reservoir --seeds 3
    """
    from cndpm.cli.show import monitors_of, show_results
    from cndpm.experiments import compare_learners

    _find_own_modules()
    names, seed = [name.strip() for name in learners.split(",") if name.strip()], given["seed"]
    with options.carried(given, context.obj, monitors_of(quiet=given["quiet"])) as carried:
        seeds = range(seed, seed + given["seeds"])
        made = compare_learners(scenario, names, out, seeds=seeds, **options.recipe(given), **carried)
    title = f"{made['scenario']}{_HELD_OUT * given['validate']}: records in {made['folder']}"
    show_results(made["learners"], title, made, as_json=given["json"])
    leave_report(made["learners"], f"{made['folder']}/report", as_json=given["json"])


@app.command()
@options.takes({name: kind for name, kind in options.CARRIED.items() if name != "resume"})
def reproduce(
    context: typer.Context,
    experiment: Annotated[str, typer.Argument(help="Name of an experiment; see `cndpm list experiments`.")],
    only: Annotated[
        str | None, typer.Option(metavar="A,B", help="Run only these learners or scenarios.", show_default="all")
    ] = None,
    preset: options.Preset = "paper",
    seed: options.Seed = 0,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many seeds.", show_default="as the paper: 10 for tables")
    ] = None,
    set_: options.Set = None,
    device: options.Device = "auto",
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder of all reproductions.")] = "runs/paper",
    **given: Any,
) -> None:
    """Run an experiment of the paper; compare with its values.

    Complete runs are not repeated, interrupted ones are resumed, and experiments share runs.

    Example: cndpm reproduce concentration --seeds 2
    """
    from cndpm.cli.show import monitors_of, show_reproduction
    from cndpm.paper import reproduce as reproduce_experiment

    cells = [name.strip() for name in (only or "").split(",") if name.strip()]
    expected: dict[str, Any] = {"preset": preset, "n_seeds": seeds, "overrides": set_ or ()}
    with options.carried(given, context.obj, monitors_of(quiet=given["quiet"])) as carried:
        summary = reproduce_experiment(experiment, out, seed=seed, device=device, only=cells, **expected, **carried)
    show_reproduction(summary, as_json=given["json"])
    folder = f"{out}/{experiment}/report"
    leave_report(summary["cells"], folder, experiment, only=cells, as_json=given["json"], **expected)


for command in (report, watch, fit, sweep, merge, serve, play):
    app.command()(command)
