"""The cost of a live stream: predicting before learning, the estimator's face, features computed, busy cores.

    python -m benchmarks.live                     # rows; images too where CNDPM_DATA names a folder with MNIST

Every line is a ratio measured in one run, the two sides taking turns; the median of several turns where they are short.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from cndpm import CNDPMClassifier
from cndpm.datasets import load_dataset
from cndpm.experts.features import FourierFeatures
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings

_BATCH = 10


def rows(n: int, n_features: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws rows of four classes that come two by two, (n, n_features), and their classes."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (n,), generator=generator) + 2 * (torch.arange(n) >= n // 2)
    centres = 0.8 * torch.randn(4, n_features, generator=generator)
    return centres[y] + torch.randn(n, n_features, generator=generator), y


def images(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns n images of MNIST, zeros and ones, then twos and threes, (n, 1, 28, 28), and their classes."""
    train = load_dataset("mnist").train
    chosen = torch.cat([torch.nonzero(train.y // 2 == task)[: n // 2, 0] for task in range(2)])
    return train.x[chosen].float() / 255, train.y[chosen]


def seconds(work: Callable[[], object]) -> float:
    """Measures how long some work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def live(x: torch.Tensor, y: torch.Tensor, *, predicting: bool, exact: bool = False) -> tuple[float, float]:
    """Learns batch by batch as they come, predicting each before; returns seconds and prequential accuracy."""
    learner = CNDPM(CNDPMSettings(), input_shape=tuple(x.shape[1:]), n_classes=10)
    right, started = 0, time.perf_counter()
    for start in range(0, len(x), _BATCH):
        part, labels = x[start : start + _BATCH], y[start : start + _BATCH]
        if predicting:
            prepared = learner.prepare(part)
            right += int((learner.predict_log_proba(prepared, exact=exact).argmax(1) == labels).sum())
            learner.learn(prepared, labels)
        else:
            learner.learn(part, labels)
    return time.perf_counter() - started, 100 * right / len(x)


def predict_then_learn(name: str, x: torch.Tensor, y: torch.Tensor, n_turns: int) -> None:
    """Prints what predicting before every batch costs, and what answers between renewals lose."""
    live(x[:500], y[:500], predicting=True)
    turns = [(live(x, y, predicting=False)[0], *live(x, y, predicting=True)) for _ in range(n_turns)]
    alone, both, lagging = np.median(turns, axis=0)
    print(f"{name}: predict, then learn / learn only: {both / alone:.2f} ({both:.1f} s / {alone:.1f} s)")
    if x[0].numel() < 100:
        exact = live(x, y, predicting=True, exact=True)
        print(f"{name}: prequential accuracy {lagging:.2f} %, with exact answers {exact[1]:.2f} % in {exact[0]:.1f} s")


def estimator_cost(name: str, x: torch.Tensor, y: torch.Tensor, n_turns: int) -> None:
    """Prints what the estimator costs over a learner with as many exemplars; they take turns, in four calls each."""
    shape, turns, size = tuple(x.shape[1:]), [], len(x) // 4
    for turn in range(n_turns + 1):
        learner = CNDPM(CNDPMSettings(), input_shape=shape, n_exemplars=1000)
        model = CNDPMClassifier(input_shape=shape if len(shape) > 1 else None, random_state=0)
        taken = [0.0, 0.0]
        for call, start in enumerate(range(0, len(x), size)):
            part = slice(start, start + size)
            sides = (
                lambda: learner.learn_block(x[part], y[part], _BATCH),  # noqa: B023
                lambda: model.partial_fit(x[part].numpy(), y[part].numpy()),  # noqa: B023
            )
            for side in (0, 1) if (turn + call) % 2 else (1, 0):
                taken[side] += seconds(sides[side])
        turns.append(taken)
    plain, face = np.median(turns[1:], axis=0)  # the first turn warms up
    print(f"{name}: partial_fit / learn_block: {face / plain:.2f} ({face:.2f} s / {plain:.2f} s)")


class Counting(FourierFeatures):
    """Counts the rows whose features are computed."""

    n_rows = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        Counting.n_rows += len(x)
        return super().__call__(x)


def features_computed() -> None:
    """Prints how many feature rows are computed for every row that arrives."""
    for n_features in (30, 32):
        Counting.n_rows, (x, y) = 0, rows(2000, n_features)
        learner = CNDPM(CNDPMSettings(), input_shape=(n_features,), feature_map=Counting(256))
        learner.learn_block(x, y, _BATCH)
        print(f"2,000 rows of {n_features} features: {Counting.n_rows / 2000:.2f} feature rows computed for each")


def busy_cores() -> None:
    """Prints what torch's own number of threads costs beside one busy process per core, over one thread."""
    spin = "while True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(os.cpu_count() or 1)]
    try:
        taken: dict[str | None, list[float]] = {"1": [], None: []}
        for _ in range(3):
            for n in taken:
                taken[n].append(_prequential_digits(n))
    finally:
        for process in busy:
            process.kill()
    one, free = (float(np.median(taken[n])) for n in ("1", None))
    print(f"prequential digits on busy cores, threads unset / one: {free / one:.2f} ({free:.1f} s / {one:.1f} s)")


def _prequential_digits(n_threads: str | None) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    environment |= {} if n_threads is None else {"OMP_NUM_THREADS": n_threads}
    code = "from benchmarks.live import digits_live; print(digits_live())"
    return float(subprocess.check_output([sys.executable, "-c", code], env=environment, text=True))


def digits_live() -> float:
    """Predicts and learns the embedded digits in batches of ten; returns seconds."""
    train = load_dataset("digits").train
    return live(train.x.float() / 255, train.y, predicting=True)[0]


if __name__ == "__main__":
    predict_then_learn("6,000 rows of 30 features", *rows(6000, 30), n_turns=5)
    estimator_cost("2,000 rows of 30 features", *rows(2000, 30), n_turns=5)
    features_computed()
    if os.environ.get("CNDPM_DATA"):
        estimator_cost("1,000 images of MNIST", *images(1000), n_turns=3)
        predict_then_learn("3,000 images of MNIST", *images(3000), n_turns=1)
    busy_cores()
