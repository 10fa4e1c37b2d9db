"""One run with names for the parts of its record, and its figures as matplotlib axes."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cndpm.experiments.learners import shown_learner
from cndpm.experiments.record import Record, RecordError, read_record
from cndpm.experiments.record_files import load_portrait
from cndpm.learner import Portrait
from cndpm.names import UnknownNameError
from cndpm.reports.figures import Band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Run"]


class Run:
    """A record with names for its parts, and its figures, of a run that is complete, running or interrupted.

    It is made of a record or of the folder of one; RecordError where there is none, or it cannot be read.

    Example:
        >>> from cndpm.experiments import configure, run_seeds
        >>> _ = run_seeds(configure("split-digits", learner="finetune", fraction=0.1), [0], "runs/mine")
        >>> run = Run("runs/mine/seed-0")
        >>> run.title, run.record.status, run.task_names[0]
        ('split-digits · finetune · seed 0', 'complete', 'digits 0/1')
        >>> run.plot("accuracy").get_ylabel()
        'accuracy on all tasks (%)'
    """

    def __init__(self, record: Record | str | Path) -> None:
        self.record = record if isinstance(record, Record) else read_record(record)

    def __repr__(self) -> str:
        return f"Run({str(self.record.folder)!r}: {self.title}, {self.record.status})"

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        return self.record.config

    @property
    def scenario(self) -> str:
        """Name of the scenario; says so where a part of the training data took the place of the test set."""
        recipe = self.config["scenario"]
        return f"{recipe['name']} (validation)" if recipe.get("validation") else str(recipe["name"])

    @property
    def learner(self) -> str:
        """Name of the learner."""
        return str(self.config["learner"])

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.config["seed"])

    @property
    def title(self) -> str:
        """Scenario, learner and seed."""
        return f"{self.scenario} · {shown_learner(self.learner)} · seed {self.seed}"

    @property
    def metric(self) -> str:
        """The metric: "accuracy" in percent, or "bits_per_dim" where a stream has no labels.

        Without test sets it is the accuracy or the mean absolute error of answers given before learning.
        """
        if self._is_only_prequential:
            return "prequential_error" if "prequential_error" in self.last else "prequential_accuracy"
        return "accuracy" if self.config["scenario"].get("labelled", True) else "bits_per_dim"

    @property
    def _is_only_prequential(self) -> bool:
        return bool(self.config.get("run", {}).get("prequential")) and not self.task_names

    @cached_property
    def last(self) -> dict[str, Any]:
        """The latest value of everything that was logged; the summary's where the run is complete."""
        values: dict[str, Any] = {}
        for row in (row for row in self.record.rows if row["event"] != "window"):  # these are of one window only
            values |= {name: value for name, value in row.items() if value is not None}
        return values | {name: value for name, value in (self.record.summary or {}).items() if value is not None}

    # The stream

    @cached_property
    def _start(self) -> dict[str, Any]:
        return next((row for row in self.record.rows if row["event"] == "start"), {})

    @property
    def n_steps(self) -> int:
        """Batches learned so far."""
        return max((row["step"] for row in self.record.rows), default=0)

    @property
    def n_batches(self) -> int | None:
        """Batches that the run takes in all; None where the record does not say."""
        return self._start.get("n_batches") or self.last.get("n_batches")

    @property
    def batch_size(self) -> int:
        """Samples in a batch."""
        return int(self.config["scenario"].get("batch_size", 10))

    @cached_property
    def task_names(self) -> list[str]:
        """The tasks, in the order of their first appearance."""
        if "task_names" in self._start:
            return [str(name) for name in self._start["task_names"]]
        n = max((len(row.get("task_accuracy") or ()) for row in self.record.evaluations), default=0)
        return [f"task {i + 1}" for i in range(n)]

    @cached_property
    def stages(self) -> list[Band]:
        """The stages that the record names, labelled by their tasks."""
        end = self.n_batches or self.n_steps
        noted = self._start.get("stage_starts")
        ends = [0, *(row["step"] for row in self.record.evaluations if row.get("stage_end"))]
        starts = [start for start in (ends if noted is None else noted) if start < end]
        tasks = self._start.get("stage_tasks") or []
        bands = []
        for i, (start, stop) in enumerate(pairwise([*starts, end])):
            names = [self.task_names[t] for t in tasks[i]] if i < len(tasks) else []
            bands.append(Band(start, stop, " + ".join(names) if len(names) in (1, 2) else f"stage {i + 1}"))
        return bands

    def stages_of(self, task: int) -> list[Band]:
        """Returns the stages in which a task is streamed."""
        tasks = self._start.get("stage_tasks") or []
        return [band for band, of in zip(self.stages, tasks, strict=False) if task in of]

    # The mixture

    @cached_property
    def portrait(self) -> Portrait | None:
        """Samples and similarity of the experts of a complete mixture; None where the record has none."""
        try:
            return load_portrait(self.record.folder)
        except RecordError:
            return None

    @property
    def portrait_problem(self) -> str | None:
        """Why the portrait cannot be read; None where it can, or where there is none."""
        try:
            load_portrait(self.record.folder)
        except RecordError as error:
            return str(error)
        return None

    def plot(self, figure: str, ax: Axes | None = None) -> Any:
        """Draws a figure and returns its axes, an array of them for one of several panels.

        Args:
            figure: One of accuracy (or bits per dimension), prequential, answering, experts, parameters, tasks,
                responsibilities, memory, gate, similarity and samples.
            ax: Axes to draw on, for a figure of one panel; None makes a new figure.
        """
        from cndpm.reports.content import FIGURES
        from cndpm.reports.drawing import draw

        if figure not in FIGURES:
            raise UnknownNameError("figure", figure, FIGURES)
        made = FIGURES[figure](self)
        if made is None:
            raise ValueError(
                "the record holds no data for this figure. Mixtures of experts log it from the first batches on; "
                "samples and similarity are there when the run is complete"
            )
        axes = draw(made, ax)
        return axes if len(axes) > 1 else axes.flat[0]

    def as_group(self) -> Any:
        """Returns a group of this run alone."""
        from cndpm.reports.groups import Group

        return Group(shown_learner(self.learner), (self,))
