import shlex
from dataclasses import replace

import pytest

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


@pytest.mark.parametrize("options", ["--seeds 2", "--seeds 2 --out elsewhere --resume", "--out=elsewhere --seeds 2"])
def test_an_interrupted_run_is_resumed_where_it_lies(records, typed, options):
    resumed = resume_command(typed(f"cndpm run split-digits {options}"))
    assert resumed == f"cndpm run split-digits --seeds 2 --out {records / 'finetune'} --resume"


def test_a_comparison_is_resumed_in_the_folder_above_its_learners(records, typed):
    resumed = resume_command(typed("cndpm compare split-digits --learners finetune,reservoir"))
    assert resumed == f"cndpm compare split-digits --learners finetune,reservoir --out {records} --resume"


def test_a_reproduction_resumes_by_itself(typed):
    assert resume_command(typed("cndpm reproduce table1 --seeds 3")) == "cndpm reproduce table1 --seeds 3"


def test_other_seeds_are_run_beside_those_that_are_there(records, typed):
    made = seeds_command(typed("cndpm run split-digits --seed 1 --seeds=2 --epochs 2 --out x"), 4, 3)
    assert made == f"cndpm run split-digits --epochs 2 --seed 4 --seeds 3 --out {records / 'finetune'} --resume"
    again = seeds_command(typed("cndpm reproduce table1 --seeds 3 --out mine"), 3, 1)
    assert again == "cndpm reproduce table1 --out mine --seed 3 --seeds 1"


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
