"""A sweep of 100 small runs on this machine's processes and on Ray, in one run, and that they leave the same records.

    python -m benchmarks.sweeps             # needs the extra ray; two workers each

A run is 40 batches of a baseline on split-digits. Local runs have a fresh process each; Ray keeps its workers, which is
what it wins, and starts a cluster, which is counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from cndpm.engines.local import make_engine
from cndpm.experiments import read_record
from cndpm.experiments.sweep import Sweep, run_sweep

_TIMES = ("seconds", "overhead_seconds")


def records(folder: Path) -> dict[str, Any]:
    """Returns the rows of all records but for their times, by their folders."""
    found = {}
    for path in sorted(folder.glob("*/*/seed-*")):
        rows = read_record(path).rows
        found[str(path.relative_to(folder))] = [{k: v for k, v in row.items() if k not in _TIMES} for row in rows]
    return found


def main() -> None:
    """Prints the seconds of both and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweeps", description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    options = parser.parse_args()
    few = ("run.max_batches=40", "run.evaluations=1")
    sweep = Sweep(scenarios=("split-digits",), learners=("reservoir", "finetune"), seeds=options.runs // 2, set=few)
    seconds, left = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("ray", "local"):
            began = time.perf_counter()
            engine = make_engine(name, 2)
            run_sweep(sweep, Path(folder, name), engine=engine, jobs=2, device="cpu")
            engine.close()
            seconds[name] = time.perf_counter() - began
            left[name] = records(Path(folder, name))
            print(f"{name}: {len(left[name])} runs in {seconds[name]:.1f} s", flush=True)
    print(f"ray against local: {seconds['ray'] / seconds['local']:.2f} times")
    print("the same records:", left["ray"] == left["local"])


if __name__ == "__main__":
    main()
