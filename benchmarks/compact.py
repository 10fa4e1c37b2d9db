"""Split-CIFAR10 by Gaussian experts (the defaults) against the paper's networks on a CPU, as a ratio in one run.

python -m benchmarks.compact --data DIR [--cpu-time]

Whole runs would take hours. Of both, the costs of all kinds of steps are measured on the stream's own images and
multiplied by how often a whole pass makes them; the totals are extrapolated and say so.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch

from benchmarks.gate import Counted
from cndpm.experiments.presets import preset_settings
from cndpm.learners.cndpm import CNDPM
from cndpm.learners.settings import CNDPMSettings
from cndpm.streams import Batch, Stream, load_scenario

_STREAM = "split-cifar10"
_N_EXPERTS = 5
_N_FACTORISATIONS = 50  # of a whole pass with its final evaluation, as benchmarks.gate counts them; half in float32
_TEST_CHUNK = 500

Clock = Callable[[], float]


def timed(call: Callable[[], Any], clock: Clock) -> float:
    """Seconds of one call."""
    started = clock()
    call()
    return clock() - started


def build(stream: Stream, preset: str, **overrides: Any) -> CNDPM:
    settings = CNDPMSettings(**preset_settings(preset, "cndpm", _STREAM) | overrides)
    return CNDPM(settings, input_shape=stream.input_shape, n_classes=stream.n_classes)


def teach(learner: CNDPM, batches: Iterator[Batch], n: int) -> None:
    for batch in islice(batches, n):
        learner.learn(batch.x, batch.y)


def gaussian_costs(stream: Stream, clock: Clock, n_batches: int) -> dict[str, float]:
    """Seconds of the kinds of steps that Gaussian experts make, and how often a founding factorises."""
    learner, batches, factorisations = build(stream, "default"), stream.batches(), Counted()
    first = founding_cost(learner, batches, clock), factorisations.n_calls
    # Whole blocks of the stream, so that what is computed ahead is paid for in what is measured.
    teach(learner, batches, 64 - learner.settings.memory_size // 10)
    batch = timed(lambda: teach(learner, batches, n_batches), clock) / n_batches
    factorisation = timed(learner.bank._gaussians.exact, clock)
    x = stream.tasks[0].x
    learner.predict_log_proba(x[:1])
    answer = timed(lambda: learner.predict_log_proba(x[:_TEST_CHUNK]), clock)
    before = factorisations.n_calls
    later = founding_cost(learner, stream.batches((stream.n_batches or 0) // _N_EXPERTS), clock), factorisations.n_calls
    return {
        "first_founding": first[0],
        "first_founding_factorisations": first[1],
        "founding": later[0],
        "founding_factorisations": later[1] - before,
        "factorisation": factorisation,
        "batch": batch,
        "answer": answer,
    }


def founding_cost(learner: CNDPM, batches: Iterator[Batch], clock: Clock) -> float:
    """Seconds of the batch that makes an expert; the block it belongs to is computed ahead before."""
    n_experts, seconds = learner.n_experts, 0.0
    while learner.n_experts == n_experts:
        seconds = timed(lambda: teach(learner, batches, 1), clock)
    return seconds


def gaussian_seconds(costs: dict[str, float], n_batches: int, n_answers: float) -> float:
    """A whole pass and its final evaluation."""
    later = _N_EXPERTS - 1
    foundings = costs["first_founding"] + later * costs["founding"]
    counted = costs["first_founding_factorisations"] + later * costs["founding_factorisations"]
    others = max(0.0, _N_FACTORISATIONS - counted) * costs["factorisation"]
    return n_batches * costs["batch"] + foundings + others + n_answers * costs["answer"]


def paper_costs(stream: Stream, clock: Clock, n_steps: int) -> dict[str, float]:
    """Seconds of the kinds of steps that the paper's networks make."""
    batch = next(stream.batches())
    x, y = (torch.cat([part] * 50) for part in batch)
    still: dict[str, Any] = {"density_sleep_steps": 0, "predictor_sleep_steps": 0, "log_alpha": -1e9}

    def found(**steps: int) -> float:
        learner = build(stream, "paper", **still | steps)
        learner.memory.add(x[: learner.settings.memory_size], y[: learner.settings.memory_size])
        return timed(learner.sleep, clock)

    idle = found()
    costs = {
        name: max(0.0, found(**{f"{name}_sleep_steps": n_steps}) - idle) / n_steps for name in ("density", "predictor")
    }
    awake = build(stream, "paper", **still)
    for n in range(1, _N_EXPERTS + 1):
        awake.memory.add(x[: awake.settings.memory_size], y[: awake.settings.memory_size])
        awake.sleep()
        if n in (1, _N_EXPERTS):
            awake.learn(*batch)
            costs[f"wake_{n}"] = min(timed(lambda: awake.learn(*batch), clock) for _ in range(3))
    costs["answer"] = timed(lambda: awake.predict_log_proba(stream.tasks[0].x[:20]), clock) * _TEST_CHUNK / 20
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--n-batches", type=int, default=64)
    parser.add_argument("--n-steps", type=int, default=5)
    parser.add_argument("--cpu-time", action="store_true", help="count this process only, on a busy machine")
    options = parser.parse_args()
    clock: Clock = time.process_time if options.cpu_time else time.perf_counter
    stream = load_scenario(_STREAM).build(data_dir=options.data)
    ours, paper = gaussian_costs(stream, clock, options.n_batches), paper_costs(stream, clock, options.n_steps)
    settings = build(stream, "paper").settings
    n_batches, n_answers = stream.n_batches or 0, sum(len(task.x) for task in stream.tasks) / _TEST_CHUNK
    asleep = settings.density_sleep_steps * paper["density"] + settings.predictor_sleep_steps * paper["predictor"]
    awake = n_batches * (paper["wake_1"] + paper[f"wake_{_N_EXPERTS}"]) / 2
    whole = _N_EXPERTS * asleep + awake + n_answers * paper["answer"]
    compact = gaussian_seconds(ours, n_batches, n_answers)
    report = {
        "extrapolated": True,
        "clock": "this process" if options.cpu_time else "wall",
        "threads": torch.get_num_threads(),
        "gaussian_seconds": compact,
        "paper_seconds": whole,
        "ratio": whole / compact,
        "gaussian_costs": ours,
        "paper_costs": paper,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
