"""Local rules and labels in runs: six streams row by row, beside river's forest, neighbours and the label before.

    python -m benchmarks.local --seeds 0 1 2 --out local.json      # ten minutes of one core
    python -m benchmarks.local --streams board --models cndpm "five nearest" --seeds 0

Every model answers a row before it learns it; ours through :mod:`cndpm.river`, with no setting per stream. Shown are
accuracies, milliseconds a row, and the longest row. The rows are those of seed 0 throughout and seeds are the models',
unless `--rows-by-seed` draws others for every seed.
"""

from __future__ import annotations

import argparse

import torch

from benchmarks.comparison import Result
from benchmarks.drift import Task, compare, run_rows
from benchmarks.local_streams import STREAMS, draw
from benchmarks.row_by_row import MODELS


def carry_out(task: Task) -> Result:
    """Runs one model on one stream, on one thread."""
    torch.set_num_threads(1)
    return task._asdict() | run_rows(task.model, draw(task.stream, task.rows_seed), task.seed)


def main() -> None:
    options = parser().parse_args()
    tasks = [
        Task(stream, model, seed, seed if options.rows_by_seed else 0, row_by_row=True)
        for seed in options.seeds
        for stream in options.streams
        for model in options.models
    ]
    compare(tasks, options, carry_out)


def parser() -> argparse.ArgumentParser:
    """Returns the options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS))
    models = ["cndpm", "ARF", "five nearest", "label before"]
    made.add_argument("--models", nargs="+", choices=MODELS, default=models)
    made.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of the models")
    made.add_argument("--rows-by-seed", action="store_true", help="draw the rows of every seed, not those of seed 0")
    made.add_argument("--jobs", type=int, default=1, help="processes at the same time")
    made.add_argument("--commit", help="for the record, where the source tree is not under version control")
    made.add_argument("--out", help="a JSON file for the record")
    made.set_defaults(row_by_row=True)
    return made


if __name__ == "__main__":
    main()
