"""``cndpm run`` and ``cndpm compare``, end to end."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from cndpm.experiments.learners import LEARNERS
from cndpm.experiments.record import find_records, read_record
from pausing import kill, paused

NUMBERS = ("accuracy", "bits_per_dim", "n_experts", "n_parameters", "n_numbers_kept", "memory_samples", "seconds")
RUN = ("run", "split-digits", "--learner", "finetune", "--device", "cpu", "--json")


def test_json_is_one_object_on_the_last_line_with_the_promised_keys(cndpm):
    outcome = cndpm(*RUN, "--seeds", "2", "--seed", "3", "--out", "mine")
    result = outcome.json
    assert outcome.code == 0
    assert list(result) == ["scenario", "learner", "preset", *NUMBERS, "standard_error", "runs"]
    assert set(result["standard_error"]) == set(NUMBERS)
    assert [run["seed"] for run in result["runs"]] == [3, 4]
    assert all(set(NUMBERS) <= set(run) for run in result["runs"])
    values = [run["accuracy"] for run in result["runs"]]
    assert result["accuracy"] == pytest.approx(sum(values) / 2)
    assert result["standard_error"]["accuracy"] == pytest.approx(abs(values[0] - values[1]) / 2)
    assert [path.name for path in find_records("mine")] == ["seed-3", "seed-4"]
    assert json.loads(Path("mine/result.json").read_text()) == result


def test_progress_goes_to_standard_error_alone(cndpm):
    outcome = cndpm(*RUN)
    assert len(outcome.out.splitlines()) == 1
    assert "batch 146 of 146" in outcome.err
    assert "batch" not in cndpm(*RUN, "--quiet").err


def test_without_json_a_table_is_printed(cndpm):
    outcome = cndpm("run", "split-digits", "--learner", "reservoir", "--quiet", "--device", "cpu")
    assert "reservoir" in outcome.out
    assert "accuracy (%)" in outcome.out
    assert outcome.err == ""


def test_every_run_has_a_folder_of_its_own(cndpm):
    for _ in range(2):
        cndpm(*RUN)
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "split-digits-finetune",
        "split-digits-finetune-2",
    ]


def test_out_is_refused_when_it_holds_a_run_and_resumed_when_asked(cndpm):
    first = cndpm(*RUN, "--out", "mine").json
    refused = cndpm(*RUN, "--out", "mine")
    assert refused.code == 1
    assert "--resume" in refused.err
    assert cndpm(*RUN, "--out", "mine", "--resume").json == first


def test_resume_without_out_finds_the_run(cndpm):
    first = cndpm(*RUN).json
    cndpm(*RUN, "--set", "learner.learning_rate=0.01")
    assert cndpm(*RUN, "--resume").json == first
    assert len(list(Path("runs").iterdir())) == 2


def test_resume_with_other_options_names_what_differs(cndpm):
    cndpm(*RUN, "--out", "mine")
    outcome = cndpm(*RUN, "--out", "mine", "--resume", "--set", "learner.learning_rate=0.5")
    assert outcome.code == 1
    assert "settings.learning_rate" in outcome.err


def test_options_of_the_scenario_change_the_stream(cndpm):
    def n_batches(*options):
        return cndpm(*RUN, "--quiet", *options).json["runs"][0]["n_batches"]

    whole = n_batches()
    assert n_batches("--epochs", "2") == pytest.approx(2 * whole, abs=5)
    assert n_batches("--repeats", "3") == 3 * whole
    assert n_batches("--fraction", "0.5") == pytest.approx(whole / 2, abs=5)
    assert n_batches("--set", "scenario.batch_size=20") == pytest.approx(whole / 2, abs=5)


def test_own_scenarios_are_files(cndpm):
    Path("mine.toml").write_text(
        'name = "mine"\n'
        '[[stages]]\nsubsets = [{dataset = "digits", classes = [0, 1]}]\nepochs = 1\n'
        '[[stages]]\nsubsets = [{dataset = "digits", classes = [2, 3]}]\nsteps = 7\n'
    )
    result = cndpm("run", "mine.toml", "--learner", "finetune", "--json", "--quiet").json
    assert result["scenario"] == "mine"
    assert len(result["runs"][0]["task_accuracy"]) == 2


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("run", "split-digit"), "split-digits"),
        (("run", "split-digits", "--learner", "resevoir"), "reservoir"),
        (("run", "split-digits", "--learner", "finetune", "--preset", "papr"), "paper"),
        (("run", "split-digits", "--learner", "reservoir", "--set", "learner.memory_sise=5"), "memory_size"),
        (("run", "split-digits", "--learner", "finetune", "--set", "scenario.batchsize=5"), "batch_size"),
        (("run", "split-digits", "--learner", "finetune", "--set", "run.evaluation=5"), "evaluations"),
        (("run", "split-digits", "--learner", "finetune", "--set", "lerner.x=5"), "learner"),
        (("compare", "split-digits", "--learners", "finetune,reservior"), "reservoir"),
    ],
)
def test_a_mistyped_name_is_answered_with_the_nearest(cndpm, arguments, suggestion):
    outcome = cndpm(*arguments)
    assert outcome.code == 2
    assert suggestion in outcome.err
    assert "Traceback" not in outcome.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "learner.memory_size=0"), ("learner.memory_size", "got 0")),
        (("--set", "learner.memory_size=many"), ("learner.memory_size", "got 'many'")),
        (("--fraction", "1.5"), ("fraction", "1.5")),
        (("--set", "nonsense"), ("SECTION.FIELD=VALUE",)),
        (("--device", "tpu-of-my-own"), ("device", "tpu-of-my-own")),
        (("--preset", "paper"), ("split-mnist", "default")),
    ],
)
def test_a_wrong_value_is_refused_before_anything_runs(cndpm, arguments, words):
    outcome = cndpm("run", "split-digits", "--learner", "reservoir", *arguments)
    assert outcome.code == 2
    assert all(word in outcome.err for word in words)
    assert not Path("runs").exists()


def test_missing_data_says_what_where_and_how(cndpm, tmp_path):
    outcome = cndpm("run", "split-mnist", "--learner", "finetune", "--data-dir", str(tmp_path / "nowhere"))
    assert outcome.code == 1
    assert "train-images-idx3-ubyte" in outcome.err
    assert str(tmp_path / "nowhere") in outcome.err
    assert "cndpm data fetch mnist" in outcome.err


@pytest.mark.parametrize("command", [("run",), ("compare", "--learners", "finetune,reservoir")])
def test_a_run_that_cannot_begin_leaves_no_folder(cndpm, tmp_path, command):
    name, *options = command
    outcome = cndpm(name, "split-mnist", *options, "--data-dir", str(tmp_path / "nowhere"))
    assert outcome.code == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_reported_before_data_are_read(cndpm):
    Path("file").write_text("")
    outcome = cndpm("run", "split-mnist", "--learner", "finetune", "--out", "file/run", "--data-dir", "nowhere")
    assert outcome.code == 1
    assert "cannot create the record in file/run" in outcome.err


def test_tensorboard_files_are_written_when_asked(cndpm):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    cndpm(*RUN, "--monitor", "examples.trackers:TensorBoard", "--out", "mine", "--quiet")
    events = accumulator.EventAccumulator("mine/seed-0/tensorboard")
    events.Reload()
    logged = {event.step: event.value for event in events.Scalars("evaluation/accuracy")}
    record = read_record("mine/seed-0")
    assert logged == pytest.approx(dict(zip(record.column("step"), record.column("accuracy"), strict=True)), abs=1e-3)


def test_compare_runs_every_learner_and_resumes(cndpm):
    arguments = ("compare", "split-digits", "--learners", "finetune,reservoir", "--seeds", "2", "--json", "--quiet")
    first = cndpm(*arguments).json
    assert first["scenario"] == "split-digits"
    assert [result["learner"] for result in first["learners"]] == ["finetune", "reservoir"]
    assert first["learners"][1]["accuracy"] > first["learners"][0]["accuracy"]
    assert cndpm(*arguments, "--resume").json == first
    assert len(find_records("runs")) == 4


def test_the_default_learner_grows_experts_on_the_digits(cndpm):
    result = cndpm("run", "split-digits", "--json", "--quiet").json
    assert result["learner"] == "cndpm"
    assert result["n_experts"] == 5
    assert result["runs"][0]["gating_accuracy"] > 40
    assert result["runs"][0]["classifier_accuracy_final"] > 80


def test_a_run_stopped_by_ctrl_c_says_how_to_go_on(cndpm, monkeypatch):
    class Stopped(LEARNERS["finetune"]):
        def learn(self, x, y):
            raise KeyboardInterrupt

    monkeypatch.setitem(LEARNERS, "stopped", Stopped)
    outcome = cndpm("run", "split-digits", "--learner", "stopped", "--quiet", "--out", "mine")
    assert outcome.code == 130
    assert "--resume" in outcome.err
    assert read_record("mine/seed-0").status == "interrupted"


def test_a_run_killed_in_the_middle_resumes_to_the_same_summary(cndpm, tmp_path):
    options = ("--set", "run.checkpoint_seconds=0")
    whole = cndpm(*RUN, "--out", "whole").json["runs"][0]
    record = tmp_path / "killed" / "seed-0"
    process = paused(31, "cndpm", *RUN, *options, "--out", "killed", folder=tmp_path)
    assert (record / "checkpoint.cndpm").exists() and read_record(record).status == "running"
    kill(process)
    assert read_record(record).status == "interrupted"
    resumed = cndpm(*RUN, *options, "--out", "killed", "--resume")
    assert "goes on after batch" in resumed.err
    run = resumed.json["runs"][0]
    ignored = {"seconds", "overhead_seconds", "folder"}
    assert {key: run[key] for key in run if key not in ignored} == {
        key: whole[key] for key in whole if key not in ignored
    }
    rows = [read_record(folder).column("task_accuracy") for folder in ("whole/seed-0", "killed/seed-0")]
    assert rows[0] == rows[1]


def start(folder, *options, repeats="6", **settings):
    command = [sys.executable, "-m", "cndpm", *RUN[:-1], "--repeats", repeats, "--out", str(folder), *options]
    command += ["--set", "run.checkpoint_seconds=0.01"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, preexec_fn=_hear_interrupts, **pipes, **settings)


def _hear_interrupts():
    """A child of a shell's background job would ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < end
        time.sleep(0.002)


