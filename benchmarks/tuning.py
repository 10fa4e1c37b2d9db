"""What single settings of CN-DPM cost and give, on a tenth of Split-MNIST; the tables of docs/tuning.md.

python -m benchmarks.tuning --data DIR [--scenario NAME] [--fraction F] [--changes '{"covariance": "own"}']
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import torch

from cndpm.model.cndpm import CNDPM
from cndpm.streams import load_scenario

__all__ = ["measure"]

N_ASKED = 500
"""Test images of every task."""

CHANGES: tuple[dict[str, Any], ...] = (
    *({"n_patches": n} for n in (16, 32, 64, 128)),
    *({"n_patches": 32, "memory_size": n} for n in (100, 250, 1000)),
    *({"n_patches": 32, "novelty_rate": rate} for rate in (0.001, 0.05)),
    {"n_patches": 32, "anytime": False},
)


def measure(scenario: str, fraction: float, data_dir: str | None, **changes: Any) -> dict[str, Any]:
    """Learns a stream once and answers; returns accuracy, experts, numbers kept and seconds of the processor.

    Args:
        scenario: Its name.
        fraction: Share of the training samples.
        data_dir: Where datasets lie.
        **changes: Settings of CN-DPM.
    """
    stream = load_scenario(scenario, fraction=fraction).build(seed=0, data_dir=data_dir)
    learner = CNDPM(CNDPM.Settings(**changes), input_shape=stream.input_shape, n_classes=stream.n_classes, seed=0)
    begun = time.process_time()
    for block in stream.blocks():
        learner.learn_block(block.x, block.y, block.batch_size)
    learner.finish()
    learned = time.process_time()
    asked = [(task.x[:N_ASKED], task.y[:N_ASKED]) for task in stream.tasks]
    right = torch.cat([learner.predict_log_proba(x, exact=True).argmax(dim=1) == y for x, y in asked])
    return {
        **changes,
        "accuracy": round(100 * float(right.double().mean()), 2),
        "n_experts": learner.n_experts,
        "n_numbers_kept": learner.footprint().n_numbers_kept,
        "seconds_learning": round(learned - begun, 1),
        "seconds_answering": round(time.process_time() - learned, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("--data", help="folder of the datasets")
    parser.add_argument("--scenario", default="split-mnist")
    parser.add_argument("--fraction", type=float, default=0.1)
    parser.add_argument("--changes", type=json.loads, help="one change instead of all, as JSON")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for changes in CHANGES if given.changes is None else [given.changes]:
        print(json.dumps(measure(given.scenario, given.fraction, given.data, **changes)), flush=True)


if __name__ == "__main__":
    main()
