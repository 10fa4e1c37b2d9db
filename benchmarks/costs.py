"""Measures the costs of learning against the oracle in the same run.

    python -m benchmarks.costs [--cpu-time] [--device cuda]      # a minute or two; one JSON object

A whole run of the oracle would take a quarter of an hour or more: the costs of its steps are measured and multiplied by
the number of steps of the paper's schedule.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.growth_of_steps import growth_by_batch, growth_by_experts, wake_seconds
from benchmarks.subjects import AWAKE, Clock, LearnerSubject, OracleSubject, Subject, best_of, peak_resident_mib
from cndpm.experiments.presets import preset_settings
from cndpm.model.settings import CNDPMSettings, NeuralExperts

__all__ = ["Costs", "measure", "run_benchmark"]

_N_EXPERTS = 5
_BATCHES_PER_TASK = 1200


@dataclass(frozen=True)
class Costs:
    """Seconds of one step.

    Attributes:
        density_step: Of training a density while asleep.
        predictor_step: Of training a predictor while asleep.
        wake: Of a wake step with one expert, and with five.

    Example:
        >>> settings = CNDPMSettings.model_validate(preset_settings("paper", "cndpm", "split-mnist"))
        >>> Costs(density_step=0.01, predictor_step=0.0, wake=(0.0, 0.0)).split_mnist(settings)
        400.0
    """

    density_step: float
    predictor_step: float
    wake: tuple[float, float]

    def split_mnist(self, settings: CNDPMSettings) -> float:
        """Seconds of a whole pass over Split-MNIST, extrapolated: five sleeps and 1,200 batches a task."""
        experts = settings.experts
        if not isinstance(experts, NeuralExperts):
            raise ValueError(f"only networks sleep for a number of steps; got experts={experts.kind!r}")
        steps = experts.training
        asleep = steps.density_sleep_steps * self.density_step + steps.predictor_sleep_steps * self.predictor_step
        return _N_EXPERTS * (asleep + _BATCHES_PER_TASK * sum(self.wake) / 2)


def measure(
    make: Callable[[CNDPMSettings], Subject], settings: CNDPMSettings, *, n_steps: int, clock: Clock = time.perf_counter
) -> Costs:
    """Measures the costs of a subject's steps.

    Args:
        make: Makes a subject of settings.
        settings: Of its steps.
        n_steps: Steps timed of each kind.
        clock: Read before and after.
    """
    alone = {"density_sleep_steps": 0, "predictor_sleep_steps": 0}
    density = make(settings.changed(**alone | {"density_sleep_steps": n_steps}))
    predictor = make(settings.changed(**alone | {"predictor_sleep_steps": n_steps}))
    awake = make(settings.changed(**AWAKE))
    return Costs(
        density_step=best_of(2, density.found, clock) / n_steps,
        predictor_step=best_of(2, predictor.found, clock) / n_steps,
        wake=tuple(wake_seconds(awake, (1, _N_EXPERTS), n_steps=max(3, n_steps // 3), clock=clock)),  # type: ignore[arg-type]
    )


def run_benchmark(
    *,
    n_steps: int = 30,
    crowds: Sequence[int] = (5, 10, 20, 100, 500),
    separate_crowds: Sequence[int] = (5, 20, 100, 500, 1000),
    batch_sizes: Sequence[int] = (10, 50, 250),
    device: str = "cpu",
    clock: Clock = time.perf_counter,
) -> dict[str, Any]:
    """Measures everything; returns one flat dictionary of numbers, ready for JSON.

    Args:
        n_steps: Steps timed of each kind.
        crowds: Numbers of experts with lateral connections at which a wake step is timed; 10 and 100 among them.
        separate_crowds: The same of experts without.
        batch_sizes: Numbers of samples for which it is timed.
        device: Where CN-DPM runs; the oracle runs on a CPU.
        clock: What is read before and after; `time.process_time` on a machine that is busy with other work.
    """
    paper = CNDPMSettings.model_validate(preset_settings("paper", "cndpm", "split-mnist"))
    where: dict[str, Any] = {"device": device, "clock": clock}
    return {
        "device": device,
        "threads": torch.get_num_threads(),
        "extrapolated": True,
        **_whole_runs(paper, n_steps, device, clock),
        "peak_resident_mib": peak_resident_mib(),
        **growth_by_batch(paper, batch_sizes, **where),
        **(crowd := growth_by_experts(paper, crowds, sharing=True, **where)),
        **growth_by_experts(paper, separate_crowds, sharing=False, **where),
        "wake_step_cost_ratio_100_to_10_experts": (
            crowd["wake_step_ms_100_untrained_experts"] / crowd["wake_step_ms_10_untrained_experts"]
        ),
    }


def _whole_runs(paper: CNDPMSettings, n_steps: int, device: str, clock: Clock) -> dict[str, float]:
    """Measures Split-MNIST by the oracle, by CN-DPM with the same settings, and by CN-DPM with the preset "fast"."""
    fast = CNDPMSettings.model_validate(preset_settings("fast", "cndpm", "split-mnist"))
    oracle = measure(OracleSubject, paper, n_steps=max(3, n_steps // 10), clock=clock)
    ours = measure(lambda settings: LearnerSubject(settings, device), paper, n_steps=n_steps, clock=clock)
    quick = measure(lambda settings: LearnerSubject(settings, device), fast, n_steps=n_steps, clock=clock)
    whole = oracle.split_mnist(paper)
    return {
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
        "fast_density_step_ms": 1e3 * quick.density_step,
        "fast_predictor_step_ms": 1e3 * quick.predictor_step,
        "fast_wake_step_ms_5_experts": 1e3 * quick.wake[1],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cpu-time", action="store_true", help="the CPU time of this process, not the wall clock")
    given = parser.parse_args()
    read = time.process_time if given.cpu_time else time.perf_counter
    print(json.dumps(run_benchmark(device=given.device, clock=read)))
