"""``cndpm sweep``: many runs as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cndpm.cli import options
from cndpm.cli.options import chosen_engine
from cndpm.cli.reports import leave_report


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
    from cndpm.cli.show import Watch, show_results
    from cndpm.experiments.sweep_file import read_sweep, run_sweep

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
            watch=Watch(quiet=quiet),
            command=context.obj,
        )
    names = [str(Path(result["runs"][0]["folder"]).parent.relative_to(folder)) for result in results]
    show_results(results, f"records in {folder}", {"folder": folder, "results": results}, as_json=json, names=names)
    leave_report(results, f"{folder}/report", as_json=json)
