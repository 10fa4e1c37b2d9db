"""Split-CIFAR10 by Gaussian experts (the defaults) against the paper's networks on a CPU, as a ratio in one run.

python -m benchmarks.compact --data DIR [--cpu-time]

The Gaussians make the whole pass and answer all test images. The networks would take hours: the costs of all kinds of
their steps are measured on the stream's own images, before and after the Gaussians' run because machines have moods,
and multiplied by how often a whole pass makes them. That total is extrapolated and says so.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import torch

from cndpm.experiments.evaluation import TestSet, evaluate
from cndpm.experiments.presets import preset_settings
from cndpm.experiments.teaching import teach
from cndpm.experts.chunks import Samples
from cndpm.model.cndpm import CNDPM
from cndpm.model.memory import SampleBatch
from cndpm.model.settings import CNDPMSettings
from cndpm.model.settings.neural import NeuralExperts
from cndpm.streams import Stream, load_scenario

_STREAM = "split-cifar10"
_N_EXPERTS = 5
_TEST_CHUNK = 500

Clock = Callable[[], float]


def timed(call: Callable[[], Any], clock: Clock) -> float:
    """Seconds of one call."""
    started = clock()
    call()
    return clock() - started


def build(stream: Stream, preset: str, **overrides: Any) -> CNDPM:
    settings = CNDPMSettings(**preset_settings(preset, "cndpm", _STREAM)).changed(**overrides)
    return CNDPM(settings, input_shape=stream.input_shape, n_classes=stream.n_classes)


def gaussian_run(stream: Stream, clock: Clock) -> dict[str, Any]:
    """Makes a whole pass and its final evaluation: seconds of both, accuracy and experts."""
    started = clock()
    learner = build(stream, "default")
    teach(learner, stream, 0, lambda _: None)
    learned = clock()
    accuracy = evaluate(learner, TestSet(stream.tasks, labelled=True)).accuracy
    return {
        "learning": learned - started,
        "answering": clock() - learned,
        "accuracy": accuracy,
        "n_experts": learner.footprint().n_experts,
    }


def paper_costs(stream: Stream, clock: Clock, n_steps: int) -> dict[str, float]:
    """Seconds of the kinds of steps that the paper's networks make."""
    batch = next(stream.batches())
    assert batch.y is not None
    x, y = torch.cat([batch.x] * 50), torch.cat([batch.y] * 50)
    still: dict[str, Any] = {"density_sleep_steps": 0, "predictor_sleep_steps": 0, "log_alpha": -1e9}

    def found(**steps: int) -> float:
        learner = build(stream, "paper", **still | steps)
        return timed(lambda: _slept(learner, x, y), clock)

    idle = found()
    costs = {
        name: max(0.0, found(**{f"{name}_sleep_steps": n_steps}) - idle) / n_steps for name in ("density", "predictor")
    }
    awake = build(stream, "paper", **still)
    for n in range(1, _N_EXPERTS + 1):
        _slept(awake, x, y)
        if n in (1, _N_EXPERTS):
            awake.learn(*batch)
            costs[f"wake_{n}"] = min(timed(lambda: awake.learn(*batch), clock) for _ in range(3))
    costs["answer"] = timed(lambda: awake.predict_log_proba(stream.tasks[0].x[:20]), clock) * _TEST_CHUNK / 20
    return costs


def _slept(learner: CNDPM, x: torch.Tensor, y: torch.Tensor) -> None:
    """Fills the memory and makes an expert of it."""
    size = learner.settings.memory_size
    learner.memory.add(SampleBatch(Samples(x[:size]), y[:size]))
    learner.founding.sleep(learner.bank, learner.memory, learner.novelty, lambda _: None)


def paper_seconds(costs: dict[str, float], stream: Stream) -> float:
    """A whole pass and its final evaluation, extrapolated."""
    experts = build(stream, "paper").settings.experts
    assert isinstance(experts, NeuralExperts)
    training = experts.training
    asleep = training.density_sleep_steps * costs["density"] + training.predictor_sleep_steps * costs["predictor"]
    awake = (stream.n_batches or 0) * (costs["wake_1"] + costs[f"wake_{_N_EXPERTS}"]) / 2
    n_answers = sum(len(task.x) for task in stream.tasks) / _TEST_CHUNK
    return _N_EXPERTS * asleep + awake + n_answers * costs["answer"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--n-steps", type=int, default=10, help="of each network's training, to be measured")
    parser.add_argument("--cpu-time", action="store_true", help="count this process only, on a busy machine")
    options = parser.parse_args()
    clock: Clock = time.process_time if options.cpu_time else time.perf_counter
    stream = load_scenario(_STREAM).build(data_dir=options.data)
    before = paper_costs(stream, clock, options.n_steps)
    gaussians = gaussian_run(stream, clock)
    after = paper_costs(stream, clock, options.n_steps)
    paper = [paper_seconds(costs, stream) for costs in (before, after)]
    seconds = gaussians["learning"] + gaussians["answering"]
    report = {
        "clock": "this process" if options.cpu_time else "wall",
        "threads": torch.get_num_threads(),
        "gaussian_seconds": seconds,
        "paper_seconds_extrapolated": paper,
        "ratio": sum(paper) / len(paper) / seconds,
        "gaussian_run": gaussians,
        "paper_costs": [before, after],
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
