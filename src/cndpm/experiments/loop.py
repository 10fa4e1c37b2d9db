"""The one loop: runs a learner on a stream, evaluates and keeps checkpoints on a schedule, and writes everything down.

    for block in stream.blocks():
        learner.learn_block(...)        # and after a batch now and then: log, evaluate, checkpoint
    learner.finish()
    summary = evaluate(...)

A run that was stopped anywhere goes on from its last checkpoint and ends with the same summary.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from cndpm.experiments.checkpoint_file import check_progress, restore_learner
from cndpm.experiments.config import RunConfig, RunSettings
from cndpm.experiments.description import describe_environment, describe_run, describe_stream
from cndpm.experiments.evaluation import TestSet, dissect, evaluate
from cndpm.experiments.learners import shown_learner
from cndpm.experiments.meter import Meter, Window
from cndpm.experiments.metrics import learned_tasks, mean, summarise_prequential, summarise_run
from cndpm.experiments.monitor import Monitor
from cndpm.experiments.record_files import save_portrait
from cndpm.experiments.recorder import Recorder
from cndpm.experiments.schedule import Clock, RunSchedule, run_length, window_size
from cndpm.experiments.teaching import ask, expert_gate, teach
from cndpm.learner import Inputs, Learner, Prepared
from cndpm.streams import Stream

__all__ = ["run", "run_config"]

_N_SIMILARITY_SAMPLES = 500


def run(
    learner: Learner,
    stream: Stream,
    folder: str | Path,
    *,
    settings: RunSettings | None = None,
    resume: bool = False,
    monitor: Monitor | None = None,
    seed: int | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Runs any learner on any stream, leaves a record and returns the summary, as written to ``summary.json``.

    Args:
        learner: The learner, as it is to begin with; it has learned the stream afterwards.
        stream: The stream. Without test sets nothing is evaluated; without a known end `settings` must give one.
        folder: Where the record goes; see :mod:`cndpm.experiments.record`.
        settings: How the run is watched and kept.
        resume: Goes on with the record in `folder`, if there is one, from its last checkpoint: give a learner and a
            stream that are made as they were at first. The summary of a complete run is returned as it is.
        monitor: Told of everything that happens.
        seed: Tells this run from others of its kind in reports; None: the learner's.
        command: The command line that makes the run, for reports.

    Raises:
        ConfigError: Neither the stream nor `settings` say where to end.
        RecordError: The folder cannot be written, is in use, or holds another run.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from cndpm.baselines.slda import SLDA
        >>> from cndpm.streams import drifting_clusters, stream_from
        >>> stream = stream_from(drifting_clusters(), n_classes=4, name="clusters")
        >>> learner = SLDA(SLDA.Settings(), input_shape=stream.input_shape, n_classes=4)
        >>> with TemporaryDirectory() as folder:
        ...     run(learner, stream, folder, settings=RunSettings(max_batches=20))["n_batches"]
        20
    """
    settings = settings or RunSettings()
    run_length(stream, settings.max_batches)  # refused before anything is written
    config = describe_run(learner, stream, settings, learner.seed if seed is None else seed)
    return _record(lambda: (learner, stream), config, settings, folder, resume=resume, monitor=monitor, command=command)


def run_config(
    config: RunConfig,
    folder: str | Path,
    *,
    data_dir: str | Path | None = None,
    resume: bool = False,
    monitor: Monitor | None = None,
    command: str | None = None,
) -> dict[str, Any]:
    """Runs the learner and the stream of a configuration, leaves a record and returns the summary; see :func:`run`.

    Args:
        config: What to run.
        folder: Where the record goes; see :mod:`cndpm.experiments.record`.
        data_dir: Where datasets lie; None: where :mod:`cndpm.datasets` looks by itself.
        resume: Goes on with the record in `folder`, if there is one; a complete one is returned as it is.
        monitor: Told of everything that happens.
        command: The command line that was typed.
    """

    def make() -> tuple[Learner, Stream]:
        stream = config.scenario.build(data_dir=data_dir, seed=config.seed, device=config.device)
        return config.build_learner(stream), stream

    return _record(make, config.to_json(), config.run, folder, resume=resume, monitor=monitor, command=command)


