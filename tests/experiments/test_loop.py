"""The loop: what the learner receives, what the record holds, and that a stop changes nothing."""

import json
from dataclasses import asdict

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cndpm.experiments import ConfigError, Monitor, configure, read_record, run_config
from cndpm.experiments.learners import LEARNERS
from cndpm.paper import load_run
from cndpm.streams import load_scenario
from stopping import Stop, StopsAt, without_times

QUICK = ["run.evaluations=2", "run.log_points=5"]


def quick(learner="finetune", *overrides, **options):
    return configure("split-digits", learner=learner, device="cpu", overrides=[*QUICK, *overrides], **options)


def test_the_record_holds_one_evaluation_per_stage_end_and_point(tmp_path):
    config = quick()
    summary = run_config(config, tmp_path)
    record = read_record(tmp_path)
    stream = config.scenario.build(seed=0)
    n = stream.n_batches
    assert record.column("step") == sorted({*stream.stage_starts[1:], round(n / 2), n})
    assert record.status == "complete"
    assert record.summary == summary
    assert record.column("step", "progress")[-1] == n
    assert record.config == json.loads(json.dumps(config.to_json()))


def test_every_further_expert_is_logged_when_it_comes(tmp_path):
    summary = run_config(quick("cndpm", "learner.memory_size=50", "run.max_batches=75"), tmp_path)
    rows = [row for row in read_record(tmp_path).rows if row["event"] == "progress"]
    assert {len(row["expert_counts"]) for row in rows} >= set(range(1, summary["n_experts"] + 1))


def test_the_summary_is_the_final_evaluation(tmp_path):
    summary = run_config(quick("reservoir"), tmp_path)
    final = read_record(tmp_path).evaluations[-1]
    assert summary["accuracy"] == final["accuracy"]
    assert summary["task_accuracy"] == final["task_accuracy"]
    assert summary["memory_samples"] == 500


def test_the_same_configuration_gives_the_same_summary_and_another_seed_another(tmp_path):
    a, b = run_config(quick(), tmp_path / "a"), run_config(quick(), tmp_path / "b")
    c = run_config(quick(seed=1), tmp_path / "c")
    assert without_times(a) == without_times(b) != without_times(c)


@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(stop=st.integers(1, 146), frequent=st.booleans(), learner=st.sampled_from(["finetune", "reservoir"]))
def test_a_run_stopped_anywhere_and_resumed_ends_with_the_same_summary(tmp_path_factory, stop, frequent, learner):
    config = quick(learner, f"run.checkpoint_seconds={0.02 if frequent else 60}")
    whole = run_config(config, tmp_path_factory.mktemp("whole"))
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(Stop):
        run_config(config, folder, monitor=StopsAt(stop))
    assert read_record(folder).status == "interrupted"
    assert without_times(run_config(config, folder, resume=True)) == without_times(whole)


def test_a_run_stopped_between_the_last_batch_and_its_summary_ends_the_same(tmp_path):
    class StopsAtTheEnd(Monitor):
        def evaluated(self, row):
            if row["step"] == 146:
                raise Stop

    whole = run_config(quick(), tmp_path / "whole")
    with pytest.raises(Stop):
        run_config(quick(), tmp_path / "stopped", monitor=StopsAtTheEnd())
    assert without_times(run_config(quick(), tmp_path / "stopped", resume=True)) == without_times(whole)
    assert read_record(tmp_path / "stopped").column("step") == read_record(tmp_path / "whole").column("step")


