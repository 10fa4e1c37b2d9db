"""What the paper's experiments cost on a GPU, with accuracy beside time.

python -m benchmarks.gpu --data DIR --out FILE split-mnist split-cifar10 agreement experts ceilings
python -m benchmarks.gpu --data DIR --preset fast --set n_train_latent_samples=1 --no-graphs split-cifar10
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from cndpm.experiments.presets import preset_settings
from cndpm.experts.chunks import Samples
from cndpm.experts.neural.neural_bank import NeuralBank
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.streams import load_scenario


def noting_sleeps(learner: CNDPM) -> list[float]:
    """Returns a list to which the learner adds the seconds of every sleep."""
    slept: list[float] = []
    sleep = learner.founding.sleep

    def noted(*given: Any) -> None:
        started = time.perf_counter()
        sleep(*given)
        if learner.device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        slept.append(time.perf_counter() - started)

    learner.founding.sleep = noted  # type: ignore[assignment, method-assign]
    return slept


def run(
    name: str,
    *,
    data: str,
    device: str,
    preset: str = "paper",
    seed: int = 0,
    graphs: bool = True,
    limit: int | None = None,
    **overrides: Any,
) -> dict[str, Any]:
    """One pass over the stream and the accuracy at its end; without `graphs` every step is taken as it comes."""
    stream = load_scenario(name).build(data_dir=data, seed=seed)
    settings = CNDPMSettings(**preset_settings(preset, "cndpm", name)).changed(**overrides)
    learner = CNDPM(settings, input_shape=stream.input_shape, n_classes=stream.n_classes, seed=seed, device=device)
    slept, bank = noting_sleeps(learner), learner.bank
    assert isinstance(bank, NeuralBank)
    bank._recorder.enabled &= graphs
    started = time.perf_counter()
    for i, (x, y) in enumerate(stream.batches()):
        if i == limit:
            break
        learner.learn(x, y)
    learner.settle()
    learned = time.perf_counter() - started
    right = total = 0
    for task in stream.tasks:
        right += int((learner.predict_log_proba(task.x).argmax(dim=1).cpu() == task.y).sum())
        total += len(task.y)
    return {
        "scenario": name,
        "preset": preset,
        "seed": seed,
        "accuracy": round(100 * right / total, 2),
        "n_experts": learner.n_experts,
        "n_parameters": learner.footprint().n_parameters,
        "seconds": round(time.perf_counter() - started, 2),
        "seconds_learning": round(learned, 2),
        "seconds_asleep": round(sum(slept), 2),
        "recorded": bank._recorder.enabled,
        **memory(device),
    }


def memory(device: str) -> dict[str, float]:
    if device != "cuda":
        return {}
    return {
        "peak_allocated_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
        "peak_reserved_gib": round(torch.cuda.max_memory_reserved() / 2**30, 2),
    }


def agreement(*, device: str, **_: Any) -> dict[str, Any]:
    """Relative difference of all parameters after the same work, steps recorded or not; the second is run twice."""
    found: dict[str, Any] = {}
    torch.backends.cudnn.deterministic = True  # otherwise two runs of the very same steps differ
    for name, shape, options in (
        ("mlp", (1, 28, 28), {}),
        ("resnet", (3, 32, 32), preset_settings("paper", "cndpm", "split-cifar10")),
    ):
        ends = [_work(shape, options, device, recorded=recorded) for recorded in (True, False, False)]
        found[name] = {
            "recorded_against_not": ((ends[0] - ends[1]).norm() / ends[1].norm()).item(),
            "not_recorded_twice": ((ends[2] - ends[1]).norm() / ends[1].norm()).item(),
        }
    torch.backends.cudnn.deterministic = False
    return found


def _work(shape: tuple[int, ...], options: dict[str, Any], device: str, *, recorded: bool) -> torch.Tensor:
    """All parameters after two short sleeps and 20 wake steps."""
    settings = CNDPMSettings.paper(**options | {"density_sleep_steps": 60, "predictor_sleep_steps": 40})
    bank = CNDPM(settings, input_shape=shape, n_classes=4, seed=3, device=device).bank
    assert isinstance(bank, NeuralBank)
    bank._recorder.enabled = recorded and device == "cuda"
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(60, *shape, generator=generator).to(device)
    y = torch.randint(0, 4, (60,), generator=generator).to(device)
    for _ in range(2):
        bank.found(Samples(x), y.cpu())
        while bank.train(100) < 1:
            pass
    for i in range(20):
        samples, labels = Samples(x[i : i + 10]), y[i : i + 10].cpu()
        bank.evidence(samples, labels)
        bank.learn(samples, labels, torch.full((10, 2), 0.5, dtype=torch.float64))
    assert bank._recorder.enabled is (recorded and device == "cuda")
    return torch.cat([p.detach().flatten() for e in bank.experts for part, _ in e.parts for p in part.parameters()])


def experts(*, device: str, counts: tuple[int, ...] = (5, 10, 20, 100), **_: Any) -> dict[str, Any]:
    """Milliseconds of a wake step by the number of experts, Split-MNIST's architecture, batch of 10."""
    learner = CNDPM(
        CNDPMSettings.paper(density_sleep_steps=0, predictor_sleep_steps=0, log_alpha=-1e6),
        input_shape=(1, 28, 28),
        n_classes=10,
        device=device,
    )
    x, y = torch.rand(10, 1, 28, 28), torch.randint(0, 10, (10,))
    found: dict[str, Any] = {}
    for n in counts:
        while learner.n_experts < n:
            learner.bank.found(Samples(x.to(device)), y)
            learner.bank.train(1)
        times = []
        for _turn in range(30):
            started = time.perf_counter()
            learner.learn(x, y)
            if device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - started)
        found[str(n)] = round(1e3 * sorted(times[10:])[10], 3)
    return found


