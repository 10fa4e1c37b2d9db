"""Rules that change: prequential accuracy on twelve streams, beside river's adaptive models in the same run.

    python -m benchmarks.drift --seeds 0 1 2 --jobs 16 --out drift.json     # all of it, an hour and a half of one core
    python -m benchmarks.drift --streams drift-flip drift-sine --models cndpm ARF --seeds 0

Every model answers a sample before it learns it: ours in batches of ten, river's row by row, with no setting per
stream. The rows are those of seed 0 throughout and seeds are the models', unless `--rows-by-seed` draws others for
every seed. Seconds are those spent answering and learning, on one thread. The package need not be installed:
`PYTHONPATH=src` is enough.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.comparison import PEERS, Result, experts, record, table, wins
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


def make_peer(name: str, seed: int) -> Any:
    """Makes a model of river with its default settings; ten trees in every ensemble."""
    from river import ensemble, forest, tree

    makers: dict[str, Callable[[], Any]] = {
        "ARF": lambda: forest.ARFClassifier(seed=seed),
        "SRP": lambda: ensemble.SRPClassifier(seed=seed, n_models=10),
        "LB": lambda: ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), seed=seed),
        "HAT": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=seed),
    }
    return makers[name]()


def run_peer(name: str, rows: Rows, seed: int) -> Result:
    """Answers and learns row by row; a model without an answer yet is wrong."""
    model, answers = make_peer(name, seed), []
    started = time.perf_counter()
    for row, label in zip(rows.x.tolist(), rows.y.tolist(), strict=True):
        x = dict(enumerate(row))
        answer = model.predict_one(x)
        answers.append(rows.y.max() + 1 if answer is None else int(answer))
        model.learn_one(x, label)
    seconds = time.perf_counter() - started
    return scored(answers, rows) | {"seconds": seconds}


def scored(answers: Sequence[int], rows: Rows) -> Result:
    """Scores the answers to all rows, (n,), window by window."""
    meter, windows = Meter("classes", window=WINDOW, changes=rows.changes), []
    parts = zip(torch.tensor(answers).split(10), torch.from_numpy(rows.y).split(10), strict=True)
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
    if task.model in PEERS:
        made = run_peer(task.model, scenario.draw(task.rows_seed), task.seed)
    else:
        made = run_ours(task.model, scenario, task.seed, task.rows_seed)
    return task._asdict() | made


def measure(tasks: Sequence[Task], jobs: int) -> Iterator[Result]:
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
    experts = f" · {result['n_experts']} experts" if result["model"] not in PEERS else ""
    over = [row["samples"] for row in result["recovery"]]
    words = "".join(f" · change over after {', '.join('never' if n is None else str(n) for n in over)}" if over else "")
    return f"{result['accuracy']:.2f} %{experts} · {result['seconds']:.1f} s{words}"


def main() -> None:
    options = parser().parse_args()
    rows = (lambda seed: seed) if options.rows_by_seed else (lambda _: 0)
    tasks = [
        Task(stream, model, seed, rows(seed))
        for seed in options.seeds
        for stream in options.streams
        for model in options.models
    ]
    results = []
    for result in measure(tasks, options.jobs):
        results.append(result)
        print(f"{result['stream']:22} {result['model']:8} seed {result['seed']}: {described(result)}", flush=True)
    results.sort(key=lambda row: tasks.index(Task(*(row[name] for name in Task._fields))))
    print("\n" + table(results, options.streams, options.models) + "\n")
    for model in options.models:
        if model not in PEERS:
            others = [other for other in options.models if other != model]
            print(wins(results, options.streams, model, others) if others else "")
            print(experts(results, options.streams, model))
    if options.out:
        asked = {"seeds": options.seeds, "jobs": options.jobs, "rows_by_seed": options.rows_by_seed}
        kept = record(results, options.streams, options.models, commit=options.commit, **asked)
        Path(options.out).write_text(json.dumps(kept, indent=1) + "\n")


def parser() -> argparse.ArgumentParser:
    """Returns the options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
