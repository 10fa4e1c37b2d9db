"""Subjects that the benchmark measures, and the stopwatch.

The method's cost does not depend on what the images show: random ones of MNIST's size are used, and no data are needed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Protocol

import torch
from tests.oracles.networks import Oracle
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.model.cndpm import CNDPM
from cndpm.model.memory import SampleBatch
from cndpm.model.settings import CNDPMSettings

__all__ = [
    "AWAKE",
    "Clock",
    "LearnerSubject",
    "OracleSubject",
    "Subject",
    "best_of",
    "images",
    "peak_resident_mib",
]

Clock = Callable[[], float]
"""A function that returns seconds, for example `time.perf_counter`."""

AWAKE: dict[str, float] = {"density_sleep_steps": 0, "predictor_sleep_steps": 0, "log_alpha": -1e9}
"""Settings of a subject whose wake steps are timed: experts cost nothing to found, and nothing is new."""

_BUSY = 1e300
"""Samples that the newest expert is said to have taken: it takes the next batch whole, as on a stream of tasks."""

_SHAPE = (1, 28, 28)


class Subject(Protocol):
    """Can be given an expert and a batch, which is timed.

    Example:
        >>> subject: Subject = LearnerSubject(CNDPMSettings.paper(memory_size=10, hidden=8, **AWAKE))
        >>> subject.found()
        >>> subject.learn(*images(10))
    """

    def found(self) -> None:
        """Sleeps on the memory for as long as its settings say."""

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Makes one wake step.

        Args:
            x: Images, (batch, 1, 28, 28).
            y: Class indices, (batch,).
        """


class LearnerSubject:
    """CN-DPM as a subject.

    Args:
        settings: Of CN-DPM.
        device: Where it runs.

    Example:
        >>> subject = LearnerSubject(CNDPMSettings.paper(memory_size=10, hidden=8, **AWAKE))
        >>> subject.found()
        >>> subject.learner.n_experts
        1
    """

    def __init__(self, settings: CNDPMSettings, device: str = "cpu") -> None:
        self.learner = CNDPM(settings, input_shape=_SHAPE, n_classes=10, device=device)

    def found(self) -> None:
        x, y = images(self.learner.settings.memory_size)
        self.learner.memory.add(SampleBatch(Samples(x.to(self.learner.device)), y))
        self.learner.consolidate()
        state = self.learner.bank.state_dict()
        state["counts"].fill_(1.0)[-1] = _BUSY
        self.learner.bank.load_state_dict(state)

    def learn(self, x: Tensor, y: Tensor) -> None:
        self.learner.learn(x, y)
        if self.learner.device.type == "cuda":
            torch.cuda.synchronize()


class OracleSubject:
    """The oracle as a subject.

    Args:
        settings: As for :class:`tests.oracles.networks.Oracle`.

    Example:
        >>> subject = OracleSubject(CNDPMSettings.paper(memory_size=10, hidden=8, **AWAKE))
        >>> subject.found()
        >>> len(subject.oracle.experts)
        1
    """

    def __init__(self, settings: CNDPMSettings) -> None:
        self.oracle = Oracle(settings, input_shape=_SHAPE, n_classes=10)

    def found(self) -> None:
        self.oracle.memory = list(zip(*images(self.oracle.settings.memory_size), strict=True))
        self.oracle.sleep()
        self.oracle.counts = [*(1.0 for _ in self.oracle.counts[:-1]), _BUSY]

    def learn(self, x: Tensor, y: Tensor) -> None:
        self.oracle.learn(x, y)


def images(n: int) -> tuple[Tensor, Tensor]:
    """Makes random images (n, 1, 28, 28) and labels (n,)."""
    generator = torch.Generator().manual_seed(0)
    return torch.rand(n, *_SHAPE, generator=generator), torch.randint(0, 10, (n,), generator=generator)


def best_of(n: int, call: Callable[[], object], clock: Clock) -> float:
    """Returns the seconds of the fastest of n calls: other work on the machine only adds.

    Args:
        n: Number of calls.
        call: Is timed.
        clock: Read before and after.
    """
    seconds = []
    for _ in range(n):
        started = clock()
        call()
        seconds.append(clock() - started)
    return min(seconds)


def peak_resident_mib() -> float:
    """Returns the most memory that this process has had so far, in MiB; NaN on Windows, which does not count it so."""
    if sys.platform == "win32":
        return math.nan
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
