import shlex
from dataclasses import replace

import pytest

from cndpm.cli.commands import app
from cndpm.experiments import RunConfig
from cndpm.reports.run import Run
from cndpm.reports.stories import repeat_command, resume_command, seeds_command


@pytest.fixture
def typed(records):
    """Makes a run that a command line is said to have made."""

    def make(command):
        record = Run(records / "finetune" / "seed-1").record
        return Run(replace(record, environment=record.environment | {"command": command}))

    return make


def test_a_run_is_repeated_by_the_command_that_was_typed(typed):
    command = "cndpm run 'my scenario.toml' --learner mine:Mine --seeds 3"
    assert repeat_command(typed(command)) == command


@pytest.mark.parametrize("options", ["--seeds 2", "--seeds 2 --out elsewhere --resume"])
def test_an_interrupted_run_is_resumed_where_it_lies(records, typed, options):
    resumed = resume_command(typed(f"cndpm run split-digits {options}"))
    assert resumed == f"cndpm run split-digits {options} --out {records / 'finetune'} --resume"


def test_of_an_option_that_is_there_twice_the_last_one_counts(records, typed, monkeypatch):
    asked = {}
    monkeypatch.setattr(
        "cndpm.experiments.run_seeds", lambda _, seeds, out, **given: asked.update(given, out=out, seeds=seeds)
    )
    again = seeds_command(typed("cndpm run split-digits --seed 1 --seeds 2 --out elsewhere --resume"), 4, 3)
    with pytest.raises(AttributeError):  # there is no result to show
        app(shlex.split(again)[1:], standalone_mode=False)
    assert asked["out"] == str(records / "finetune") and asked["resume"] and list(asked["seeds"]) == [4, 5, 6]


def test_a_comparison_is_resumed_in_the_folder_above_its_learners(records, typed):
    resumed = resume_command(typed("cndpm compare split-digits --learners finetune,reservoir"))
    assert resumed == f"cndpm compare split-digits --learners finetune,reservoir --out {records} --resume"


@pytest.mark.parametrize("command", ["cndpm reproduce table1 --seeds 3", "cndpm sweep mine.toml", "make runs"])
def test_other_commands_are_repeated_as_they_are(typed, command):
    assert resume_command(typed(command)) == command


def test_other_seeds_are_run_beside_those_that_are_there(records, typed):
    made = seeds_command(typed("cndpm run split-digits --epochs 2"), 4, 3)
    assert made == f"cndpm run split-digits --epochs 2 --seed 4 --seeds 3 --out {records / 'finetune'} --resume"
    again = seeds_command(typed("cndpm reproduce table1 --out mine"), 3, 1)
    assert again == "cndpm reproduce table1 --out mine --seed 3 --seeds 1"
    assert seeds_command(typed("cndpm sweep mine.toml"), 3, 1) is None


def test_a_run_from_python_is_repeated_from_its_record(typed):
    run = typed(None)
    words = shlex.split(repeat_command(run))
    assert words[:2] == ["python", "-c"] and str(run.record.folder) in words[2]
    compile(words[2], "command", "exec")
    assert RunConfig.from_json(run.config).seed == 1
    assert f"{str(run.record.folder)!r}, resume=True" in resume_command(run)
    assert seeds_command(run, 2, 1) is None


def test_a_run_of_objects_is_repeated_by_the_call_that_made_it(typed):
    record = typed(None).record
    own = {**record.config, "learner": "mine:Mine", "preset": "own"}
    run = Run(replace(record, config=own))
    expected = f"run(learner, stream, {str(record.folder)!r}, resume=True)  # mine:Mine on split-digits"
    assert resume_command(run) == expected
