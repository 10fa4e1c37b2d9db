"""What one step of the paper's networks costs on a GPU, asleep and awake, and which kernels take its time.

python -m benchmarks.kernels split-cifar10 --experts 5
python -m benchmarks.kernels split-cifar10 --set n_train_latent_samples=4 --top 0
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from cndpm.experiments.presets import preset_settings
from cndpm.experts.chunks import Samples
from cndpm.experts.neural.neural_bank import NeuralBank
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings

_SHAPES = {"split-mnist": (1, 28, 28), "split-cifar10": (3, 32, 32), "split-cifar100": (3, 32, 32)}


def steps(name: str, *, n_experts: int, device: str, **overrides: Any) -> Iterator[tuple[str, Callable[[int], object]]]:
    """Every kind of step as a function of how many to take; random images, since time does not depend on them."""
    settings = CNDPMSettings(**preset_settings("paper", "cndpm", name)).changed(**overrides)
    short = settings.changed(density_sleep_steps=1, predictor_sleep_steps=1, sleep_until="steps")
    bank = CNDPM(short, input_shape=_SHAPES[name], n_classes=10, device=device).bank
    assert isinstance(bank, NeuralBank)
    x = torch.rand(settings.memory_size, *_SHAPES[name], device=device)
    y = torch.randint(0, 10, (len(x),))
    for k in range(n_experts):
        bank.found(Samples(x), y)
        if k < n_experts - 1:
            while bank.train(10) < 1:
                pass
    assert bank._in_training is not None
    for kind, lesson in zip(("predictor asleep", "density asleep"), bank._in_training.lessons, strict=True):
        ending = lesson.schedule
        lesson.schedule = replace(ending, max_steps=10**9)
        yield kind, lesson.advance
        lesson.schedule = ending
    while bank.train(10) < 1:
        pass
    batch = (Samples(x[:10].clone()), y[:10].clone())
    weights = torch.zeros(10, n_experts, dtype=torch.float64)
    weights[:, -1] = 1.0
    yield "evaluation awake", lambda n: [bank.evidence(*batch) for _ in range(n)]

    def update(n: int) -> None:
        for _ in range(n):
            bank.evidence(*batch)
            bank.learn(*batch, weights)

    yield "evaluation and update awake", update


def milliseconds(take: Callable[[int], object], n: int = 100) -> float:
    """Of one step, after enough of them for it to be recorded."""
    take(40)
    _wait()
    started = time.perf_counter()
    take(n)
    _wait()
    return 1e3 * (time.perf_counter() - started) / n


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def kernels(take: Callable[[int], object], top: int, n: int = 10) -> list[tuple[float, float, str]]:
    """Microseconds and calls a step of the kernels that take longest."""
    activity = ProfilerActivity.CUDA if torch.cuda.is_available() else ProfilerActivity.CPU
    with profile(activities=[activity]) as seen:
        take(n)
        _wait()
    rows = [(event.self_device_time_total / n, event.count / n, event.key[:110]) for event in seen.key_averages()]
    total = (sum(row[0] for row in rows), sum(row[1] for row in rows), "all")
    return [total, *sorted(rows, reverse=True)[:top]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", choices=sorted(_SHAPES))
    parser.add_argument("--experts", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="a setting of the learner")
    parser.add_argument("--top", type=int, default=14, help="kernels to list")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    given: dict[str, Any] = dict(item.split("=", 1) for item in arguments.set)
    found = {}
    for kind, take in steps(arguments.scenario, n_experts=arguments.experts, device=arguments.device, **given):
        found[kind] = round(milliseconds(take), 4)
        print(f"{kind}: {found[kind]} ms", flush=True)
        for microseconds, calls, name in kernels(take, arguments.top) if arguments.top else []:
            print(f"  {microseconds:8.1f} us {calls:6.1f} x  {name}", flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
