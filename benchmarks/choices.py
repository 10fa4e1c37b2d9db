"""Rules and constants of the default and of the preset `fast`, chosen anew on held-out training samples.

    python -m benchmarks.choices --data DIR --device cuda --jobs 14 --out choices.jsonl --commit COMMIT

A tenth of every class's training samples is the test set; the published test sets are not touched. Every candidate is
one line of the record, with all that is varied in it: the threshold, the sizes and the pooling of patches, the views
and the shrinkage by :mod:`benchmarks.one_pass`, the preset by `cndpm run --validate`. `--seconds` ends the work early:
jobs that have not begun by then are left out, and a later call with the same record makes up for them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from figures.facts import add_options, append, facts

from benchmarks.one_pass import Pass, measure
from cndpm.experiments import configure
from cndpm.experiments.loop import run_config

DATASETS = ("mnist", "fashion", "cifar10", "cifar100", "svhn")

_VIEWS = ("", "|mirror", "|turn+8|turn-8", "|turn+8|turn-8|mirror|turn+8,mirror|turn-8,mirror")

_FAST_MNIST = (
    "density_sleep_steps=500",
    "density_sleep_steps=2000",
    "predictor_sleep_steps=250",
    "predictor_sleep_steps=1000",
    "density_lr=5e-4",
    "density_lr=2e-3",
    "predictor_lr=1e-3",
)
_FAST_CIFAR10 = ("n_train_latent_samples=1", "predictor_sleep_steps=1000", "predictor_lr=5e-3")


@dataclass(frozen=True)
class Preset:
    """One run of the one loop with a preset, perhaps with one setting changed.

    Attributes:
        scenario: Its name.
        preset: "fast" or "paper".
        seed: Of the stream, of what is held out and of the learner.
        change: ``SETTING=VALUE``; empty for the preset as it is.
        fraction: Of every class's training samples.
    """

    scenario: str
    preset: str
    seed: int
    change: str = ""
    fraction: float = 1.0


@dataclass(frozen=True)
class Job:
    """A candidate and the choice that it is a candidate for.

    Attributes:
        choice: "default", "threshold", "sizes", "pooling", "views", "shrinkage" or "fast".
        task: What is run.
    """

    choice: str
    task: Pass | Preset


def candidates(seeds: range) -> Iterator[Job]:
    """Yields all jobs; long ones first within a choice, the choices that need most first."""
    for seed in seeds:
        for change in (*_FAST_CIFAR10, ""):
            yield Job("fast", Preset("split-cifar10", "fast", seed, change))
        yield Job("fast", Preset("split-mnist", "paper", seed, ""))
        for change in ("", *_FAST_MNIST):
            yield Job("fast", Preset("split-mnist", "fast", seed, change))
    for seed in seeds:
        for dataset in ("cifar100", "cifar10", "svhn", "fashion", "mnist"):
            yield from _of_dataset(dataset, seed)


def _of_dataset(dataset: str, seed: int) -> Iterator[Job]:
    half = 1.0 if dataset == "svhn" else 0.5  # of SVHN there are 20,000 samples
    like: dict[str, Any] = {"dataset": dataset, "seed": seed}
    for fraction, n_patches in (1.0, 128), (0.25, 128), (0.1, 128), (0.1, 48), (0.05, 128), (0.05, 16):
        yield Job("shrinkage", Pass(**like, fraction=fraction, n_patches=n_patches, watched=True))
    like["fraction"] = half
    yield Job("default", Pass(**like))
    for threshold in 0.0, 0.125, 0.5, 1.0:
        yield Job("threshold", Pass(**like, threshold=threshold))
    for sizes in (6,), (3, 5, 7), (6, 8), (5, 8, 11):
        yield Job("sizes", Pass(**like, sizes=sizes))
    for moments, grid in ("mean", 2), ("deviation", 2), ("both", 1), ("both", 3):
        yield Job("pooling", Pass(**like, moments=moments, grid=grid))
    for views in _VIEWS:
        yield Job("views", Pass(**like, views=views))


def run_preset(task: Preset, *, data: str | None, device: str) -> dict[str, Any]:
    """Carries out one run of a preset on held-out samples and returns the figures of its summary.

    Args:
        task: The run.
        data: Where datasets lie.
        device: Where it is computed.
    """
    overrides = ["run.evaluations=0", *([f"learner.{task.change}"] if task.change else [])]
    options: dict[str, Any] = {"preset": task.preset, "seed": task.seed, "fraction": task.fraction}
    config = configure(task.scenario, device=device, overrides=overrides, validation=True, **options)
    with tempfile.TemporaryDirectory() as folder:
        summary = run_config(config, folder, data_dir=data)
    names = ("accuracy", "gating_accuracy", "n_experts", "seconds")
    return {name: summary.get(name) for name in names}


def carry_out(job: Job, data: str | None, device: str) -> dict[str, Any]:
    """Returns one line of the record.

    Args:
        job: The candidate.
        data: Where datasets lie.
        device: Where it is computed.
    """
    started = time.perf_counter()
    made = (run_preset if isinstance(job.task, Preset) else measure)(job.task, data=data, device=device)  # type: ignore[arg-type]
    return {**asked(job), **made, "job_seconds": round(time.perf_counter() - started, 2)}


def asked(job: Job) -> dict[str, Any]:
    """Returns what is varied in a job, as its line of the record has it."""
    settings = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(job.task).items()}
    return {"choice": job.choice, **settings}


def missing(jobs: list[Job], out: Path) -> list[Job]:
    """Returns the jobs that have no line in the record yet.

    Args:
        jobs: All of them.
        out: The record.
    """
    lines = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    return [job for job in jobs if not any(asked(job).items() <= line.items() for line in lines)] if lines else jobs


def reduced(jobs: list[Job], share: float) -> list[Job]:
    """Returns the jobs with less data and fewer patches, to try the command.

    Args:
        jobs: All of them.
        share: Of the data and of the patches.
    """
    smaller = []
    for job in jobs:
        values = asdict(job.task) | {"fraction": max(0.01, share * job.task.fraction)}
        if isinstance(job.task, Pass):
            values["n_patches"] = max(2, int(share * job.task.n_patches))
        smaller.append(Job(job.choice, type(job.task)(**values)))
    return smaller


def main() -> None:
    """Carries out what the record lacks, and appends it line by line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choices", description=__doc__)
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=(), help="choices, datasets or scenarios")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no job later than this")
    parser.add_argument("--share", type=float, default=1.0, help="of the data and patches, to try the command")
    add_options(parser, required=True)
    options = parser.parse_args()
    jobs = list(candidates(range(options.seeds)))
    if options.only:
        jobs = [job for job in jobs if set(options.only) & {str(value) for value in asked(job).values()}]
    jobs = missing(reduced(jobs, options.share) if options.share < 1 else jobs, options.out)
    made_by = facts(options.device, commit=options.commit)
    ends = time.monotonic() + options.seconds
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        options.jobs, mp_context=context, initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        futures = {pool.submit(_unless_late, job, options.data, options.device, ends): job for job in jobs}
        for n, future in enumerate(as_completed(futures), 1):
            _keep(future.exception() or future.result(), futures[future], made_by, options.out, f"{n}/{len(jobs)}")


def _unless_late(job: Job, data: str | None, device: str, ends: float) -> dict[str, Any] | None:
    return None if time.monotonic() > ends else carry_out(job, data, device)


def _keep(outcome: Any, job: Job, made_by: dict[str, Any], out: Path, progress: str) -> None:
    """Appends a line to the record; says of a job that failed, or that was not begun, which it was."""
    if isinstance(outcome, dict):
        append(out, [outcome | made_by])
        print(progress, f"{outcome['job_seconds']:6.1f} s", f"{outcome['accuracy']:6.2f} %", asked(job), flush=True)
    else:
        print(progress, "not begun:" if outcome is None else f"failed, {outcome!r}:", asked(job), flush=True)


if __name__ == "__main__":
    main()
