"""One pass of Gaussian experts over a stream with one thing varied: accuracy, gating, numbers kept, seconds.

python -m benchmarks.gate split-cifar10 --data DIR --device cuda --n-patches 64 --views none --shrinkage 0.01

Everything else is as `cndpm run` has it by default. `--profile FIRST` instead profiles 300 batches from FIRST on.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Callable
from typing import Any

import torch

from cndpm.experiments.evaluation import TestSet, dissect, evaluate
from cndpm.experiments.presets import preset_settings
from cndpm.experts.features import FeatureMap, FourierFeatures, IdentityFeatures, PatchFeatures
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.streams import Stream, load_scenario


def build(options: argparse.Namespace) -> tuple[Stream, CNDPM]:
    """The stream and the learner that the options describe."""
    scenario = load_scenario(options.scenario, class_order=options.class_order, fraction=options.fraction)
    stream = scenario.build(data_dir=options.data, seed=options.seed, device=options.device)
    settings = CNDPMSettings(**preset_settings("default", "cndpm", options.scenario))
    learner = CNDPM(
        settings,
        input_shape=stream.input_shape,
        n_classes=stream.n_classes,
        seed=options.seed,
        device=options.device,
        feature_map=feature_map(options),
    )
    if options.shrinkage is not None:
        learner.bank.shrinkage = options.shrinkage
    return stream, learner


def feature_map(options: argparse.Namespace) -> FeatureMap:
    """Where the Gaussians live."""
    if options.features == "identity":
        return IdentityFeatures()
    if options.features == "fourier":
        return FourierFeatures(options.n_fourier, include_input=True)
    return PatchFeatures(options.n_patches, views="auto" if options.views == "auto" else ("",))


class Counted:
    """Counts the factorisations made, those that only judge a shrinkage included."""

    def __init__(self) -> None:
        self.n_calls = 0
        for name in ("cholesky", "cholesky_ex"):
            setattr(torch.linalg, name, self._counting(getattr(torch.linalg, name)))

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.n_calls += 1
            return function(*arguments, **options)

        return call


def run(options: argparse.Namespace) -> dict[str, Any]:
    """One pass and what is known at its end."""
    factorisations = Counted()
    started = time.perf_counter()
    stream, learner = build(options)
    built = _now(options.device)
    n_batches = 0
    for batch in stream.batches():
        learner.learn(batch.x, batch.y)
        n_batches += 1
        if options.limit_seconds is not None and time.perf_counter() - built > options.limit_seconds:
            break
    learned = _now(options.device)
    test = TestSet(stream.tasks, labelled=True)
    for task in test.tasks:
        learner.prepare(task.x)
    accuracy = evaluate(learner, test).accuracy
    dissection = dissect(learner, test, range(len(stream.tasks)))
    evaluated = _now(options.device)
    return {
        "accuracy": accuracy,
        "gating": None if dissection is None else dissection.gating_accuracy,
        "n_batches": n_batches,
        "n_experts": learner.n_experts,
        "n_numbers_kept": learner.footprint().n_numbers_kept,
        "n_features": learner.bank.feature_map.n_features,
        "views": getattr(learner.bank.feature_map, "views", None),
        "shrinkage": learner.bank._gaussians.choice.state_dict(),
        "n_factorisations": factorisations.n_calls,
        "seconds_reading": round(built - started, 2),
        "seconds_learning": round(learned - built, 2),
        "seconds_evaluating": round(evaluated - learned, 2),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if options.device == "cuda" else None,
    }


def profile(options: argparse.Namespace) -> None:
    """Where 300 batches spend their time, by function and by operation."""
    stream, learner = build(options)
    batches = stream.batches()
    for _ in range(options.profile):
        learner.learn(*next(batches))

    def learn(n: int) -> Callable[[], None]:
        return lambda: [learner.learn(*next(batches)) for _ in range(n)] and None

    started = _now(options.device)
    learn(300)()
    print(f"{1e3 * (_now(options.device) - started) / 300:.3f} ms a batch, unprofiled")
    profiler = cProfile.Profile()
    profiler.runcall(learn(300))
    statistics = pstats.Stats(profiler)
    statistics.sort_stats("tottime").print_stats(45)
    with torch.profiler.profile() as operations:
        learn(100)()
    table = operations.key_averages()
    print(f"{sum(row.count for row in table) / 100:.0f} operations and runtime calls a batch")
    sort_by = "self_cuda_time_total" if options.device == "cuda" else "self_cpu_time_total"
    for order in (sort_by, "self_cpu_time_total"):
        print(table.table(sort_by=order, row_limit=30))


def _now(device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fraction", type=float)
    parser.add_argument("--class-order", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--features", choices=("patches", "fourier", "identity"), default="patches")
    parser.add_argument("--n-patches", type=int, default=128)
    parser.add_argument("--n-fourier", type=int, default=3072)
    parser.add_argument("--views", choices=("auto", "none"), default="auto")
    parser.add_argument("--shrinkage", type=float)
    parser.add_argument("--limit-seconds", type=float, help="stop learning after so many")
    parser.add_argument("--profile", type=int)
    options = parser.parse_args()
    if options.profile is not None:
        profile(options)
        return
    varied = {name: value for name, value in vars(options).items() if name not in ("data", "profile")}
    print(json.dumps({**varied, "torch": torch.__version__, **run(options)}))


if __name__ == "__main__":
    main()
