from dataclasses import replace

import matplotlib
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from cndpm.reports import Run


@pytest.fixture(autouse=True)
def _no_display():
    matplotlib.use("agg")
    yield
    pyplot.close("all")


@pytest.mark.parametrize(
    "name",
    ["accuracy", "experts", "parameters", "responsibilities", "memory", "gate", "similarity", "samples"],
)
def test_figures_of_a_run_are_matplotlib_axes(records, name):
    ax = Run(records / "cndpm" / "seed-0").plot(name)
    assert isinstance(ax, Axes)
    assert ax.get_title()
    ax.figure.canvas.draw()


def test_a_figure_can_be_drawn_on_given_axes(records):
    _, ax = pyplot.subplots()
    assert Run(records / "finetune" / "seed-0").plot("accuracy", ax) is ax
    assert "batches" in ax.get_xlabel() and "%" in ax.get_ylabel()


def test_tasks_have_axes_of_their_own(records):
    assert len(Run(records / "finetune" / "seed-0").plot("tasks")) == 6


def test_what_the_record_does_not_hold_is_said(records):
    with pytest.raises(ValueError, match="the record holds no data"):
        Run(records / "finetune" / "seed-0").plot("gate")


def test_the_latest_values_are_those_of_the_run_and_not_of_a_window(records):
    run = Run(records / "cndpm" / "seed-0")
    window = {"event": "window", "step": run.n_steps, "accuracy": 1.0}
    going = Run(replace(run.record, rows=[*run.record.rows, window], summary=None, status="running"))
    assert going.last["accuracy"] == run.record.evaluations[-1]["accuracy"]
    assert Run(replace(run.record, rows=[*run.record.rows, window])).last["accuracy"] == run.record.summary["accuracy"]
    assert "expert_counts" in run.last  # what was logged and is not summed up


def test_a_task_is_streamed_in_the_stages_that_draw_from_it(records):
    run = Run(records / "finetune" / "seed-0")
    assert [run.stages_of(task) for task in range(5)] == [[band] for band in run.stages]
