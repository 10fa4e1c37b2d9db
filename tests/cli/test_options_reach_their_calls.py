"""What is said on the command line reaches the one call that each command makes, and what becomes of it is told."""

from pathlib import Path

import pytest
from rich.console import Console

import cndpm.cli.commands as commands
import cndpm.cli.show as printing
from cndpm import datasets, engines, experiments, paper, reports
from cndpm.cli import exit_code
from cndpm.cli.options import chosen_engine
from cndpm.cli.show import show
from cndpm.datasets import Check
from cndpm.engines import local
from cndpm.experiments import RecordError, sweep
from cndpm.experiments.printed_tables import FoldingTable
from cndpm.experiments.workers import RunsFailedError
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError

RESULT = {"learner": "finetune", "preset": "default", "runs": [{"folder": "there/seed-0"}], "standard_error": {}}


@pytest.fixture
def heard(monkeypatch):
    """Has a function of a module note what it is called with, and return something instead."""

    def hear(module, name, answer):
        calls = []

        def note(*arguments, **options):
            calls.append((arguments, options))
            return answer

        monkeypatch.setattr(module, name, note)
        return calls

    return hear


@pytest.fixture
def quiet(heard):
    """No table and no report; the titles of tables that there would be."""
    heard(commands, "leave_report", None)
    return heard(printing, "show_results", None)


STREAM = ("--epochs", "2", "--repeats", "3", "--fraction", "0.5", "--prequential", "--validate", "--device", "cpu")
KEPT = ("--seed", "3", "--seeds", "2", "--data-dir", "data", "--resume", "--jobs", "2", "--quiet", "--out", "there")


def test_everything_said_to_run_reaches_its_runs(cndpm, heard, quiet):
    runs = heard(experiments, "run_seeds", RESULT)
    overrides = ("--set", "learner.memory_size=7", "--set", "run.evaluations=1")
    assert cndpm("run", "split-digits", "--learner", "reservoir", *overrides, *STREAM, *KEPT).code == 0
    (((config, seeds, folder), options),) = runs
    assert (config.scenario.name, config.learner, config.device) == ("split-digits", "reservoir", "cpu")
    assert (config.settings.memory_size, config.run.evaluations, config.run.prequential) == (7, 1, True)
    assert (config.scenario.validation, len(config.scenario.stages)) == (True, 15)
    assert (list(seeds), folder) == ([3, 4], "there")
    assert (options["data_dir"], options["resume"], options["jobs"]) == ("data", True, 2)
    assert options["engine"] != "local"
    assert options["command"].startswith("cndpm run split-digits --learner reservoir --set learner.memory_size=7")
    (((_, title, _), _),) = quiet
    assert title == "split-digits (validation: a tenth of the training data held out): records in there"


def test_a_plain_run_takes_place_in_this_process(cndpm, heard, quiet):
    runs = heard(experiments, "run_seeds", RESULT)
    assert cndpm("run", "split-digits", "--device", "cpu", "--quiet").code == 0
    (((config, seeds, folder), options),) = runs
    assert (config.learner, config.seed, list(seeds)) == ("cndpm", 0, [0])
    assert str(folder) == "runs/split-digits-cndpm"
    assert (options["engine"], options["jobs"], options["resume"]) == ("local", 1, False)
    assert quiet[0][0][1] == f"split-digits: records in {folder}"


def test_a_run_that_is_resumed_goes_on_in_its_latest_folder(cndpm, heard, quiet):
    runs = heard(experiments, "run_seeds", RESULT)
    latest = heard(experiments.sweep, "latest_folder", "runs/split-digits-cndpm-7")
    assert cndpm("run", "split-digits", "--device", "cpu", "--quiet", "--resume").code == 0
    assert runs[0][0][2] == "runs/split-digits-cndpm-7" and latest[0][0][1] == "split-digits-cndpm"


def test_everything_said_to_compare_reaches_its_runs(cndpm, heard, quiet):
    comparison = {"scenario": "split-digits", "folder": "there", "learners": [RESULT]}
    runs = heard(experiments, "compare_learners", comparison)
    learners = ("--learners", "finetune, reservoir", "--preset", "paper", "--set", "learner.hidden=7")
    assert cndpm("compare", "split-digits", *learners, *STREAM, *KEPT).code == 0
    ((arguments, options),) = runs
    assert arguments == ("split-digits", ["finetune", "reservoir"], "there")
    assert list(options["seeds"]) == [3, 4]
    told = {"preset": "paper", "device": "cpu", "overrides": ["learner.hidden=7"], "data_dir": "data", "resume": True}
    told |= {"jobs": 2, "epochs": 2.0, "repeats": 3, "fraction": 0.5, "prequential": True, "validation": True}
    assert {name: options[name] for name in told} == told
    assert options["command"].startswith("cndpm compare split-digits")


