"""Split-MNIST with every baseline: one JSON line for each run.

    python benchmarks/split_mnist.py --data DATA --learner reservoir --seeds 0 1 2
    python benchmarks/split_mnist.py --data DATA --learner gem --setting task-based --set memory_size=4400

`DATA/MNIST/raw` holds the four published files. Two settings: `online`, one epoch in batches of 10 (for iid-online and
iid-offline in random order), and `task-based`, four epochs per task in batches of 128, with the tasks' ends told.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cndpm.learners.learner import Learner, TaskBasedLearner
from cndpm.learners.registry import learner_class

SETTINGS = {"online": (1, 10), "task-based": (4, 128)}


def read_images(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    pixels = np.frombuffer(gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes()), np.uint8, offset=16)
    labels = np.frombuffer(gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes()), np.uint8, offset=8)
    return torch.from_numpy(pixels.reshape(-1, 1, 28, 28) / np.float32(255)), torch.from_numpy(labels.astype(np.int64))


def split_tasks(y: Tensor, *, shuffled: bool) -> list[Tensor]:
    return [torch.arange(len(y))] if shuffled else [torch.where(y // 2 == task)[0] for task in range(5)]


def batches(index: Tensor, epochs: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
    for _ in range(epochs):
        yield from torch.split(index[torch.randperm(len(index), generator=generator)], batch_size)


def train(learner: Learner, x: Tensor, y: Tensor | None, tasks: list[Tensor], setting: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed + 1000)
    told = isinstance(learner, TaskBasedLearner)
    for task, index in enumerate(tasks):
        if told:
            learner.begin_task(task)
        for rows in batches(index, *SETTINGS[setting], generator):
            learner.learn(x[rows], None if y is None else y[rows])
        if told:
            learner.end_task()
    learner.finish()


def score(learner: Learner, x: Tensor, y: Tensor | None) -> float:
    """Accuracy in percent, or bits per dimension on unlabelled data."""
    parts = torch.split(x, 500)
    if y is None:
        return -torch.cat([learner.log_prob(part) for part in parts]).mean().item() / (784 * np.log(2))
    predicted = torch.cat([learner.predict_log_proba(part).argmax(1) for part in parts])
    return 100 * (predicted == y).float().mean().item()


def run(arguments: argparse.Namespace, seed: int, given: dict[str, object]) -> dict[str, object]:
    folder = Path(arguments.data) / "MNIST" / "raw"
    (x, y), (x_test, y_test) = read_images(folder, "train"), read_images(folder, "t10k")
    cls = learner_class(arguments.learner)
    unlabelled = arguments.unlabelled
    learner = cls(cls.Settings(**given), input_shape=(1, 28, 28), n_classes=None if unlabelled else 10, seed=seed)
    if unlabelled:  # pixels are drawn with their intensity as the probability
        x, x_test = (torch.bernoulli(v, generator=torch.Generator().manual_seed(seed)) for v in (x, x_test))
    tasks = split_tasks(y, shuffled=arguments.learner.startswith("iid"))
    started = time.process_time()
    train(learner, x, None if unlabelled else y, tasks, arguments.setting, seed)
    seconds = time.process_time() - started
    result = score(learner, x_test, None if unlabelled else y_test)
    return {"learner": arguments.learner, "setting": arguments.setting, "unlabelled": unlabelled, "given": given,
            "seed": seed, "score": round(result, 4), "cpu_seconds": round(seconds, 1),
            "footprint": vars(learner.footprint())}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--learner", required=True)
    parser.add_argument("--setting", choices=SETTINGS, default="online")
    parser.add_argument("--unlabelled", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings of the learner, as JSON")
    arguments = parser.parse_args()
    given = {name: json.loads(value) for name, _, value in (item.partition("=") for item in arguments.set)}
    for seed in arguments.seeds:
        print(json.dumps(run(arguments, seed, given)), flush=True)


if __name__ == "__main__":
    main()