def test_a_run_that_fails_before_its_first_batch_is_learned_leaves_nothing(tmp_path, monkeypatch):
    class Faulty(LEARNERS["finetune"]):
        def learn(self, x, y):
            raise ZeroDivisionError

    monkeypatch.setitem(LEARNERS, "faulty", Faulty)
    with pytest.raises(ZeroDivisionError):
        run_config(quick("faulty"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_complete_run_is_not_repeated(tmp_path):
    first = run_config(quick(), tmp_path)
    assert run_config(quick(), tmp_path, resume=True, monitor=StopsAt(1)) == first


def test_the_final_state_gives_the_summary_again(tmp_path):
    summary = run_config(quick(), tmp_path)
    _, stream, learner = load_run(tmp_path)
    right = [learner.predict_log_proba(task.x).argmax(1) == task.y for task in stream.tasks]
    assert 100 * float(torch.cat(right).double().mean()) == pytest.approx(summary["accuracy"])


def test_a_learner_receives_x_and_y_and_never_a_task(tmp_path, monkeypatch):
    received = []

    class Spy(LEARNERS["finetune"]):
        def learn(self, *args, **named):
            received.append((len(args), tuple(named)))
            super().learn(*args, **named)

    monkeypatch.setitem(LEARNERS, "spy", Spy)
    run_config(quick("spy"), tmp_path)
    assert set(received) == {(2, ())}


def test_blocks_are_learned_whole_and_a_checkpoint_within_one_resumes_with_the_same_block(tmp_path, monkeypatch):
    received = []

    class Spy(LEARNERS["finetune"]):
        def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
            received.append((len(x), float(x.double().sum()), start))
            super().learn_block(x, y, batch_size, start=start, after_batch=after_batch)

    monkeypatch.setitem(LEARNERS, "spy", Spy)
    run_config(quick("spy"), tmp_path / "whole")
    whole, received = received, []
    assert [start for *_, start in whole] == [0] * len(whole)
    with pytest.raises(Stop):
        run_config(quick("spy", "run.checkpoint_seconds=0"), tmp_path / "stopped", monitor=StopsAt(50))
    received.clear()
    run_config(quick("spy", "run.checkpoint_seconds=0"), tmp_path / "stopped", resume=True)
    # Batch 49 is the last that was saved; stage 1 began with batch 29, after 289 samples.
    assert received == [(*whole[1][:2], 200), *whole[2:]]


def test_a_run_ends_after_max_batches_also_within_a_block(tmp_path):
    short = quick("finetune", "run.max_batches=40")
    summary = run_config(short, tmp_path / "short")
    assert summary["n_batches"] == 40
    stream = short.scenario.build(seed=0)
    learner = short.build_learner(stream)
    for batch, _ in zip(stream.batches(), range(40), strict=False):
        learner.learn(batch.x, batch.y)
    _, _, ended = load_run(tmp_path / "short")
    x = stream.tasks[0].x
    assert torch.equal(ended.predict_log_proba(x), learner.predict_log_proba(x))


def test_a_mixture_is_dissected_at_stage_ends(tmp_path, mean_mixture):
    summary = run_config(quick("mean-mixture"), tmp_path)
    record = read_record(tmp_path)
    dissected = [row for row in record.evaluations if "gating_accuracy" in row]
    assert [row["stage"] for row in dissected] == [0, 1, 2, 3, 4]
    assert dissected[0]["gating_accuracy"] == 100.0
    assert summary["expert_tasks"] == [0, 1, 2, 3, 4]
    assert summary["n_experts"] == 5
    # Experts never change after their task, so their classifiers keep what they had.
    assert summary["classifier_accuracy_init"] == summary["classifier_accuracy_final"]
    assert 20.0 < summary["gating_accuracy"] < 100.0


def test_a_subsample_is_used_on_the_way_and_all_data_at_the_end(tmp_path):
    sizes = []

    class Counting(LEARNERS["finetune"]):
        def predict_log_proba(self, x):
            sizes.append(len(x))
            return super().predict_log_proba(x)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LEARNERS, "counting", Counting)
        run_config(quick("counting", "run.evaluation_samples=50", "run.evaluations=0"), tmp_path)
    assert sum(sizes[:5]) == pytest.approx(50, abs=3)
    assert sum(sizes[-5:]) == sum(len(task.x) for task in load_scenario("split-digits").build().tasks)


def test_an_endless_stream_needs_an_end(tmp_path):
    with pytest.raises(ConfigError, match="max_batches"):
        configure("endless-split-digits", learner="finetune", device="cpu")
    config = configure("endless-split-digits", learner="finetune", device="cpu", overrides=["run.max_batches=300"])
    assert run_config(config, tmp_path / "b")["n_batches"] == 300


@pytest.mark.parametrize("learner", ["ewc"])
def test_a_task_based_run_stopped_within_a_task_ends_with_the_same_summary(tmp_path, learner):
    config = quick(learner, "run.checkpoint_seconds=0.05", "run.max_batches=65")
    whole = run_config(config, tmp_path / "whole")
    with pytest.raises(Stop):
        run_config(config, tmp_path / "stopped", monitor=StopsAt(50))
    assert without_times(run_config(config, tmp_path / "stopped", resume=True)) == without_times(whole)


def test_the_learner_reports_long_phases_to_the_monitor(tmp_path, monkeypatch):
    class Sleeper(LEARNERS["finetune"]):
        def learn(self, x, y):
            self.on_progress("sleep", 0.5)
            super().learn(x, y)

    phases = []

    class Watching(Monitor):
        def phase(self, name, fraction):
            phases.append((name, fraction))

    monkeypatch.setitem(LEARNERS, "sleeper", Sleeper)
    run_config(quick("sleeper"), tmp_path, monitor=Watching())
    assert set(phases) == {("sleep", 0.5), ("evaluation", 0.0)}


def test_footprints_are_in_every_evaluation(tmp_path):
    run_config(quick("reservoir"), tmp_path)
    _, _, learner = load_run(tmp_path)
    final = read_record(tmp_path).evaluations[-1]
    assert {key: final[key] for key in asdict(learner.footprint())} == asdict(learner.footprint())
