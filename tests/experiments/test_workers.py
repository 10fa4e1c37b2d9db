"""Runs in processes of their own: the same bits, and no failure that spreads."""

import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cndpm.baselines.slda import SLDA
from cndpm.cli import exit_code
from cndpm.engines import LostWorkerError
from cndpm.engines.engine import Attempt
from cndpm.experiments import Monitor, RecordError, RunsFailedError, configure, read_record, workers
from cndpm.experiments.record import CHECKPOINT
from cndpm.experiments.record_files import load_portrait
from cndpm.experiments.workers import Job, run_jobs
from cndpm.state import load_state

SMALL = (
    "learner.experts=neural",
    "learner.memory_size=40",
    "learner.density_sleep_steps=20",
    "learner.predictor_sleep_steps=20",
    "run.evaluations=2",
    "run.max_batches=30",
)


def job(folder, *, learner="cndpm", seed=0):
    overrides = SMALL if learner == "cndpm" else SMALL[4:]
    return Job(configure("split-digits", learner=learner, seed=seed, device="cpu", overrides=overrides), folder)


class Mortal(SLDA):
    """Ends a worker that learns with it, without a word."""

    def learn_block(self, *block, **options):
        if multiprocessing.parent_process() is not None:
            os.kill(os.getpid(), signal.SIGKILL)
        super().learn_block(*block, **options)


def without_times(row):
    return {key: value for key, value in row.items() if key not in ("seconds", "overhead_seconds")}


class Told(Monitor):
    """Remembers what it was told."""

    def __init__(self):
        self.heard = []

    def started(self, title, *, step, n_batches):
        self.heard.append(title)

    def evaluated(self, row):
        self.heard.append(row["step"])

    def close(self):
        self.heard.append("closed")


def flat(state):
    """The leaves of a state in order, tensors as bytes."""
    if isinstance(state, dict):
        return [leaf for key in sorted(state) for leaf in (key, *flat(state[key]))]
    if isinstance(state, list | tuple):
        return [leaf for one in state for leaf in flat(one)]
    return [state.numpy().tobytes() if isinstance(state, torch.Tensor) else state]


def traces(folder):
    """All that a run left but its times."""
    portrait = vars(load_portrait(folder))
    return (
        [without_times(row) for row in read_record(folder).rows],
        flat(load_state(folder / CHECKPOINT, kind="checkpoint")["learner"]),
        {name: array.tobytes() for name, array in portrait.items()},
    )


def test_runs_at_the_same_time_leave_the_same_bits_as_one_after_another_and_one_that_fails_its_trace(tmp_path):
    jobs = [job(tmp_path / "alone" / f"{seed}", seed=seed) for seed in range(2)]
    moved = [replace(one, folder=tmp_path / "together" / one.folder.name) for one in jobs]
    monitors = {}
    broken = job(tmp_path / "broken", learner="finetune")
    broken = replace(broken, config=broken.config.model_copy(update={"device": "nonsense"}))
    alone = run_jobs(jobs)
    with pytest.raises(RunsFailedError, match=r"1 of 3 runs failed") as failed:
        run_jobs([broken, *moved], 2, monitor_of=lambda path: monitors.setdefault(path.name, Told()))
    assert "loop.py" in failed.value.failures[broken.folder].__notes__[0]
    together = run_jobs(moved, 2, resume=True)  # they are complete
    assert [without_times(summary) for summary in alone] == [without_times(summary) for summary in together]
    for seed, (a, b) in enumerate(zip(jobs, moved, strict=True)):
        assert traces(a.folder) == traces(b.folder)
        steps = read_record(a.folder).column("step")
        assert monitors[str(seed)].heard == [f"split-digits · cndpm · seed {seed}", *steps, "closed"]


def test_failures_with_the_same_reason_are_told_once_and_end_the_command_with_1():
    told = RunsFailedError({Path("a"): RecordError("disk full"), Path("b"): RecordError("disk full")}, 3)
    assert "  a, b: disk full" in str(told)
    assert exit_code(told) == 1
    assert exit_code(RunsFailedError({Path("a"): RecordError("disk full"), Path("b"): TypeError()}, 3)) is None


def test_a_process_that_is_killed_is_a_failure_that_resuming_mends(tmp_path):
    one = job(tmp_path / "a", learner=f"{__name__}:Mortal")
    with pytest.raises(RunsFailedError, match="exit code -9") as failed:
        run_jobs([one], 2)
    assert isinstance(failed.value.failures[one.folder], LostWorkerError)
    assert read_record(one.folder).status == "interrupted"
    assert run_jobs([one], resume=True)[0]["n_batches"] == 30


def test_of_two_jobs_in_one_folder_only_one_is_carried_out(tmp_path):
    one = job(tmp_path / "a", learner="finetune")
    first = run_jobs([one])
    asked = []
    assert run_jobs([one, one], 4, resume=True, monitor_of=lambda path: asked.append(path) or Monitor()) == first * 2
    assert asked == [one.folder]


@pytest.mark.parametrize(("number", "asked", "resumed"), [(0, False, False), (1, False, True), (0, True, True)])
def test_a_run_whose_worker_was_lost_goes_on_from_its_checkpoint(monkeypatch, number, asked, resumed):
    told = []
    monkeypatch.setattr(workers, "run_config", lambda *_, **options: told.append(options["resume"]))
    job = Job(configure("split-digits", learner="finetune", device="cpu"), Path("there"))
    workers._run_one((job, {"data_dir": None, "resume": asked, "command": None}), Attempt(number))
    assert told == [resumed]