def ceilings(**_: Any) -> dict[str, float]:
    """Rates that bound everything else: copying, float32 and TF32 products."""
    big = torch.rand(2**28, device="cuda")
    other = torch.empty_like(big)
    square = torch.rand(8192, 8192, device="cuda")

    def rate(work: Callable[[], Any], amount: float, n: int = 10) -> float:
        work()
        torch.cuda.synchronize()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(n):
            work()
        end.record()
        torch.cuda.synchronize()
        return float(amount * n / (begin.elapsed_time(end) * 1e-3))

    found = {"copy_tb_per_s": rate(lambda: other.copy_(big), 2 * big.numel() * 4) / 1e12}
    found["float32_tflop_per_s"] = rate(lambda: square @ square, 2 * 8192**3) / 1e12
    return {name: round(value, 2) for name, value in found.items()}


def profiled(wanted: bool, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The run, with the functions that took the host longest printed behind it where that is wanted."""
    if not wanted:
        return run(name, **options)
    profile = cProfile.Profile()
    found: dict[str, Any] = profile.runcall(run, name, **options)
    pstats.Stats(profile).sort_stats("tottime").print_stats(30)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="+")
    parser.add_argument("--data", default="data")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--preset", default="paper", help="whose settings a stream is learned with")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="a setting of the learner")
    parser.add_argument("--no-graphs", action="store_true", help="record no steps as CUDA graphs")
    parser.add_argument("--limit", type=int, help="batches to learn; all by default")
    parser.add_argument("--profile", action="store_true", help="show where the host spends its time")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    given = dict(item.split("=", 1) for item in arguments.set)
    options = {"data": arguments.data, "device": arguments.device, "preset": arguments.preset, "seed": arguments.seed}
    options |= {"graphs": not arguments.no_graphs, "limit": arguments.limit, **given}
    makers = {"agreement": agreement, "experts": experts, "ceilings": ceilings}
    found: dict[str, Any] = {"torch": torch.__version__}
    if arguments.device == "cuda":
        found["device"] = torch.cuda.get_device_name()
    for what in arguments.what:
        if arguments.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        maker = makers.get(what)
        try:
            found[what] = (
                maker(data=arguments.data, device=arguments.device)
                if maker
                else profiled(arguments.profile, what, options)
            )
        except Exception as error:
            import traceback

            found[what] = {"error": repr(error), "trace": traceback.format_exc()[-1500:]}
        print(what, round(time.perf_counter() - started, 1), json.dumps(found[what]), flush=True)
        if arguments.out:
            arguments.out.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
