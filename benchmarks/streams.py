"""What drawing a batch costs, as a share of a training step.

    python -m benchmarks.streams [--data-dir DIR]

The step is one forward pass, backward pass and Adam update of a 784-400-400-10 network on a batch of ten. Both are
timed in turns in one process. Other work on the machine only adds, so the fastest round of drawing (a mean over its
batches, blocks included) is compared with the fastest single step. The aim is less than 2 %. Without MNIST on disk
made-up images of its size take its place: the cost does not depend on what is drawn.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from cndpm.datasets import MissingDataError
from cndpm.streams import Batch, Stream, load_scenario

ROUNDS, BATCHES = 11, 100


def training_step() -> Callable[[Batch], None]:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Flatten(), nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 400), nn.ReLU(), nn.Linear(400, 10)
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    labels = torch.zeros(10, dtype=torch.int64)

    def step(batch: Batch) -> None:
        optimiser.zero_grad()
        nn.functional.cross_entropy(network(batch.x), labels[: len(batch.x)] if batch.y is None else batch.y).backward()
        optimiser.step()

    return step


def build(name: str, data_dir: str | None) -> Stream:
    try:
        return load_scenario(name).build(data_dir=data_dir)
    except MissingDataError:
        return _made_up(name)


def _made_up(name: str) -> Stream:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        x, y = rng.integers(256, size=(60_000, 28, 28), dtype=np.uint8), rng.integers(10, size=60_000)
        path = Path(folder, "made-up.npz")
        np.savez(path, x=x, y=y)
        recipe = load_scenario(name).model_dump_json().replace('"dataset":"mnist"', f'"dataset":"{path}"')
        return type(load_scenario(name)).model_validate_json(recipe).build()


def seconds(work: Callable[[Batch], None], batch: Batch) -> float:
    begin = time.perf_counter()
    work(batch)
    return time.perf_counter() - begin


def draw(batches: Iterator[Batch]) -> tuple[list[Batch], float]:
    begin = time.perf_counter()
    drawn = [next(batches) for _ in range(BATCHES)]
    return drawn, (time.perf_counter() - begin) / BATCHES


def measure(name: str, data_dir: str | None = None) -> tuple[float, float]:
    """Seconds to draw a batch, the mean of the fastest round; and to train on one, the fastest step."""
    stream, step = build(name, data_dir), training_step()
    batches = stream.batches()
    drawing, training = [], []
    for _ in range(ROUNDS):
        drawn, cost = draw(batches)
        drawing.append(cost)
        training += [seconds(step, batch) for batch in drawn]
    return min(drawing), min(training)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="where datasets lie (default: CNDPM_DATA, else the user's cache)")
    arguments = parser.parse_args()
    print(f"{'scenario':<20}{'draw, µs':>10}{'step, µs':>10}{'share':>8}")
    for name in ("split-mnist", "split-mnist-gen", "iid-split-mnist"):
        drawing, training = measure(name, arguments.data_dir)
        print(f"{name:<20}{drawing * 1e6:>10.1f}{training * 1e6:>10.1f}{drawing / training:>8.2%}")


if __name__ == "__main__":
    main()