def test_everything_said_to_reproduce_reaches_the_experiment(cndpm, heard, monkeypatch):
    summary = {"title": "T", "metrics": ["accuracy"], "cells": []}
    runs = heard(paper, "reproduce", summary)
    left = heard(commands, "leave_report", None)
    said = ("--only", "cndpm, finetune", "--preset", "fast", "--seed", "3", "--seeds", "2", "--set", "learner.hidden=7")
    assert cndpm("reproduce", "fuzzy", *said, "--device", "cpu", "--quiet", "--out", "there").code == 0
    ((arguments, options),) = runs
    assert arguments == ("fuzzy", "there")
    told = {"n_seeds": 2, "seed": 3, "preset": "fast", "device": "cpu", "overrides": ["learner.hidden=7"]}
    told |= {"only": ["cndpm", "finetune"], "jobs": 1, "engine": "local"}
    assert {name: options[name] for name in told} == told
    assert options["command"].startswith("cndpm reproduce fuzzy")
    ((arguments, options),) = left
    assert (arguments[1:], options["only"], options["n_seeds"]) == (("there/fuzzy/report", "fuzzy"), told["only"], 2)


def test_everything_said_to_sweep_reaches_its_runs_and_their_engine(cndpm, heard, monkeypatch):
    Path("mine.toml").write_text('scenarios = ["split-digits"]\nlearners = ["finetune"]\n')
    runs = heard(sweep, "run_sweep", [{**RESULT, "runs": [{"folder": "there/a/seed-0"}]}])
    heard(reports, "write_report", None)
    monkeypatch.setattr("cndpm.cli.commands.leave_report", lambda *_, **__: None)
    made = []

    class Engine:
        def close(self):
            made.append("closed")

    monkeypatch.setattr(local, "make_engine", lambda *said, **more: made.append((said, more)) or Engine())
    said = ("--workers", "3", "--gpus", "0.25", "--retries", "5", "--address", "here", "--engine", "ray")
    assert cndpm("sweep", "mine.toml", *said, "--device", "cpu", "--out", "there", "--quiet").code == 0
    assert made == [(("ray", 3), {"address": "here", "n_gpus": 0.25, "retries": 5}), "closed"]
    ((arguments, options),) = runs
    assert arguments[1] == "there"
    assert (options["jobs"], options["device"]) == (3, "cpu") and isinstance(options["engine"], Engine)


@pytest.fixture
def fitted(heard):
    class Fitted:
        n_experts_ = 1

        class learner_:
            class events:
                n_samples = 4

        def save(self, path):
            Path(path).write_text("saved")

    return heard(engines, "fit_sharded", Fitted())


def test_everything_said_to_fit_reaches_the_model_and_its_shards(cndpm, fitted):
    Path("rows.csv").write_text("a,b,y\n" + "".join(f"{i},{i},{i / 2}\n" for i in range(600)))
    said = ("--kind", "regressor", "--target", "y", "--set", "memory_size=30", "--set", "n_fourier=7")
    how = ("--seed", "5", "--shards", "3", "--workers", "2", "--folder", "kept")
    assert cndpm("fit", "rows.csv", "-o", "model", *said, *how).code == 0
    (((model, parts), options),) = fitted
    assert (type(model).__name__, model.random_state, model.memory_size) == ("CNDPMRegressor", 5, 30)
    assert model.settings == {"n_fourier": 7}
    assert len(parts) == 3 and all(part.as_numbers for part in parts)
    assert (options["workers"], options["folder"], options["engine"]) == (2, Path("kept"), "local")
    assert Path("model").read_text() == "saved"


