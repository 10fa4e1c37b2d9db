"""What the loop counts: seconds of learning, lines of progress, learned tasks; and that a learner finishes first."""

from types import SimpleNamespace

import pytest

from cndpm.experiments import configure, loop, read_record, run_config
from cndpm.experiments import schedule as clock
from cndpm.experiments.learners import LEARNERS
from cndpm.experiments.recorder import Recorder
from stopping import Stop, StopsAt

OFTEN = ["run.evaluations=3", "run.log_points=4", "run.checkpoint_seconds=0"]


def short(learner="mean-mixture", *overrides):
    given = [*OFTEN, *overrides]
    return configure("split-digits", learner=learner, device="cpu", fraction=0.2, overrides=given)


@pytest.fixture
def timed(monkeypatch):
    """A clock that moves by a second for every batch, by a hundred for every evaluation, and not by itself."""
    now, evaluate = [0.0], loop.evaluate
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def slowly(*arguments):
        now[0] += 100
        return evaluate(*arguments)

    class Steady(LEARNERS["finetune"]):
        n_finished = 0

        def learn(self, x, y):
            now[0] += 1
            super().learn(x, y)

        def finish(self):
            type(self).n_finished += 1
            now[0] += 7

    monkeypatch.setattr(loop, "evaluate", slowly)
    monkeypatch.setitem(LEARNERS, "steady", Steady)
    return Steady


def test_seconds_are_those_of_learning_and_finishing_and_the_rest_is_told_apart(timed, tmp_path):
    summary = run_config(short("steady", "learner.hidden=4"), tmp_path)
    evaluations = len(read_record(tmp_path).evaluations)
    assert timed.n_finished == 1
    before_the_last = 100 * (evaluations - 1)
    assert (summary["seconds"], summary["overhead_seconds"]) == (summary["n_batches"] + 7, before_the_last)


def test_the_last_evaluation_is_of_a_learner_that_has_finished(timed, tmp_path, monkeypatch):
    seen, evaluate = [], loop.evaluate

    def noting(learner, test):
        seen.append(learner.n_finished)
        return evaluate(learner, test)

    monkeypatch.setattr(loop, "evaluate", noting)
    run_config(short("steady", "learner.hidden=4"), tmp_path)
    assert seen[-1] == 1 and set(seen[:-1]) == {0}


@pytest.mark.usefixtures("mean_mixture")
def test_a_resumed_run_goes_on_counting_seconds_and_logs_no_line_twice(tmp_path, monkeypatch):
    whole = run_config(short(), tmp_path / "whole")
    with pytest.raises(Stop):
        run_config(short(), tmp_path / "parts", monitor=StopsAt(whole["n_batches"] - 3))
    load = Recorder.load_checkpoint
    longer = {"seconds": 1000.0, "paused_seconds": 2000.0}
    monkeypatch.setattr(Recorder, "load_checkpoint", lambda self: load(self) | longer)
    resumed = run_config(short(), tmp_path / "parts", resume=True)
    assert 1000 <= resumed["seconds"] < 1900 and 2000 <= resumed["overhead_seconds"] < 2900
    steps = [read_record(tmp_path / part).column("step", "progress") for part in ("whole", "parts")]
    assert steps[0] == steps[1]


@pytest.mark.usefixtures("mean_mixture")
def test_the_accuracy_of_learned_tasks_leaves_out_those_to_come(tmp_path):
    run_config(short(), tmp_path)
    rows = read_record(tmp_path).evaluations
    assert len({row["n_learned_tasks"] for row in rows}) > 2
    for row in rows:
        learned = row["task_accuracy"][: row["n_learned_tasks"]]
        assert row["learned_accuracy"] == pytest.approx(sum(learned) / len(learned))
