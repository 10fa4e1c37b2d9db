"""Rules that change: prequential accuracy on twelve streams, beside river's adaptive models in the same run.

    python -m benchmarks.drift --seeds 0 1 2 --jobs 16 --out drift.json     # all of it, an hour and a half of one core
    python -m benchmarks.drift --streams drift-flip drift-sine --models cndpm ARF --seeds 0
    python -m benchmarks.drift --row-by-row --models cndpm ARF --out rows.json    # ours through river's face too

Every model answers a sample before it learns it: ours in batches of ten unless `--row-by-row` is given, river's row by
row, with no setting per stream. The rows are those of seed 0 throughout and seeds are the models', unless
`--rows-by-seed` draws others for every seed. Seconds are those spent answering and learning, on one thread. The package
need not be installed: `PYTHONPATH=src` is enough.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.comparison import PEERS, Result, experts, record, table, times, wins
from benchmarks.row_by_row import MODELS, follow
from cndpm.experiments import configure, prequential
from cndpm.experiments.learners import LEARNERS
from cndpm.experiments.meter import Meter, Window
from cndpm.experiments.scores import ClassAnswers
from cndpm.streams import DriftScenario, Rows, load_scenario

STREAMS = (
    "drift-flip",
    "drift-rotate",
    "drift-sine",
    "drift-sine-in-turn",
    "drift-mixed",
    "drift-sea",
    "drift-agrawal",
    "drift-hyperplane",
    "drift-rbf",
    "drift-turning",
    "drift-image-segments",
    "drift-phishing",
)
WINDOW = 100


class Task(NamedTuple):
    """One model on one stream."""

    stream: str
    model: str
    seed: int
    rows_seed: int
    row_by_row: bool = False


def run_rows(name: str, rows: Rows, seed: int) -> Result:
    """Answers and learns row by row, river's way: its own models, and ours through :mod:`cndpm.river`."""
    answers, times = follow(name, rows, seed)
    return scored(answers, rows) | times


def scored(answers: Sequence[int], rows: Rows) -> Result:
    """Scores the answers to all rows, (n,), window by window."""
    meter, windows = Meter("classes", window=WINDOW, changes=rows.changes), []
    parts = zip(*(torch.split(part, 10) for part in (torch.tensor(answers), torch.from_numpy(rows.y))), strict=True)
    for predicted, truth in parts:
        windows.append(meter.add(ClassAnswers(predicted, truth)))
    return results_of(meter.results(), windows)


def run_ours(learner: str, scenario: DriftScenario, seed: int, rows_seed: int) -> Result:
    """Answers and learns in the scenario's batches of ten."""
    stream = scenario.build(seed=rows_seed)
    model = configure(scenario.name, learner=learner, seed=seed, device="cpu").build_learner(stream)
    evaluation = prequential(model, stream, window=WINDOW)
    windows = list(evaluation)
    summary = evaluation.summary()
    return results_of(summary, windows) | {key: summary[key] for key in ("log_loss", "n_experts", "seconds")}


def results_of(summary: dict[str, Any], windows: Sequence[Window | None]) -> Result:
    """Returns what is kept of an evaluation."""
    curve = [round(window["accuracy"], 2) for window in windows if window is not None]
    return {key: summary[key] for key in ("accuracy", "kappa", "recovery")} | {"windows": curve}


def carry_out(task: Task) -> Result:
    """Runs one model on one stream, on one thread."""
    torch.set_num_threads(1)
    scenario = load_scenario(task.stream)
    assert isinstance(scenario, DriftScenario)
    if task.row_by_row or task.model in PEERS:
        made = run_rows(task.model, scenario.draw(task.rows_seed), task.seed)
    else:
        made = run_ours(task.model, scenario, task.seed, task.rows_seed)
    return task._asdict() | made


def measure(tasks: Sequence[Task], jobs: int, carry_out: Callable[[Task], Result] = carry_out) -> Iterator[Result]:
    """Yields results as they come, from several processes at the same time where there are several jobs."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for the libraries that processes load
    if jobs == 1:
        yield from map(carry_out, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(carry_out, task) for task in tasks]):
            yield done.result()


def described(result: Result) -> str:
    """Returns one result in words: accuracy, experts, seconds, and the samples after which each change was over."""
    experts = f" · {result['n_experts']} experts" if "n_experts" in result else ""
    longest = f", longest row {result['longest_ms']:.0f} ms" if "longest_ms" in result else ""
    over = [row["samples"] for row in result["recovery"]]
    words = "".join(f" · change over after {', '.join('never' if n is None else str(n) for n in over)}" if over else "")
    return f"{result['accuracy']:.2f} %{experts} · {result['seconds']:.1f} s{longest}{words}"


def main() -> None:
    options = parser().parse_args()
    if options.row_by_row and not set(options.models) <= set(MODELS):
        parser().error(f"--row-by-row has {', '.join(MODELS)}; got {', '.join(options.models)}")
    rows = (lambda seed: seed) if options.rows_by_seed else (lambda _: 0)
    tasks = [
        Task(stream, model, seed, rows(seed), options.row_by_row)
        for seed in options.seeds
        for stream in options.streams
        for model in options.models
    ]
    compare(tasks, options, carry_out)


def compare(tasks: Sequence[Task], options: argparse.Namespace, carry_out: Callable[[Task], Result]) -> None:
    """Carries out tasks, prints what comes of them, and writes the record where one is asked for."""
    results = []
    for result in measure(tasks, options.jobs, carry_out):
        results.append(result)
        print(f"{result['stream']:22} {result['model']:12} seed {result['seed']}: {described(result)}", flush=True)
    results.sort(key=lambda row: tasks.index(Task(*(row[name] for name in Task._fields))))
    print("\n" + table(results, options.streams, options.models) + "\n")
    if all("longest_ms" in row for row in results):
        print(times(results, options.streams, options.models) + "\n")
    for model in options.models:
        if model in LEARNERS:
            others = [other for other in options.models if other != model]
            print(wins(results, options.streams, model, others) if others else "")
            print(experts(results, options.streams, model))
    if options.out:
        asked = {name: getattr(options, name) for name in ("seeds", "jobs", "rows_by_seed", "row_by_row")}
        kept = record(results, options.streams, options.models, commit=options.commit, **asked)
        Path(options.out).write_text(json.dumps(kept, indent=1) + "\n")


def parser() -> argparse.ArgumentParser:
    """Returns the options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--row-by-row", action="store_true", help="ours row by row too, through river's face")
    made.add_argument("--streams", nargs="+", default=list(STREAMS), help="names of drift-... scenarios of classes")
    models = ["cndpm", *PEERS]
    made.add_argument("--models", nargs="+", default=models, help="ARF, SRP, LB, HAT, or any learner")
    made.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of the models")
    made.add_argument("--rows-by-seed", action="store_true", help="draw the rows of every seed, not those of seed 0")
    made.add_argument("--jobs", type=int, default=1, help="processes at the same time")
    made.add_argument("--commit", help="for the record, where the source tree is not under version control")
    made.add_argument("--out", help="a JSON file for the record, e.g. docs/results/records/drift.json")
    return made


if __name__ == "__main__":
    assert set(PEERS).isdisjoint(LEARNERS)
    main()
