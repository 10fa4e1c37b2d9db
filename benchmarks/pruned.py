"""Pruning of the paper's experts, paired: on the same trained mixtures, every way to prune and not to.

    python -m benchmarks.pruned --validate --seeds 10 11 12 13 14 --data DIR --device cuda --jobs 5 --out pruning.jsonl
    python -m benchmarks.pruned --seeds 20 21 22 23 24 25 26 27 28 29 --scenario split-fashion ...

The paper's settings with a concentration that founds too many experts, and sleeps of an eighth: a run takes half a
minute. With `--validate` the test set is a tenth of every class's training samples: there the rule is chosen. The ways:

- `not pruned`: the mixture as it is; `not pruned, again`: the same, with the samples that pruning looks at learned
  once more, kept where a fifth that is held out is predicted no worse.
- `pruned`: experts at least 0.9 similar are merged; `pruned, again`: the remaining ones then learn as above;
  `pruned, always`: they learn, and keep it in any case. At 0.8 and 0.95 likewise.
- `paper`: merged by the paper's own similarity, the cosine of the log-likelihoods themselves.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, NamedTuple

import torch
from figures.facts import add_options, append, facts
from torch import Tensor
from torch.nn import functional

from cndpm.experiments import RunSettings, configure, run
from cndpm.experiments.evaluation import TestSet, evaluate
from cndpm.experts.bank import Bank
from cndpm.experts.chunks import Samples
from cndpm.mixture import plan_merges, route, similarity
from cndpm.model import pruning
from cndpm.model.cndpm import CNDPM
from cndpm.model.memory import SampleBatch
from cndpm.paper.reproduction import N_PRUNING_SAMPLES, _spread_samples
from cndpm.streams import Stream, load_scenario

_SHORT = ("learner.log_alpha=80", "learner.density_sleep_steps=1000", "learner.predictor_sleep_steps=250")


class Way(NamedTuple):
    """A way to prune.

    Attributes:
        name: As in the record.
        threshold: Of the similarity; None: nothing is pruned.
        again: "no", "judged" (kept where the held-out fifth is predicted no worse) or "always".
        similarity: "relative" or "paper".
    """

    name: str
    threshold: float | None
    again: str = "no"
    similarity: str = "relative"


WAYS = (
    Way("not pruned", None),
    Way("not pruned, again", None, "judged"),
    Way("pruned", 0.9),
    Way("pruned, again", 0.9, "judged"),
    Way("pruned, always", 0.9, "always"),
    Way("pruned at 0.8", 0.8),
    Way("pruned at 0.8, again", 0.8, "judged"),
    Way("pruned at 0.95", 0.95),
    Way("pruned at 0.95, again", 0.95, "judged"),
    Way("paper", 0.9, "no", "paper"),
)


def prune(learner: CNDPM, batch: SampleBatch, way: Way) -> None:
    """Prunes a learner.

    Args:
        learner: With networks as experts.
        batch: The samples that pruning looks at.
        way: How.
    """
    bank = learner.bank
    if way.threshold is not None:
        joint = pruning.log_joint(bank, batch)
        alike = similarity(joint) if way.similarity == "relative" else _cosines(joint)
        numbering = list(range(len(bank.counts)))
        for removed, into in plan_merges(alike, bank.counts, way.threshold):
            bank.remove(numbering.index(removed), into=numbering.index(into))
            numbering.remove(removed)
    if way.again == "judged":
        pruning._learn_again(bank, batch, classes=True)
    elif way.again == "always":
        _learn_again(bank, batch)


def _learn_again(bank: Bank, batch: SampleBatch) -> None:
    """Has the experts learn all samples once more, in tens, without counting them; whether it helps is not asked."""
    order = torch.randperm(len(batch.samples), generator=torch.Generator().manual_seed(0))
    for rows in torch.split(order, 10):
        samples, y = batch.rows(rows)
        nothing_new = torch.zeros(len(samples), dtype=torch.bool)
        bank.learn(samples, y, route(bank.evidence(samples, y).log_known, nothing_new).responsibilities, counted=False)


def _cosines(log_joint: Tensor) -> Tensor:
    """Returns the cosine of the experts' log-likelihoods themselves, (K, K), of (n, K)."""
    unit = functional.normalize(log_joint.double(), dim=0)
    return unit.T @ unit


def trained(options: argparse.Namespace, seed: int) -> tuple[CNDPM, Stream]:
    """Returns the learner after its stream, and the stream.

    Args:
        options: Of the command.
        seed: Of the stream and the learner.
    """
    config = configure("split-mnist", preset="paper", seed=seed, device=options.device, overrides=_SHORT)
    scenario = load_scenario(options.scenario, fraction=options.fraction, validation=options.validate)
    stream = scenario.build(data_dir=options.data, seed=seed, device=options.device)
    learner = config.build_learner(stream)
    assert isinstance(learner, CNDPM)
    with tempfile.TemporaryDirectory() as folder:
        run(learner, stream, folder, settings=RunSettings(evaluations=0, evaluation_samples=200))
    return learner, stream


def measure(options: argparse.Namespace, seed: int) -> list[dict[str, Any]]:
    """Returns one line of the record for every way, all of the same trained mixture.

    Args:
        options: Of the command.
        seed: Of the stream and the learner.
    """
    torch.set_num_threads(1)
    started = time.perf_counter()
    learner, stream = trained(options, seed)
    test, state = TestSet(stream.tasks, stream.labelled, 500), learner.state_dict()
    x, y = _spread_samples(stream, N_PRUNING_SAMPLES)
    batch = SampleBatch(Samples(x), None if y is None else y.cpu())
    lines = []
    for way in WAYS:
        learner.load_state_dict(state)
        prune(learner, batch, way)
        found = {"n_experts": len(learner.bank.counts), "accuracy": evaluate(learner, test).accuracy}
        lines.append(
            {"scenario": options.scenario, "validation": options.validate, "way": way.name, "seed": seed, **found}
        )
    print(options.scenario, seed, f"{time.perf_counter() - started:.0f} s", flush=True)
    return lines


def main() -> None:
    """Appends the lines of all seeds to the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pruned", description=__doc__)
    parser.add_argument("--scenario", default="split-mnist")
    parser.add_argument("--validate", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    add_options(parser, required=True)
    options = parser.parse_args()
    made_by = facts(options.device, commit=options.commit) | {"fraction": options.fraction}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        for future in as_completed([pool.submit(measure, options, seed) for seed in options.seeds]):
            append(options.out, [line | made_by for line in future.result()])


if __name__ == "__main__":
    main()
