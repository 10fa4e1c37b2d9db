"""What the benchmark measures, and the stopwatch.

The method's cost does not depend on what the images show: random ones of MNIST's size are used, and no data are needed.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from cndpm.learners.cndpm import CNDPM
from cndpm.learners.oracle import Oracle
from cndpm.learners.settings import CNDPMSettings

__all__ = ["Clock", "LearnerSubject", "OracleSubject", "Subject", "best_of", "images", "one_task", "peak_resident_mib"]

Clock = Callable[[], float]

_SHAPE = (1, 28, 28)


class Subject(Protocol):
    """What is measured: it can be given an expert, and a batch."""

    def found(self) -> None:
        """Sleeps on the memory for as long as its settings say."""

    def learn(self, x: Tensor, y: Tensor) -> None:
        """One wake step."""


class LearnerSubject:
    """CN-DPM as a subject."""

    def __init__(self, settings: CNDPMSettings, device: str = "cpu") -> None:
        self.learner = CNDPM(settings, input_shape=_SHAPE, n_classes=10, device=device)

    def found(self) -> None:
        x, y = images(self.learner.settings.memory_size)
        self.learner.memory.add(x.to(self.learner.device), y.to(self.learner.device))
        self.learner.sleep()

    def learn(self, x: Tensor, y: Tensor) -> None:
        self.learner.learn(x, y)
        if self.learner.device.type == "cuda":
            torch.cuda.synchronize()


class OracleSubject:
    """The oracle as a subject."""

    def __init__(self, settings: CNDPMSettings) -> None:
        self.oracle = Oracle(settings, input_shape=_SHAPE, n_classes=10)

    def found(self) -> None:
        self.oracle.memory = list(zip(*images(self.oracle.settings.memory_size), strict=True))
        self.oracle.sleep()

    def learn(self, x: Tensor, y: Tensor) -> None:
        self.oracle.learn(x, y)


def images(n: int) -> tuple[Tensor, Tensor]:
    """Random images (n, 1, 28, 28) and labels (n,)."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(n, *_SHAPE, generator=generator), torch.randint(0, 10, (n,), generator=generator)


def one_task(n: int) -> tuple[Tensor, Tensor]:
    """A batch that one expert takes whole, as it does on a stream of tasks: the same image n times."""
    x, y = images(1)
    return x.repeat(n, 1, 1, 1), y.repeat(n)


def best_of(n: int, call: Callable[[], object], clock: Clock) -> float:
    """Seconds of the fastest of n calls: other work on the machine only adds."""
    seconds = []
    for _ in range(n):
        started = clock()
        call()
        seconds.append(clock() - started)
    return min(seconds)


def peak_resident_mib() -> float:
    """The most memory that this process has had so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
