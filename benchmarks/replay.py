"""What replay costs: a step of reservoir replay against a fine-tuning step on the same batches, in one run.

    python -m benchmarks.replay

A reservoir step does twice the work; beyond that it may cost a tenth of a fine-tuning step for its memory (limit 2.2).
Both learners take turns in short rounds, so that a busy machine slows both alike; the ratio is of the median rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch

from cndpm.baselines.finetune import FineTune
from cndpm.baselines.reservoir import Reservoir
from cndpm.learner import Learner

LIMIT = 2.2


def seconds_per_step(learner: Learner, x: torch.Tensor, y: torch.Tensor, n_steps: int) -> float:
    started = time.process_time()
    for _ in range(n_steps):
        learner.learn(x, y)
    return (time.process_time() - started) / n_steps


def measure(*, batch_size: int, n_rounds: int, n_steps: int) -> dict[str, float]:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(batch_size, 1, 28, 28, generator=generator)
    y = torch.randint(10, (batch_size,), generator=generator)
    learners = {
        "finetune": FineTune(FineTune.Settings.model_validate({}), input_shape=(1, 28, 28), n_classes=10),
        "reservoir": Reservoir(Reservoir.Settings.model_validate({}), input_shape=(1, 28, 28), n_classes=10),
    }
    for learner in learners.values():  # fills the memory and warms up
        seconds_per_step(learner, x, y, 600 // batch_size + 10)
    rounds = [
        {name: seconds_per_step(learner, x, y, n_steps) for name, learner in learners.items()} for _ in range(n_rounds)
    ]
    medians = {name: statistics.median(each[name] for each in rounds) for name in learners}
    return {**{f"{name}_ms": round(1000 * value, 3) for name, value in medians.items()},
            "ratio": round(medians["reservoir"] / medians["finetune"], 3)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-size", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    result = measure(batch_size=arguments.batch_size, n_rounds=arguments.rounds, n_steps=arguments.steps)
    print(json.dumps({"batch_size": arguments.batch_size, **result, "limit": LIMIT}))
    if result["ratio"] >= LIMIT:
        raise SystemExit(f"a reservoir step costs {result['ratio']} fine-tuning steps; the limit is {LIMIT}")


if __name__ == "__main__":
    main()
