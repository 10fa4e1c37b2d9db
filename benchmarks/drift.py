"""Rules that change: prequential accuracy on twelve streams, beside river's adaptive models in the same run.

    python -m benchmarks.drift                                        # all of it, about twenty minutes on one core
    python -m benchmarks.drift --streams drift-flip,drift-sine --models cndpm,ARF --seeds 0
    python -m benchmarks.drift --peers docs/results/records/drift-peers.json      # takes river's results from there

A file of `--peers` gives results of river's models that were made with the same versions, and is given the others.

Every model answers a sample before it learns it: ours in batches of ten, river's row by row, with no setting per
stream. The rows are those of seed 0 throughout; seeds are the models'. Seconds are those spent answering and learning.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

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
PEERS = ("ARF", "SRP", "LB", "HAT")
WINDOW = 100

Result = dict[str, Any]


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


def run_ours(learner: str, scenario: DriftScenario, seed: int) -> Result:
    """Answers and learns in the scenario's batches of ten."""
    stream = scenario.build(seed=0)
    model = configure(scenario.name, learner=learner, seed=seed, device="cpu").build_learner(stream)
    evaluation = prequential(model, stream, window=WINDOW)
    windows = list(evaluation)
    summary = evaluation.summary()
    return results_of(summary, windows) | {key: summary[key] for key in ("log_loss", "n_experts", "seconds")}


def results_of(summary: dict[str, Any], windows: Sequence[Window | None]) -> Result:
    """Returns what is kept of an evaluation."""
    curve = [round(window["accuracy"], 2) for window in windows if window is not None]
    return {key: summary[key] for key in ("accuracy", "kappa", "recovery")} | {"windows": curve}


def identity(stream: str, model: str, seed: int) -> Result:
    """Returns what a result depends on; a saved one with the same values is the same."""
    package = "river" if model in PEERS else "cndpm"
    return {"stream": stream, "model": model, "seed": seed, package: version(package), "numpy": version("numpy")}


def saved_result(saved: Sequence[Result], wanted: Result) -> Result | None:
    """Finds a result of the same model, stream, seed and versions."""
    return next((row for row in saved if wanted.items() <= row.items()), None)


def measure(options: argparse.Namespace) -> list[Result]:
    """Runs every model on every stream, a stream at a time, and prints each result as it comes."""
    peers_file = Path(options.peers) if options.peers else None
    saved = json.loads(peers_file.read_text()) if peers_file is not None and peers_file.is_file() else []
    results = []
    for name in options.streams:
        scenario = load_scenario(name)
        rows = scenario.draw(0)
        for model in options.models:
            for seed in options.peer_seeds if model in PEERS else options.seeds:
                wanted = identity(name, model, seed)
                found = saved_result(saved, wanted) if model in PEERS else None
                if found is None:
                    made = run_peer(model, rows, seed) if model in PEERS else run_ours(model, scenario, seed)
                    found = wanted | made
                    if model in PEERS and peers_file is not None:
                        saved.append(found)
                        peers_file.write_text(json.dumps(saved))
                results.append(found)
                print(f"{name:22} {model:8} seed {seed}: {described(found)}", flush=True)
    return results


def described(result: Result) -> str:
    """Returns one result in words: accuracy, experts, seconds, and the samples after which each change was over."""
    experts = f" · {result['n_experts']} experts" if result["model"] not in PEERS else ""
    over = [row["samples"] for row in result["recovery"]]
    words = "".join(f" · change over after {', '.join('never' if n is None else str(n) for n in over)}" if over else "")
    return f"{result['accuracy']:.2f} %{experts} · {result['seconds']:.1f} s{words}"


def mean_of(results: Sequence[Result], model: str, stream: str, key: str) -> float:
    """Averages a number over the seeds of a model on a stream."""
    return fmean(row[key] for row in results if (row["model"], row["stream"]) == (model, stream))


def rank(values: Sequence[float], i: int) -> float:
    """Returns the rank of value number i from above, 1 for the largest; equal values share theirs."""
    above, equal = sum(v > values[i] for v in values), sum(v == values[i] for v in values)
    return above + (equal + 1) / 2


def table(results: Sequence[Result], streams: Sequence[str], models: Sequence[str]) -> str:
    """Returns the comparison as a table in Markdown."""
    accuracy = {s: [mean_of(results, m, s, "accuracy") for m in models] for s in streams}
    seconds = {m: sum(mean_of(results, m, s, "seconds") for s in streams) for m in models}
    lines = ["| stream | " + " | ".join(models) + " |", "|---|" + "---|" * len(models)]
    lines += [f"| {s} | " + " | ".join(f"{value:.1f}" for value in accuracy[s]) + " |" for s in streams]
    columns = range(len(models))
    rows = {
        "mean": [f"{fmean(accuracy[s][i] for s in streams):.2f}" for i in columns],
        "average rank": [f"{fmean(rank(accuracy[s], i) for s in streams):.2f}" for i in columns],
        "seconds": [f"{seconds[m]:.0f}" for m in models],
    }
    if "ARF" in models:
        rows["seconds / ARF's"] = [f"{seconds[m] / seconds['ARF']:.2f}" for m in models]
    lines += [f"| {name} | " + " | ".join(values) + " |" for name, values in rows.items()]
    return "\n".join(lines)


def wins(results: Sequence[Result], streams: Sequence[str], model: str, others: Sequence[str]) -> str:
    """Says on how many streams a model is ahead of each other one, and of the best of river's."""
    own = {s: mean_of(results, model, s, "accuracy") for s in streams}
    theirs = {o: {s: mean_of(results, o, s, "accuracy") for s in streams} for o in others}
    counts = [f"{o} on {sum(own[s] > theirs[o][s] for s in streams)}" for o in others]
    peers = [o for o in others if o in PEERS]
    best = sum(own[s] > max(theirs[o][s] for o in peers) for s in streams) if peers else None
    of_best = "" if best is None else f", the best of river's on {best}"
    return f"{model} is ahead of {', '.join(counts)}{of_best} of {len(streams)} streams."


def experts(results: Sequence[Result], streams: Sequence[str], model: str) -> str:
    """Says how many experts a mixture has on every stream, a number per seed."""
    rows = {s: [r["n_experts"] for r in results if (r["model"], r["stream"]) == (model, s)] for s in streams}
    return f"{model}'s experts: " + "; ".join(f"{s} {', '.join(map(str, n))}" for s, n in rows.items()) + "."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: tuple(text.split(","))  # noqa: E731
    numbers = lambda text: tuple(int(n) for n in text.split(","))  # noqa: E731
    parser.add_argument("--streams", type=names, default=STREAMS, help="names of drift-... scenarios of classes")
    parser.add_argument("--models", type=names, default=("cndpm", *PEERS), help="ARF, SRP, LB, HAT, or any learner")
    parser.add_argument("--seeds", type=numbers, default=(0, 1, 2), help="of our learners")
    parser.add_argument("--peer-seeds", type=numbers, default=(0,), help="of river's models")
    parser.add_argument("--peers", help="a JSON file with results of river's models, used and added to")
    parser.add_argument("--out", help="a JSON file for all results, e.g. docs/results/drift.json")
    options = parser.parse_args()
    results = measure(options)
    print("\n" + table(results, options.streams, options.models) + "\n")
    for model in options.models:
        if model not in PEERS:
            others = [other for other in options.models if other != model]
            print(wins(results, options.streams, model, others) if others else "")
            print(experts(results, options.streams, model))
    if options.out:
        Path(options.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    assert set(PEERS).isdisjoint(LEARNERS)
    main()
