"""What learning costs here, as a table or as JSON."""

from __future__ import annotations

from typing import Annotated

import typer

from cndpm.cli import options

__all__ = ["add_bench_command"]


def add_bench_command(app: typer.Typer) -> None:
    """Adds `bench` to the command line."""
    app.command()(bench)


def bench(
    device: options.Device = "cpu",
    cpu_time: Annotated[bool, typer.Option("--cpu-time", help="Count this process only, on a busy machine.")] = False,
    json: options.Json = False,
) -> None:
    """Measure the cost of a wake step, a sleep and a whole run, against the plain oracle in the same run.

    Totals are extrapolated from measured steps. Takes a minute or two.

    Example: cndpm bench --json
    """
    import time
    from json import dumps

    from rich.console import Console
    from rich.table import Table

    from cndpm.experiments.benchmark import run_benchmark

    report = run_benchmark(device=device, clock=time.process_time if cpu_time else time.perf_counter)
    if json:
        print(dumps(report))
        return
    table = Table("what", "value", title="Costs of learning (totals extrapolated from measured steps)")
    for name, value in report.items():
        table.add_row(name, f"{value:,.3g}" if isinstance(value, float) else str(value))
    Console().print(table)
