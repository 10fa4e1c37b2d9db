"""The shrinkage for classes with fewer samples than features, in whole streams, on held-out training samples.

    python -m benchmarks.few_samples cifar10 0.1 48 --data DIR --device cuda --seeds 3 --out few.jsonl --commit COMMIT

Dataset, share of its training samples, patches a size. One stream is learned by the default as it is, and one with the
accuracy foretold however few the samples are, as it was before; the answers of the first are also given at other
multiples of the density's shrinkage, which only answers depend on.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from typing import Any
from unittest import mock

import torch
from figures.facts import add_options, append, facts

from benchmarks.one_pass import scenario
from cndpm.experiments import RunSettings, configure, run
from cndpm.experiments.evaluation import TestSet, evaluate
from cndpm.experts.gaussian import choice
from cndpm.experts.gaussian.choice import CovarianceChoice
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.model.cndpm import CNDPM
from cndpm.streams import Stream

_MULTIPLES = {"density": 1.0, "half a decade": math.sqrt(10), "a decade": 10.0}


def learned(options: argparse.Namespace, seed: int) -> tuple[CNDPM, Stream]:
    """Returns the default after its stream, and the stream.

    Args:
        options: Of the command.
        seed: Of the stream, of what is held out and of the learner.
    """
    stream = scenario(options.dataset, options.fraction).build(data_dir=options.data, seed=seed, device=options.device)
    overrides = [f"learner.n_patches={options.n_patches}"]
    learner = configure("split-cifar10", seed=seed, device=options.device, overrides=overrides).build_learner(stream)
    assert isinstance(learner, CNDPM)
    with tempfile.TemporaryDirectory() as folder:
        run(learner, stream, folder, settings=RunSettings(evaluations=0, evaluation_samples=50))
    return learner, stream


def gaussians_of(learner: CNDPM) -> SharedGaussians:
    """Returns the components of a learner."""
    found = learner.bank.ready()  # type: ignore[attr-defined]
    assert isinstance(found, SharedGaussians)
    return found


def accuracy(learner: CNDPM, stream: Stream, shrinkage: float | None = None) -> float:
    """Returns the accuracy on all held-out samples, at a shrinkage where one is given.

    Args:
        learner: After the stream.
        stream: Its tasks are tested.
        shrinkage: lambda for answers.
    """
    test = TestSet(stream.tasks, stream.labelled, 500)
    if shrinkage is None:
        return float(evaluate(learner, test).accuracy or 0.0)
    statistics = gaussians_of(learner).statistics
    statistics.changes = statistics.changes.copy()  # answers are made anew where these are another array
    statistics.counts = statistics.counts.clone()
    with mock.patch.object(CovarianceChoice, "classes", min(1.0, shrinkage)):
        return float(evaluate(learner, test).accuracy or 0.0)


def measure(options: argparse.Namespace, seed: int) -> list[dict[str, Any]]:
    """Returns one line for every rule.

    Args:
        options: Of the command.
        seed: Of the stream and the learner.
    """
    asked = {name: getattr(options, name) for name in ("dataset", "fraction", "n_patches")} | {"seed": seed}
    learner, stream = learned(options, seed)
    gaussians = gaussians_of(learner)
    density = gaussians.choice.density
    size = {"n_samples": float(gaussians.counts.sum()), "n_features": gaussians.statistics.n_features}
    found = {"default": accuracy(learner, stream)}
    found |= {name: accuracy(learner, stream, density * times) for name, times in _MULTIPLES.items()}
    with mock.patch.object(choice, "can_foretell", lambda _: True):
        before, stream = learned(options, seed)
        found["foretold always"] = accuracy(before, stream)
    return [{**asked, **size, "rule": name, "accuracy": value} for name, value in found.items()]


def main() -> None:
    """Appends the lines of all seeds to the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_samples", description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("fraction", type=float)
    parser.add_argument("n_patches", type=int)
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=3)
    add_options(parser, required=True)
    options = parser.parse_args()
    made_by = facts(options.device, commit=options.commit)
    for seed in range(options.seeds):
        lines = measure(options, seed)
        print(seed, {line["rule"]: round(line["accuracy"], 2) for line in lines}, flush=True)
        append(options.out, [{**line, **made_by} for line in lines])


if __name__ == "__main__":
    main()
