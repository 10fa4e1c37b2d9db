"""``cndpm bench``: the costs of learning on this machine, as a table or as JSON."""

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
    cpu_time: Annotated[
        bool, typer.Option("--cpu-time", help="Measure the CPU time of this process, not the wall clock.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Measure the costs of learning on this machine.

    The costs of a learning step, of a sleep and of a whole run are compared with
    a plain implementation of Algorithm 1, measured in the same process. Totals
    are extrapolated from measured steps. Takes a minute or two.

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
    table = Table("cost", "value", title="Costs of learning (totals extrapolated from measured steps)")
    for name, value in report.items():
        table.add_row(name, f"{value:,.3g}" if isinstance(value, float) else str(value))
    Console().print(table)
