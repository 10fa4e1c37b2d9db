"""The commands. Each resolves its options and makes one call; what they import, they import when they run."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from cndpm.cli import options
from cndpm.cli.data import data_app
from cndpm.cli.models import fit, merge, play, serve
from cndpm.cli.options import chosen_engine
from cndpm.cli.reports import add_report_commands, leave_report
from cndpm.cli.sweeping import sweep

__all__ = ["app"]

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
def run(
    context: typer.Context,
    scenario: options.Scenario,
    learner: options.Learner = "cndpm",
    preset: options.Preset = "default",
    seed: options.Seed = 0,
    seeds: options.Seeds = 1,
    epochs: options.Epochs = None,
    repeats: options.Repeats = None,
    fraction: options.Fraction = None,
    prequential: options.Prequential = False,
    validate: options.Validate = False,
    set_: options.Set = None,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the record.", show_default="runs/SCENARIO-LEARNER")
    ] = None,
    resume: options.Resume = False,
    jobs: options.Jobs = 1,
    engine: options.EngineName = "local",
    address: options.Address = None,
    tensorboard: options.TensorBoard = False,
    monitor: options.OwnMonitors = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Run one learner on a scenario; write a record and a report.

    Example: cndpm run split-mnist --preset paper --seeds 3 --set learner.log_alpha=-600
    """
    from cndpm.cli.show import Watch, show_results
    from cndpm.experiments import configure, run_seeds
    from cndpm.experiments.sweep import claim_folder, latest_folder

    _find_own_modules()
    watch = Watch(quiet=quiet, tensorboard=tensorboard, monitors=monitor or ())
    config = configure(
        scenario,
        learner=learner,
        preset=preset,
        seed=seed,
        device=device,
        overrides=set_ or (),
        epochs=epochs,
        repeats=repeats,
        fraction=fraction,
        prequential=prequential,
        validation=validate or None,
    )
    name = f"{config.scenario.name}-{learner}"
    folder = out or (latest_folder(config, name) if resume else None) or claim_folder(name)
    with chosen_engine(engine, jobs, address) as made:
        result = run_seeds(
            config,
            range(seed, seed + seeds),
            folder,
            data_dir=data_dir,
            resume=resume,
            watch=watch,
            jobs=jobs,
            engine=made,
            command=context.obj,
        )
    show_results([result], f"{config.scenario.name}{_HELD_OUT * validate}: records in {folder}", result, as_json=json)
    leave_report([result], f"{folder}/report", as_json=json)


@app.command()
def compare(
    context: typer.Context,
    scenario: options.Scenario,
    learners: options.Learners = "cndpm,finetune,reservoir",
    preset: options.Preset = "default",
    seed: options.Seed = 0,
    seeds: options.Seeds = 1,
    epochs: options.Epochs = None,
    repeats: options.Repeats = None,
    fraction: options.Fraction = None,
    prequential: options.Prequential = False,
    validate: options.Validate = False,
    set_: options.Set = None,
    device: options.Device = "auto",
    data_dir: options.DataDir = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the records.", show_default="runs/compare-SCENARIO")
    ] = None,
    resume: options.Resume = False,
    jobs: options.Jobs = 1,
    engine: options.EngineName = "local",
    address: options.Address = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Run several learners on one scenario; write a report.

    Example: cndpm compare split-mnist --learners cndpm,finetune,reservoir --seeds 3
    """
    from cndpm.cli.show import Watch, show_results
    from cndpm.experiments import compare_learners

    _find_own_modules()
    with chosen_engine(engine, jobs, address) as made:
        comparison = compare_learners(
            scenario,
            [name.strip() for name in learners.split(",") if name.strip()],
            out,
            preset=preset,
            seeds=range(seed, seed + seeds),
            device=device,
            overrides=set_ or (),
            data_dir=data_dir,
            resume=resume,
            watch=Watch(quiet=quiet),
            jobs=jobs,
            engine=made,
            command=context.obj,
            epochs=epochs,
            repeats=repeats,
            fraction=fraction,
            prequential=prequential,
            validation=validate or None,
        )
    title = f"{comparison['scenario']}{_HELD_OUT * validate}: records in {comparison['folder']}"
    show_results(comparison["learners"], title, comparison, as_json=json)
    leave_report(comparison["learners"], f"{comparison['folder']}/report", as_json=json)


@app.command()
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
    data_dir: options.DataDir = None,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder of all reproductions.")] = "runs/paper",
    jobs: options.Jobs = 1,
    engine: options.EngineName = "local",
    address: options.Address = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Run an experiment of the paper; compare with its values.

    Complete runs are not repeated, interrupted ones are resumed, and experiments share runs.

    Example: cndpm reproduce concentration --seeds 2
    """
    from cndpm.cli.show import Watch, show_reproduction
    from cndpm.paper import reproduce as reproduce_experiment

    cells = [name.strip() for name in (only or "").split(",") if name.strip()]
    with chosen_engine(engine, jobs, address) as made:
        summary = reproduce_experiment(
            experiment,
            out,
            n_seeds=seeds,
            seed=seed,
            preset=preset,
            device=device,
            data_dir=data_dir,
            overrides=set_ or (),
            only=cells,
            watch=Watch(quiet=quiet),
            jobs=jobs,
            engine=made,
            command=context.obj,
        )
    show_reproduction(summary, as_json=json)
    expected = {"preset": preset, "n_seeds": seeds, "overrides": set_ or ()}
    leave_report(summary["cells"], f"{out}/{experiment}/report", experiment, only=cells, as_json=json, **expected)


add_report_commands(app)
for command in (fit, sweep, merge, serve, play):
    app.command()(command)
