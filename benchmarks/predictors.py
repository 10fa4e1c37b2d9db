"""What the Gaussians, the networks and both together get right, of the experts that a run has left.

    cndpm run mnist-svhn --set learner.classifier=both --out runs/both
    python -m benchmarks.predictors runs/both/seed-0 [--data-dir DIR]

In per cent of each task's test samples. The expert that answers is chosen by the Gaussians in all three.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from cndpm.experts.combined import CombinedBank
from cndpm.mixture import log_gate
from cndpm.model.cndpm import CNDPM
from cndpm.paper.reproduction import load_run
from cndpm.streams import Task


@torch.no_grad()
def accuracies(learner: CNDPM, bank: CombinedBank, task: Task) -> dict[str, float]:
    hits = {"gaussians": 0, "networks": 0, "both": 0}
    for x, y in zip(task.x.split(250), task.y.to(task.x.device).split(250), strict=True):
        chosen = log_gate(bank.log_density(x), learner.counts.to(x.device)).argmax(dim=1)
        rows = torch.arange(len(x), device=x.device)
        answers = {"gaussians": bank.gaussians.predictive(x), "networks": bank.networks.predictive(x)}
        for name, answer in (answers | {"both": bank.predictive(x)}).items():
            hits[name] += int((answer[rows, chosen].argmax(dim=1) == y).sum())
    return {name: round(100 * n / len(task.x), 2) for name, n in hits.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path)
    parser.add_argument("--data-dir")
    options = parser.parse_args()
    _, stream, learner = load_run(options.record, options.data_dir)
    if not isinstance(learner, CNDPM) or not isinstance(learner.bank, CombinedBank):
        raise SystemExit(f"{options.record} holds no run with classifier='both'")
    by_task = {task.name: accuracies(learner, learner.bank, task) for task in stream.tasks}
    banks = {"gaussians": learner.bank.gaussians, "networks": learner.bank.networks}
    kept = {name: bank.footprint().n_numbers_kept for name, bank in banks.items()}
    print(json.dumps({"tasks": by_task, "exponents": learner.bank.describe(), "numbers kept": kept}))


if __name__ == "__main__":
    main()
