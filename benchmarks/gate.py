"""One pass of Gaussian experts over a stream with one thing varied: accuracy, gating, numbers kept, seconds.

python -m benchmarks.gate split-cifar10 --data DIR --device cuda --n-patches 64 --views none --shrinkage 0.01

Everything else is as `cndpm run` has it by default. `--profile FIRST` instead profiles 300 batches from FIRST on.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from cndpm.experiments import RunSettings, run
from cndpm.experiments.presets import preset_settings
from cndpm.experiments.teaching import teach
from cndpm.experts.features import FeatureMap, FourierFeatures, IdentityFeatures, PatchFeatures
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.streams import Stream, load_scenario

_PROFILED = 300


def build(options: argparse.Namespace) -> tuple[CNDPM, Stream]:
    """Makes the learner and the stream that the options describe."""
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
    bank: Any = learner.bank
    if options.shrinkage is not None:
        bank.shrinkage = options.shrinkage
    return learner, stream


def feature_map(options: argparse.Namespace) -> FeatureMap:
    """Makes the map to the features that the Gaussians live on."""
    if options.features == "identity":
        return IdentityFeatures()
    if options.features == "fourier":
        return FourierFeatures(options.n_fourier)
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


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Makes one pass and says what is known at its end; stages' ends are evaluated on a few samples."""
    factorisations = Counted()
    learner, stream = build(options)
    settings = RunSettings(evaluations=0, evaluation_samples=500, max_batches=options.max_batches)
    with tempfile.TemporaryDirectory() as folder:
        summary = run(learner, stream, folder, settings=settings)
    bank: Any = learner.bank
    features = bank.feature_map
    names = ("accuracy", "gating_accuracy", "n_batches", "n_experts", "n_numbers_kept", "seconds", "overhead_seconds")
    return {name: summary.get(name) for name in names} | {
        "n_features": features.n_features,
        "views": getattr(features, "views", None),
        "n_factorisations": factorisations.n_calls,
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if options.device == "cuda" else None,
    }


def profile(options: argparse.Namespace) -> None:
    """Prints where 300 batches spend their time, by function."""
    learner, stream = build(options)
    profiler = cProfile.Profile()

    def after_batch(step: int) -> None:
        if step == options.profile:
            profiler.enable()
        elif step == options.profile + _PROFILED:
            profiler.disable()
            raise StopIteration

    with suppress(StopIteration):
        teach(learner, stream, 0, after_batch)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(45)


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
    parser.add_argument("--max-batches", type=int, help="end the stream early")
    parser.add_argument("--profile", type=int)
    options = parser.parse_args()
    if options.profile is not None:
        profile(options)
        return
    varied = {name: value for name, value in vars(options).items() if name not in ("data", "profile")}
    print(json.dumps({**varied, "torch": torch.__version__, **measure(options)}))


if __name__ == "__main__":
    main()
