"""What learning costs, measured against the oracle in the same run.

The method's cost does not depend on what the images show, so random ones of MNIST's size are used and no data are
needed. A whole run of the oracle would take most of an hour: the costs of its steps are measured and multiplied by the
number of steps of the paper's schedule. Every time is the best of several, since other work on the machine only adds.

    report = run_benchmark()
    report["split_mnist_speedup_over_oracle"]
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from cndpm.learners.cndpm import CNDPM
from cndpm.learners.oracle import Oracle
from cndpm.learners.settings import CNDPMSettings

__all__ = ["Costs", "fast_settings", "measure", "run_benchmark", "wake_seconds"]

Clock = Callable[[], float]

_SHAPE = (1, 28, 28)
_N_EXPERTS = 5
_BATCHES_PER_TASK = 1200


class Subject(Protocol):
    """What is measured: it can be given an expert, and a batch."""

    def found(self) -> None:
        """Sleeps on the memory for as long as its settings say."""

    def learn(self, x: Tensor, y: Tensor) -> None:
        """One wake step."""


@dataclass(frozen=True)
class Costs:
    """Seconds of one step.

    Attributes:
        density_step: Of training a density while asleep.
        predictor_step: Of training a predictor while asleep.
        wake: Of a wake step with one expert, and with five.
    """

    density_step: float
    predictor_step: float
    wake: tuple[float, float]

    def split_mnist(self, settings: CNDPMSettings) -> float:
        """Seconds of a whole pass over Split-MNIST, extrapolated: five sleeps and 1,200 batches a task."""
        asleep = settings.density_sleep_steps * self.density_step + settings.predictor_sleep_steps * self.predictor_step
        return _N_EXPERTS * (asleep + _BATCHES_PER_TASK * sum(self.wake) / 2)


def fast_settings() -> CNDPMSettings:
    """A cheap schedule: a learned variance, one latent sample in training, few steps of many samples.

    It costs accuracy as it stands: 80.2 % on Split-MNIST (seed 0, five experts) where the paper's schedule has 93 %.
    """
    return CNDPMSettings.model_validate(
        {
            "log_alpha": 150.0,
            "likelihood": "pixel-gaussian",
            "n_train_latent_samples": 1,
            "density_sleep_steps": 1000,
            "predictor_sleep_steps": 500,
            "sleep_batch_size": 250,
        }
    )


class _Learner:
    """CN-DPM as a subject."""

    def __init__(self, settings: CNDPMSettings, device: str = "cpu") -> None:
        self.learner = CNDPM(settings, input_shape=_SHAPE, n_classes=10, device=device)

    def found(self) -> None:
        x, y = _samples(self.learner.settings.memory_size)
        self.learner.memory.add(x.to(self.learner.device), y.to(self.learner.device))
        self.learner.sleep()

    def learn(self, x: Tensor, y: Tensor) -> None:
        self.learner.learn(x, y)
        if self.learner.device.type == "cuda":
            torch.cuda.synchronize()


class _Oracle:
    """The oracle as a subject."""

    def __init__(self, settings: CNDPMSettings) -> None:
        self.oracle = Oracle(settings, input_shape=_SHAPE, n_classes=10)

    def found(self) -> None:
        self.oracle.memory = list(zip(*_samples(self.oracle.settings.memory_size), strict=True))
        self.oracle.sleep()

    def learn(self, x: Tensor, y: Tensor) -> None:
        self.oracle.learn(x, y)


def measure(
    make: Callable[[CNDPMSettings], Subject], settings: CNDPMSettings, *, n_steps: int, clock: Clock = time.perf_counter
) -> Costs:
    """The costs of a subject's steps with given settings; `n_steps` are timed of each."""
    alone = {"density_sleep_steps": 0, "predictor_sleep_steps": 0}
    density = make(settings.model_copy(update=alone | {"density_sleep_steps": n_steps}))
    predictor = make(settings.model_copy(update=alone | {"predictor_sleep_steps": n_steps}))
    # Nothing is new, so that every batch is learned.
    awake = make(settings.model_copy(update=alone | {"log_alpha": -1e9}))
    return Costs(
        density_step=_best(density.found, 2, clock) / n_steps,
        predictor_step=_best(predictor.found, 2, clock) / n_steps,
        wake=tuple(wake_seconds(awake, (1, _N_EXPERTS), n_steps=max(3, n_steps // 10), clock=clock)),  # type: ignore[arg-type]
    )


def wake_seconds(
    subject: Subject, n_experts: Sequence[int], *, n_steps: int = 5, clock: Clock = time.perf_counter
) -> list[float]:
    """Seconds of a wake step with each of these numbers of experts, ascending."""
    x, y = _samples(10)
    seconds, n = [], 0
    for wanted in n_experts:
        while n < wanted:
            subject.found()
            n += 1
        seconds.append(_best(lambda: subject.learn(x, y), n_steps, clock))
    return seconds


def run_benchmark(
    *,
    n_steps: int = 30,
    many: Sequence[int] = (5, 10, 20, 100),
    device: str = "cpu",
    clock: Clock = time.perf_counter,
) -> dict[str, Any]:
    """Everything as one flat dictionary of numbers, ready for JSON.

    Args:
        n_steps: Steps timed of each kind.
        many: Numbers of experts at which a wake step is timed; 10 and 100 must be among them.
        device: Where CN-DPM runs; the oracle runs on a CPU.
        clock: What is read before and after; `time.process_time` on a machine that is busy with other work.
    """
    paper, fast = CNDPMSettings.model_validate({}), fast_settings()
    oracle = measure(_Oracle, paper, n_steps=max(3, n_steps // 10), clock=clock)
    ours = measure(lambda settings: _Learner(settings, device), paper, n_steps=n_steps, clock=clock)
    quick = measure(lambda settings: _Learner(settings, device), fast, n_steps=n_steps, clock=clock)
    crowd = paper.model_copy(
        update={"density_sleep_steps": 0, "predictor_sleep_steps": 0, "log_alpha": -1e9, "memory_size": 10}
    )
    by_experts = dict(zip(many, wake_seconds(_Learner(crowd, device), many, clock=clock), strict=True))
    whole = oracle.split_mnist(paper)
    return {
        "device": device,
        "threads": torch.get_num_threads(),
        "extrapolated": True,
        "oracle_split_mnist_seconds": whole,
        "split_mnist_seconds": ours.split_mnist(paper),
        "split_mnist_speedup_over_oracle": whole / ours.split_mnist(paper),
        "fast_split_mnist_seconds": quick.split_mnist(fast),
        "fast_split_mnist_speedup_over_oracle": whole / quick.split_mnist(fast),
        "density_step_ms": 1e3 * ours.density_step,
        "density_step_speedup_over_oracle": oracle.density_step / ours.density_step,
        "predictor_step_ms": 1e3 * ours.predictor_step,
        "wake_step_ms_5_experts": 1e3 * ours.wake[1],
        "wake_step_speedup_over_oracle": oracle.wake[1] / ours.wake[1],
        **{f"wake_step_ms_{n}_untrained_experts": 1e3 * seconds for n, seconds in by_experts.items()},
        "wake_step_cost_ratio_100_to_10_experts": by_experts[100] / by_experts[10],
        "peak_resident_mib": _peak_resident_mib(),
    }


def _samples(n: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(n, *_SHAPE, generator=generator), torch.randint(0, 10, (n,), generator=generator)


def _best(call: Callable[[], object], n: int, clock: Clock) -> float:
    seconds = []
    for _ in range(n):
        started = clock()
        call()
        seconds.append(clock() - started)
    return min(seconds)


def _peak_resident_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