def stop_all(process):
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"--resume" in err
    assert b"Traceback" not in err


def kill_parent(process):
    process.kill()
    process.communicate(timeout=300)


@pytest.mark.slow  # tests/engines/test_local.py kills the parent of one worker
def test_seeds_at_the_same_time_stop_with_their_parent_and_resume_to_the_same_results(cndpm, tmp_path):
    options = ("--repeats", "6", "--set", "run.checkpoint_seconds=0.01", "--seeds", "2", "--quiet")
    whole = cndpm(*RUN, *options[:2], *options[4:], "--out", "whole").json["runs"]
    logs = [tmp_path / "stopped" / f"seed-{seed}" / "log.jsonl" for seed in range(2)]
    for n_lines, stop in ((10, kill_parent), (30, stop_all)):
        process = start(tmp_path / "stopped", "--seeds", "2", "--jobs", "2", "--resume", start_new_session=True)
        wait_for(partial(_all_longer, logs, n_lines), process)
        stop(process)
        end = time.monotonic() + 300
        while any(read_record(log.parent).status == "running" for log in logs):
            assert time.monotonic() < end
            time.sleep(0.05)
    assert [read_record(log.parent).status for log in logs] == ["interrupted"] * 2
    resumed = cndpm(*RUN, *options, "--out", "stopped", "--resume").json["runs"]
    ignored = {"seconds", "overhead_seconds", "folder"}
    for run, other in zip(whole, resumed, strict=True):
        assert {key: run[key] for key in run if key not in ignored} == {
            key: other[key] for key in other if key not in ignored
        }


def _all_longer(logs, n_lines):
    return all(log.exists() and log.read_text().count("\n") > n_lines for log in logs)


def test_validate_tests_on_a_tenth_of_the_training_data_and_says_so_in_records_and_reports(cndpm):
    options = ("--learners", "slda,finetune", "--validate", "--device", "cpu", "--quiet", "--out", "chosen")
    outcome = cndpm("compare", "split-digits", *options)
    assert outcome.code == 0 and "split-digits (validation: a tenth of the training data held out)" in outcome.out
    records = [read_record(folder) for folder in find_records("chosen")]
    assert [record.config["scenario"]["validation"] for record in records] == [True, True]
    assert records[0].summary["n_batches"] < 146
    report = Path("chosen/report/index.html").read_text(encoding="utf-8")
    assert "split-digits (validation)" in report