def test_rows_without_a_target_make_a_density_and_images_are_shares_of_white(cndpm, fitted):
    Path("rows.csv").write_text("a,b\n" + "1,2\n" * 600)
    assert cndpm("fit", "rows.csv", "-o", "model").code == 0
    assert cndpm("fit", "digits", "-o", "model").code == 0
    (((density, parts), options), ((classifier, images), _)) = fitted
    assert type(density).__name__ == "CNDPMDensity" and len(parts) == 2 and options["folder"] == Path("model.shards")
    assert (type(classifier).__name__, classifier.input_shape) == ("CNDPMClassifier", (1, 8, 8))
    x, _ = next(images[0].pieces(500))
    assert 0.9 < float(x.max()) <= 1


def test_all_formats_are_those_that_there_are(cndpm, heard):
    written = heard(reports, "write_report", None)
    with pytest.raises(AttributeError):  # of the report that there is not
        cndpm("report", ".", "--format", "all", "--seeds", "4", "--preset", "fast")
    ((_, options),) = written
    assert options["formats"] == ["html", "md", "csv", "tex", "png", "pdf", "svg"]
    assert (options["n_seeds"], options["preset"]) == (4, "fast")


def test_one_local_worker_needs_no_engine_and_several_do():
    with chosen_engine("local", 1) as engine:
        assert engine == "local"
    with chosen_engine("local", 2) as engine:
        assert engine != "local"


def test_a_mistyped_dataset_is_told_before_the_first_is_fetched(cndpm, heard):
    fetched = heard(datasets, "fetch_dataset", "somewhere")
    assert cndpm("data", "fetch", "mnist", "minst").code == 2
    assert fetched == []


def test_one_check_that_fails_among_others_ends_with_1(cndpm, heard):
    heard(datasets, "verify_dataset", (Check("a", True, "right"), Check("b", False, "wrong")))
    assert cndpm("data", "verify", "mnist").code == 1


def test_presets_are_told_in_words(cndpm):
    assert "all others" in cndpm("list", "presets").out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (UnknownNameError("a", "b", ["c"]), 2),
        (RecordError("x"), 1),
        (RunsFailedError({Path("a"): RecordError("x")}, 2), 1),
        (RunsFailedError({Path("a"): RecordError("x"), Path("b"): ZeroDivisionError()}, 2), None),
        (ZeroDivisionError(), None),
    ],
)
def test_mistakes_end_with_2_failures_with_1_and_bugs_with_their_traceback(error, code):
    assert exit_code(error) == code


def test_a_bug_is_raised_and_a_failure_is_one_line(cndpm, monkeypatch):
    def raise_it(error):
        def run(*_, **__):
            raise error

        monkeypatch.setattr(experiments, "run_seeds", run)

    raise_it(RecordError("the disk is full"))
    outcome = cndpm("run", "split-digits", "--device", "cpu", "--quiet")
    assert (outcome.code, outcome.err) == (1, "cndpm: error: the disk is full\n")
    raise_it(KeyboardInterrupt())
    outcome = cndpm("run", "split-digits", "--device", "cpu", "--quiet")
    assert outcome.code == 130 and "the same command with --resume goes on" in outcome.err
    raise_it(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cndpm("run", "split-digits", "--device", "cpu", "--quiet")


def test_json_is_one_line_apart_from_the_tables_which_are_not_wrapped_in_a_file(capfd):
    words = [f"word{i:03}" for i in range(20)]
    for as_json in (True, False):
        show({"a": [1, 2]}, [FoldingTable("", ["name", *words], [["row", *words]])], as_json=as_json)
        out, err = capfd.readouterr()
        assert " ".join(words) in " ".join((err if as_json else out).split())
        assert any(all(word in line for word in words) for line in (err if as_json else out).splitlines())
        assert (out == '{"a": [1, 2]}\n') if as_json else (err == "")
    assert not Console().is_terminal


def test_monitors_and_learners_of_the_current_folder_are_found_and_told(cndpm, heard, quiet, monkeypatch):
    monkeypatch.setattr("sys.path", [path for path in __import__("sys").path if path])
    Path("my_own_monitor.py").write_text(
        "from cndpm.experiments import Monitor\n\n\nclass Mine(Monitor):\n"
        "    def __init__(self, folder):\n        self.folder = folder\n"
    )
    runs = heard(experiments, "run_seeds", RESULT)
    assert cndpm("run", "split-digits", "--device", "cpu", "--quiet", "--monitor", "my_own_monitor:Mine").code == 0
    (monitor,) = runs[0][1]["monitor_of"](Path("there")).monitors
    assert (type(monitor).__name__, monitor.folder) == ("Mine", Path("there"))
