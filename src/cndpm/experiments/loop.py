"""The one loop: runs a learner on a stream, evaluates and keeps checkpoints on a schedule, and writes everything down.

    for x, y in stream:
        learner.learn(x, y)        # and now and then: log, evaluate, checkpoint
    learner.finish()
    summary = evaluate(...)

A run that was stopped anywhere goes on from its last checkpoint and ends with the same summary.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import torch

from cndpm.experiments.config import RunConfig
from cndpm.experiments.environment import describe_environment
from cndpm.experiments.evaluation import TestSet, dissect, evaluate
from cndpm.experiments.metrics import foundings, learned_tasks, mean
from cndpm.experiments.monitor import Monitor
from cndpm.experiments.portrait import describe_mixture, describe_stream, save_portrait, take_portrait
from cndpm.experiments.recorder import Recorder
from cndpm.experiments.schedule import Schedule
from cndpm.experiments.summary import summarise_run
from cndpm.learner import Learner, MixtureLearner, TaskBasedLearner
from cndpm.model.expert_mixture import ExpertMixture
from cndpm.streams import Stream

__all__ = ["run", "teach", "teach_tasks"]


def run(
    config: RunConfig,
    folder: str | Path,
    *,
    data_dir: str | Path | None = None,
    resume: bool = False,
    monitor: Monitor | None = None,
) -> dict[str, Any]:
    """Runs one configuration and leaves a record.

    Args:
        config: What to run.
        folder: Where the record goes; see :mod:`cndpm.experiments.record`.
        data_dir: Where datasets lie; None: where the streams room looks by itself.
        resume: Goes on with the record in `folder`, if there is one; a complete one is returned as it is.
        monitor: Told of everything that happens.

    Returns:
        The summary, as written to ``summary.json``.
    """
    monitor = monitor or Monitor()
    environment = describe_environment(config.device)
    with (
        closing(monitor),
        Recorder(folder, config=config.to_json(), environment=environment, resume=resume) as record,
    ):
        if record.summary is not None:
            return record.summary
        stream = config.scenario.build(data_dir=data_dir, seed=config.seed, device=config.device)
        return _Run(config, stream, record, monitor).complete()


def teach(learner: Learner, stream: Stream, start: int) -> Iterator[int]:
    """Has the learner learn the stream from batch `start` on; yields the number of batches learned after each."""
    for step, batch in enumerate(stream.batches(start), start + 1):
        learner.learn(batch.x, batch.y)
        yield step


def teach_tasks(learner: TaskBasedLearner, stream: Stream, start: int) -> Iterator[int]:
    """As :func:`teach`, for learners that are told where tasks begin and end.

    A task is what a stage draws from: a stage that comes back is the same task, a mixture of two is its own.
    """
    number = {tasks: i for i, tasks in enumerate(dict.fromkeys(map(tuple, stream.stage_tasks)))}
    for step, batch in enumerate(stream.batches(start), start + 1):
        stage = stream.stage_of(step - 1)
        if step == 1 or stream.stage_of(step - 2) != stage:
            learner.begin_task(number[tuple(stream.stage_tasks[stage])])
        learner.learn(batch.x, batch.y)
        if step == stream.n_batches or stream.stage_of(step) != stage:
            learner.end_task()
        yield step


class _Clock:
    """Seconds spent learning; what is spent inside :meth:`pause` does not count."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds = 0.0
        self.paused_seconds = 0.0
        self._since = time.perf_counter()

    @contextmanager
    def pause(self) -> Iterator[None]:
        learned = self._lap()
        self.seconds += learned
        try:
            yield
        finally:
            self.paused_seconds += self._lap()

    def _lap(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        now = time.perf_counter()
        lap, self._since = now - self._since, now
        return lap


class _Run:
    """One run in progress: the learner, how far it is, and the record it leaves."""

    def __init__(self, config: RunConfig, stream: Stream, record: Recorder, monitor: Monitor) -> None:
        self.config = config
        self.stream = stream
        self.record = record
        self.monitor = monitor
        self.learner = config.build_learner(stream)
        self.learner.on_progress = monitor.phase
        self.test = TestSet(stream.tasks, stream.labelled, config.run.evaluation_batch_size)
        samples = config.run.evaluation_samples
        self.interim_test = self.test if samples is None else self.test.subsample(samples, seed=config.seed)
        for task in (*self.test.tasks, *self.interim_test.tasks):
            self.learner.prepare(task.x)
        self.schedule = Schedule.of(
            stream,
            n_batches=config.n_batches(stream),
            evaluations=config.run.evaluations,
            log_points=config.run.log_points,
        )
        self.step = 0
        self.n_experts = 0
        self.finished = False
        self.clock = _Clock(torch.device(config.device))
        self.saved_at = time.monotonic()

    def complete(self) -> dict[str, Any]:
        """Runs from wherever the record stands to the end."""
        with self.clock.pause():
            self.restore()
        if not self.finished:
            self.learn()
            self.learner.finish()
            self.finished = True
            with self.clock.pause():
                self.save()
        with self.clock.pause():
            self.evaluate(self.test)
            self.portray()
            summary = summarise_run(self.record.evaluations, self.stream.stage_tasks, self.seconds)
            if self.config.is_expert_mixture:
                summary["foundings"] = foundings(self.record.progress, self.stream.stage_starts)
            self.record.conclude(summary)
        self.monitor.finished(summary)
        return summary

    def learn(self) -> None:
        """The loop."""
        for step in self.taught():
            self.step = step
            self.monitor.learned(step)
            if self.has_grown() or step in self.schedule.log_points:
                self.log_progress()
            if step in self.schedule.evaluations:
                with self.clock.pause():
                    self.evaluate(self.interim_test)
            if time.monotonic() - self.saved_at > self.config.run.checkpoint_seconds:
                with self.clock.pause():
                    self.save()
            if step == self.schedule.n_batches:
                break

    def has_grown(self) -> bool:
        """Whether a mixture has another number of experts than when this was last asked."""
        if not self.config.is_expert_mixture:
            return False
        before, self.n_experts = self.n_experts, cast(ExpertMixture, self.learner).n_experts
        return before != self.n_experts

    def taught(self) -> Iterator[int]:
        """Steps of the loop, by the way that the learner's type asks for."""
        if self.step == self.schedule.n_batches:
            return iter(())
        if self.config.is_task_based:
            return teach_tasks(cast(TaskBasedLearner, self.learner), self.stream, self.step)
        return teach(self.learner, self.stream, self.step)

    def restore(self) -> None:
        """Takes up the last checkpoint; where there is none, writes one, which shows that the disk takes it."""
        checkpoint = self.record.load_checkpoint()
        if checkpoint is None:
            self.record.append("start", 0, **describe_stream(self.stream, self.schedule.n_batches))
            self.save()
        else:
            self.learner.load_state_dict(checkpoint["learner"])
            self.step, self.finished = checkpoint["step"], checkpoint["finished"]
            self.has_grown()  # what the checkpoint holds has been logged
            self.clock.seconds, self.clock.paused_seconds = checkpoint["seconds"], checkpoint["paused_seconds"]
            self.record.append("resume", self.step, environment=describe_environment(self.config.device))
        title = f"{self.config.scenario.name} · {self.config.learner} · seed {self.config.seed}"
        self.monitor.started(title, step=self.step, n_batches=self.schedule.n_batches)

    def save(self) -> None:
        """Replaces the checkpoint by the present state."""
        self.record.save_checkpoint(
            {
                "learner": self.learner.state_dict(),
                "step": self.step,
                "finished": self.finished,
                "seconds": self.clock.seconds,
                "paused_seconds": self.clock.paused_seconds,
            }
        )
        self.saved_at = time.monotonic()

    def log_progress(self) -> None:
        """One line: how far, and what the learner keeps."""
        with self.clock.pause():
            values = asdict(self.learner.footprint())
            if self.config.is_expert_mixture:
                values |= describe_mixture(cast(ExpertMixture, self.learner))
            row = self.record.append("progress", self.step, **self.seconds, **values)
            self.monitor.progressed(row)

    def evaluate(self, test: TestSet) -> None:
        """One line: what the learner knows. A mixture is dissected at the ends of stages, where its tables need it."""
        stage = self.stream.stage_of(self.step - 1)
        n_stages_begun = sum(start < self.step for start in self.stream.stage_starts)
        learned = learned_tasks(self.stream.stage_tasks, n_stages_begun - 1)
        stage_end = self.step in self.schedule.stage_ends
        values = asdict(evaluate(self.learner, test))
        if values["task_accuracy"] is not None:
            values["learned_accuracy"] = mean([values["task_accuracy"][task] for task in learned])
        if stage_end and self.config.is_mixture:
            dissection = dissect(cast(MixtureLearner, self.learner), test, learned)
            values |= asdict(dissection) if dissection is not None else {}
        row = self.record.append(
            "evaluation",
            self.step,
            stage=stage,
            stage_end=stage_end,
            n_learned_tasks=len(learned),
            **values,
            **self.seconds,
            **asdict(self.learner.footprint()),
        )
        self.monitor.evaluated(row)

    def portray(self) -> None:
        """Keeps how a mixture of experts looks in the end, for reports."""
        if self.config.is_expert_mixture:
            portrait = take_portrait(cast(ExpertMixture, self.learner), self.test, self.config.seed)
            if portrait is not None:
                save_portrait(self.record.folder, portrait)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds spent learning, and spent on evaluation and records."""
        return {"seconds": round(self.clock.seconds, 3), "overhead_seconds": round(self.clock.paused_seconds, 3)}
