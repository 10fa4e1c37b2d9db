"""Measures how the cost of a wake step grows with the number of experts and with the size of a batch.

The experts are untrained, which costs the same; so hundreds are made in seconds. With lateral connections the paper's
own parameters grow with the square of their number; apart (`sharing=False`) they grow in proportion.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.subjects import AWAKE, Clock, LearnerSubject, Subject, best_of, images, peak_resident_mib
from cndpm.model.settings import CNDPMSettings

__all__ = ["growth_by_batch", "growth_by_experts", "repeated", "wake_seconds"]

_CROWD = AWAKE | {"memory_size": 10}


def wake_seconds(
    subject: Subject, n_experts: Sequence[int], *, n_steps: int = 10, clock: Clock = time.perf_counter
) -> list[float]:
    """Times a wake step of ten samples with each of these numbers of experts, ascending; it starts with none.

    Args:
        subject: Has no expert yet.
        n_experts: Ascending numbers.
        n_steps: Steps timed of each.
        clock: Read before and after.
    """
    seconds, n = [], 0
    for wanted in n_experts:
        while n < wanted:
            subject.found()
            n += 1
        seconds.append(_wake_second(subject, 10, n_steps, clock))
    return seconds


def growth_by_experts(
    settings: CNDPMSettings,
    n_experts: Sequence[int],
    *,
    sharing: bool,
    device: str = "cpu",
    clock: Clock = time.perf_counter,
) -> dict[str, float]:
    """Measures the milliseconds of a wake step of ten samples by the number of experts, and the memory of the most.

    Args:
        settings: Of the networks.
        n_experts: Ascending numbers.
        sharing: Whether experts have lateral connections.
        device: Where CN-DPM runs.
        clock: Read before and after.
    """
    subject = LearnerSubject(settings.changed(**_CROWD, sharing=sharing), device)
    kind = "untrained" if sharing else "separate"
    if sharing:
        seconds = wake_seconds(subject, n_experts, clock=clock)
    else:
        seconds = [_wake_second(repeated(subject, n), 10, 10, clock) for n in n_experts]
    report = {f"wake_step_ms_{n}_{kind}_experts": 1e3 * s for n, s in zip(n_experts, seconds, strict=True)}
    return report | {f"peak_resident_mib_{n_experts[-1]}_{kind}_experts": peak_resident_mib()}


def repeated(subject: LearnerSubject, n_experts: int) -> LearnerSubject:
    """Gives a subject as many experts as are wanted, all like its first: their cost is what is measured.

    A thousand are there in seconds. Founding them one after another would take the square of their number.

    Args:
        subject: Without lateral connections, which differ from expert to expert.
        n_experts: At least one.
    """
    if not subject.learner.n_experts:
        subject.found()
    bank = subject.learner.bank
    state = bank.state_dict()
    counts = state["counts"].new_ones(n_experts)
    counts[-1] = state["counts"].max()  # the last one takes the next batch
    bank.load_state_dict({**state, "columns": state["columns"][:1] * n_experts, "counts": counts, "born": n_experts})
    return subject


def growth_by_batch(
    settings: CNDPMSettings,
    batch_sizes: Sequence[int],
    *,
    n_experts: int = 5,
    device: str = "cpu",
    clock: Clock = time.perf_counter,
) -> dict[str, float]:
    """Measures the milliseconds of a wake step by the number of samples in it.

    Args:
        settings: Of the networks.
        batch_sizes: Numbers of samples.
        n_experts: Number of experts.
        device: Where CN-DPM runs.
        clock: Read before and after.
    """
    subject = LearnerSubject(settings.changed(**_CROWD), device)
    for _ in range(n_experts):
        subject.found()
    return {f"wake_step_ms_batch_of_{n}": 1e3 * _wake_second(subject, n, 10, clock) for n in batch_sizes}


def _wake_second(subject: Subject, batch_size: int, n_steps: int, clock: Clock) -> float:
    x, y = images(batch_size)
    return best_of(n_steps, lambda: subject.learn(x, y), clock)
