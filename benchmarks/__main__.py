"""python -m benchmarks [--json] [--device DEVICE]: costs of learning beside those of the oracle, in one run."""

from __future__ import annotations

import argparse
import json
import time

from rich.console import Console
from rich.table import Table

from cndpm.experiments.benchmark import run_benchmark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpu-time", action="store_true", help="count this process's time only, on a busy machine")
    arguments = parser.parse_args()
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    report = run_benchmark(device=arguments.device, clock=clock)
    if arguments.json:
        print(json.dumps(report))
        return
    table = Table("what", "value", title="Costs of learning (totals extrapolated from measured steps)")
    for name, value in report.items():
        table.add_row(name, f"{value:,.3g}" if isinstance(value, float) else str(value))
    Console().print(table)


if __name__ == "__main__":
    main()
