"""``cndpm report`` and ``cndpm watch``: pages, tables and figures of runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cndpm.cli import options

Runs = Annotated[list[str], typer.Argument(metavar="RUNS", help="Folders of runs, or folders above them.")]


def report(
    runs: Runs,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder of the report.")] = "report",
    formats: Annotated[
        str, typer.Option("--format", metavar="A,B", help="Of html, md, csv, tex, png, pdf, svg; or all.")
    ] = "html,md,csv,tex",
    experiment: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Add the table of an experiment of the paper; repeatable.")
    ] = None,
    preset: Annotated[str, typer.Option(metavar="NAME", help="Preset that their runs started from.")] = "paper",
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Seeds expected per cell of them.", show_default="as the paper"),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write the tables, figures and HTML page of one run or many.

    Example: cndpm report runs/compare-split-mnist --format html,tex,pdf
    """
    from cndpm.cli.show import show
    from cndpm.paper import find_experiment
    from cndpm.reports import write_report
    from cndpm.reports.formats import to_terminal
    from cndpm.reports.report import FORMATS

    chosen = list(FORMATS) if formats == "all" else [name.strip() for name in formats.split(",") if name.strip()]
    experiments = [find_experiment(name) for name in experiment or ()]
    made = write_report(runs, out, formats=chosen, experiments=experiments, preset=preset, n_seeds=seeds)
    problems = {str(one.folder): one.reason for one in made.content.collection.problems}
    content = {
        "page": str(made.page) if made.page else None,
        "files": [str(file) for file in made.files],
        "n_runs": len(made.content.collection.runs),
        "problems": problems,
    }
    show(content, [to_terminal(table) for table in made.content.tables], as_json=json)
    for folder, reason in problems.items():
        typer.echo(f"cndpm: {folder}: {reason}", err=True)
    if not json:
        print(f"report: {made.page or out}")


def watch(
    runs: Runs,
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="Port; 0 takes any free one.")] = 8765,
) -> None:
    """Serve a page that updates itself while runs go on.

    Only this machine can open the page. Ctrl-C ends it.

    Example: cndpm watch runs/split-mnist-cndpm
    """
    from cndpm.cli.show import serve_page
    from cndpm.reports.html import make_server

    serve_page(make_server(runs, port=port), "watching")


def leave_report(
    results: Sequence[Mapping[str, Any]],
    out: str | Path,
    experiment: str | None = None,
    *,
    only: Sequence[str] = (),
    as_json: bool,
    **expected: Any,
) -> None:
    """Writes the report of runs that have just ended and prints its path; a failure is printed and not raised."""
    from cndpm.experiments import RecordError
    from cndpm.paper import find_experiment
    from cndpm.paper.reproduction import select_cells
    from cndpm.reports import write_report
    from cndpm.reports.content import find_prunings

    folders = [run["folder"] for result in results for run in result["runs"]]
    folders += [file.parent for file in find_prunings([Path(out).parent])] if experiment is not None else []
    found = [find_experiment(experiment)] if experiment is not None else []
    experiments = [replace(each, cells=select_cells(each, only)) for each in found]
    try:
        made = write_report(folders, out, experiments=experiments, **expected)
    except RecordError as error:
        print(f"cndpm: no report: {error}", file=sys.stderr)
        return
    print(f"report: {made.page}", file=sys.stderr if as_json else sys.stdout)