def _record(
    make: Callable[[], tuple[Learner, Stream]],
    config: dict[str, Any],
    settings: RunSettings,
    folder: str | Path,
    *,
    resume: bool,
    monitor: Monitor | None,
    command: str | None,
) -> dict[str, Any]:
    """Claims the folder, makes learner and stream only where there is something left to do, and does it."""
    monitor = monitor or Monitor()
    environment = describe_environment(config["device"], command)
    with closing(monitor), Recorder(folder, config=config, environment=environment, resume=resume) as record:
        if record.summary is not None:
            return record.summary
        begun: _Run | None = None
        try:
            learner, stream = make()
            before, learner.on_progress = learner.on_progress, monitor.phase
            try:
                begun = _Run(learner, stream, record, monitor, config, settings)
                return begun.complete()
            finally:
                learner.on_progress = before
        except Exception:
            if begun is None or begun.step == 0:  # nothing was learned: there is nothing to go on with
                record.discard()
            raise


class _EndOfRun(Exception):
    """Ends a block after the last batch that the run takes."""


class _Run:
    """One run in progress: the learner, how far it is, and the record it leaves."""

    def __init__(
        self,
        learner: Learner,
        stream: Stream,
        record: Recorder,
        monitor: Monitor,
        config: dict[str, Any],
        settings: RunSettings,
    ) -> None:
        self.learner, self.stream, self.record, self.monitor = learner, stream, record, monitor
        self.config, self.settings, self.seed = config, settings, int(config["seed"])
        test = TestSet(stream.tasks, stream.labelled, settings.evaluation_batch_size)
        self.test = test.prepare(learner)
        self.interim_test = self.test
        if settings.evaluation_samples is not None and test.tasks:
            self.interim_test = test.subsample(settings.evaluation_samples, self.seed).prepare(learner)
        self.schedule = RunSchedule.of(
            stream,
            n_batches=run_length(stream, settings.max_batches),
            evaluations=settings.evaluations,
            log_points=settings.log_points,
        )
        self.meter = self.make_meter() if settings.prequential else None
        self.step = 0
        self.n_experts = 0
        self.finished = False
        self.clock = Clock(torch.device(learner.device))
        self.saved_at = time.monotonic()

    def make_meter(self) -> Meter:
        """Returns a meter for answers that are given before learning."""
        n_samples = self.schedule.n_batches * self.config["scenario"].get("batch_size", 10)
        window = self.settings.prequential_window or window_size(n_samples)
        return Meter(self.stream.target, window=window, changes=self.stream.changes)

    def complete(self) -> dict[str, Any]:
        """Runs from wherever the record stands to the end."""
        with self.clock.pause():
            self.restore()
        if not self.finished:
            self.learn()
            if self.meter is not None:
                self.log_window(self.meter.close(), self.step)
            self.learner.finish()
            self.finished = True
            with self.clock.pause():
                self.save()
        with self.clock.pause():
            self.evaluate(self.test, final=True)
            self.portray()
            summary = self.summarise()
            self.record.conclude(summary)
        self.monitor.finished(summary)
        return summary

    def learn(self) -> None:
        """Learns from batch number `step` to the end of the run."""
        if self.step == self.schedule.n_batches:
            return
        try:
            before_batch = None if self.meter is None else self.before_batch
            teach(self.learner, self.stream, self.step, self.after_batch, before_batch=before_batch)
        except _EndOfRun:
            return
        if self.step < self.schedule.n_batches:  # the stream was shorter than it might have been
            self.log_progress()

    def before_batch(self, x: Inputs, y: torch.Tensor | None) -> None:
        """Answers a batch that is to be learned next, and scores the answers."""
        assert self.meter is not None
        answers = ask(self.learner, x, y, self.meter.target)
        with self.clock.pause():
            if answers is None:
                self.log_window(self.meter.skip(len(x.x if isinstance(x, Prepared) else x)), self.step + 1)
            else:
                self.log_window(self.meter.add(answers, expert_gate(self.learner, x)), self.step + 1)

    def after_batch(self, step: int) -> None:
        """Logs, evaluates and saves where it is time to."""
        self.step = step
        self.monitor.learned(step)
        if self.has_grown() or step in self.schedule.log_points:
            self.log_progress()
        if step in self.schedule.evaluations:
            with self.clock.pause():
                self.evaluate(self.interim_test)
        if time.monotonic() - self.saved_at > self.settings.checkpoint_seconds:
            with self.clock.pause():
                self.save()
        if step == self.schedule.n_batches:
            raise _EndOfRun

    def has_grown(self) -> bool:
        """Tells whether a mixture has another number of experts than when this was last asked."""
        if self.learner.experts is None:
            return False
        before, self.n_experts = self.n_experts, self.learner.footprint().n_experts
        return before != self.n_experts

    def restore(self) -> None:
        """Takes up the last checkpoint; where there is none, writes one, which shows that the disk takes it."""
        checkpoint = self.record.load_checkpoint()
        if checkpoint is None:
            self.record.append("start", 0, **describe_stream(self.stream, self.schedule.n_batches))
            self.save()
        else:
            check_progress(checkpoint, self.record.folder)
            restore_learner(self.learner, checkpoint["learner"], self.record.folder)
            self.step, self.finished = checkpoint["step"], checkpoint["finished"]
            self.has_grown()  # what the checkpoint holds has been logged
            if self.meter is not None:
                self.meter.load_state_dict(checkpoint["meter"])
            self.clock.seconds, self.clock.paused_seconds = checkpoint["seconds"], checkpoint["paused_seconds"]
            self.record.append("resume", self.step, environment=self.record.environment)
        learner = shown_learner(self.config["learner"])
        title = f"{self.config['scenario']['name']} · {learner} · seed {self.seed}"
        self.monitor.started(title, step=self.step, n_batches=self.schedule.n_batches)

    def save(self) -> None:
        """Replaces the checkpoint by the present state."""
        self.record.save_checkpoint(
            {
                "learner": self.learner.state_dict(),
                "step": self.step,
                "finished": self.finished,
                "meter": None if self.meter is None else self.meter.state_dict(),
                "seconds": self.clock.seconds,
                "paused_seconds": self.clock.paused_seconds,
            }
        )
        self.saved_at = time.monotonic()

    def log_window(self, window: Window | None, step: int) -> None:
        """Writes one line: how samples were answered before they were learned, up to the last of batch `step`."""
        if window is not None:
            values = {"first": window.first, "n_samples": window.n_samples, **window.scores, "experts": window.experts}
            row = self.record.append("window", step, **values, **self.seconds)
            self.monitor.windowed(row)

    def log_progress(self) -> None:
        """Writes one line: how far, and what the learner keeps."""
        with self.clock.pause():
            values = self.learner.describe() | asdict(self.learner.footprint()) | self.seconds
            row = self.record.append("progress", self.step, **values)
            self.monitor.progressed(row)

    def evaluate(self, test: TestSet, *, final: bool = False) -> None:
        """Writes one line: what the learner knows. Mixtures are dissected at the ends of stages."""
        n_stages_begun = sum(start < self.step for start in self.stream.stage_starts)
        learned = learned_tasks(self.stream.stage_tasks, n_stages_begun - 1)
        stage_end = final or self.step in self.schedule.stage_ends
        self.monitor.phase("evaluation", 0.0)
        values = asdict(evaluate(self.learner, test))
        if values["task_accuracy"] is not None:
            values["learned_accuracy"] = mean([values["task_accuracy"][task] for task in learned])
        dissection = dissect(self.learner, test, learned) if stage_end else None
        values |= asdict(dissection) if dissection is not None else {}
        row = self.record.append(
            "evaluation",
            self.step,
            stage=self.stream.stage_of(max(0, self.step - 1)),
            stage_end=stage_end,
            n_learned_tasks=len(learned),
            **values,
            **self.seconds,
            **asdict(self.learner.footprint()),
            **({} if self.learner.experts is None else {"n_in_memory": self.learner.describe().get("n_in_memory")}),
        )
        self.monitor.evaluated(row)

    def portray(self) -> None:
        """Keeps the portrait of a mixture, drawn beside a part of the test data."""
        if not self.test.is_measurable:
            return
        some = self.test.subsample(_N_SIMILARITY_SAMPLES, self.seed)
        x = torch.cat([task.x for task in some.tasks])
        y = torch.cat([task.y for task in some.tasks]) if self.test.labelled else None
        portrait = self.learner.portray(x, y, seed=self.seed)
        if portrait is not None:
            save_portrait(self.record.folder, portrait)

    def summarise(self) -> dict[str, Any]:
        """Returns the results."""
        summary = summarise_run(self.record.rows("evaluation"), self.stream.stage_tasks, self.seconds)
        return summary if self.meter is None else summary | summarise_prequential(self.meter.results())

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds spent learning, and spent on evaluation and records."""
        return {"seconds": round(self.clock.seconds, 3), "overhead_seconds": round(self.clock.paused_seconds, 3)}
