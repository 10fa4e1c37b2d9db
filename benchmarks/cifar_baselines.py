"""Split-CIFAR10 online, 1,000 stored images, ResNet-18: ER, ER-ACE and DER++; and streaming LDA on Fourier features.

    python benchmarks/cifar_baselines.py --data DATA --out cifar_baselines.json
    python benchmarks/cifar_baselines.py --data DATA --out grid.json --seeds 0 --learning-rates 0.01 0.03 0.1

`DATA/cifar-10-batches-py` holds the published files. Five tasks of two classes in order, one epoch, batches of 10, as
many images replayed. A step of so small a batch leaves a large GPU idle, so all runs share it, one process each. The
file holds every figure and is rewritten after each run, so that a stopped benchmark loses nothing.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cndpm.learners.registry import learner_class

PUBLISHED = {"reservoir": 44.0, "er-ace": 52.0, "der++": 52.0, "slda": 49.0}
REPLAY = {"memory_size": 1000, "network": "resnet18", "optimizer": "sgd"}
SETTINGS: dict[str, dict[str, Any]] = {
    "reservoir": {**REPLAY, "learning_rate": 0.03, "augmentation": "none"},
    "er-ace": {**REPLAY, "learning_rate": 0.03, "augmentation": "crop-flip"},
    "der++": {**REPLAY, "learning_rate": 0.03, "augmentation": "crop-flip", "alpha": 0.2, "beta": 0.5},
    "slda": {"features": "fourier", "n_features": 10000},
}


@dataclass(frozen=True)
class Job:
    """One run."""

    learner: str
    seed: int
    given: dict[str, Any]
    data: str
    device: str
    subset: int | None


def read_cifar10(folder: Path, names: list[str]) -> tuple[Tensor, Tensor]:
    """Images in [0, 1], (n, 3, 32, 32), and labels, (n,)."""
    parts = [pickle.loads((folder / name).read_bytes(), encoding="bytes") for name in names]
    pixels = np.concatenate([part[b"data"] for part in parts]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([part[b"labels"] for part in parts])
    return torch.from_numpy(pixels / np.float32(255)), torch.from_numpy(labels.astype(np.int64))


def run(job: Job) -> dict[str, Any]:
    """Trains on the five tasks in order and measures the accuracy over all ten classes."""
    torch.set_num_threads(1)
    folder = Path(job.data) / "cifar-10-batches-py"
    x, y = (v.to(job.device) for v in read_cifar10(folder, [f"data_batch_{i}" for i in range(1, 6)]))
    x_test, y_test = (v.to(job.device) for v in read_cifar10(folder, ["test_batch"]))
    cls = learner_class(job.learner)
    settings = cls.Settings.model_validate(job.given)
    learner = cls(settings, input_shape=(3, 32, 32), n_classes=10, seed=job.seed, device=job.device)
    generator = torch.Generator().manual_seed(1000 + job.seed)
    started = time.perf_counter()
    for task in range(5):
        index = torch.where(y // 2 == task)[0]
        index = index[torch.randperm(len(index), generator=generator).to(index.device)][: job.subset]
        for rows in torch.split(index, 10):
            learner.learn(x[rows], y[rows])
    learner.finish()
    seconds = time.perf_counter() - started
    batches = torch.split(x_test[: job.subset], 500)
    predicted = torch.cat([learner.predict_log_proba(batch).argmax(1) for batch in batches])
    accuracy = 100 * (predicted == y_test[: job.subset]).float().mean().item()
    return {**asdict(job), "accuracy": accuracy, "seconds": seconds, "footprint": asdict(learner.footprint())}


def make_jobs(arguments: argparse.Namespace) -> list[Job]:
    """The learners' settings, or every combination of the values given for a grid; the longest runs first."""
    jobs = []
    for name in sorted(arguments.learners, key=lambda learner: learner == "slda"):
        varied = {"learning_rate": arguments.learning_rates, "augmentation": arguments.augmentations}
        grid = {key: values for key, values in varied.items() if values and key in SETTINGS[name]}
        for values in product(*grid.values()):
            given = {**SETTINGS[name], **dict(zip(grid, values, strict=True))}
            for seed in arguments.seeds:
                jobs.append(Job(name, seed, given, arguments.data, arguments.device, arguments.subset))
    return jobs


def summarise(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and standard error over seeds of each learner and setting, beside the published figure."""
    groups = defaultdict(list)
    for record in records:
        groups[record["learner"], json.dumps(record["given"], sort_keys=True)].append(record["accuracy"])
    return [
        {
            "learner": learner,
            "given": json.loads(given),
            "n_seeds": len(scores),
            "mean": round(statistics.mean(scores), 2),
            "standard_error": round(statistics.stdev(scores) / len(scores) ** 0.5, 2) if len(scores) > 1 else None,
            "published_about": PUBLISHED[learner],
        }
        for (learner, given), scores in groups.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--learners", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--learning-rates", type=float, nargs="*", help="instead of the learners' own, as a grid")
    parser.add_argument("--augmentations", nargs="*", help="none, crop-flip; instead of the learners' own, as a grid")
    parser.add_argument("--workers", type=int, default=12, help="processes that share the device")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--subset", type=int, help="images per task and at test, to try the script out")
    arguments = parser.parse_args()
    device = torch.cuda.get_device_name() if arguments.device == "cuda" else arguments.device
    facts = {"command": " ".join(sys.argv), "device": device, "torch": torch.__version__}
    jobs, records = make_jobs(arguments), []
    started = time.perf_counter()
    with ProcessPoolExecutor(min(arguments.workers, len(jobs)), mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(run, job) for job in jobs]):
            records.append(done.result())
            result = {**facts, "seconds": time.perf_counter() - started, "summary": summarise(records), "runs": records}
            arguments.out.write_text(json.dumps(result, indent=1) + "\n")
            print(json.dumps({key: records[-1][key] for key in ("learner", "seed", "accuracy", "seconds")}), flush=True)
    print(json.dumps(result["summary"], indent=1))


if __name__ == "__main__":
    main()
