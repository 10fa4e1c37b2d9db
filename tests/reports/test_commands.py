import shlex
from dataclasses import replace

import pytest

from cndpm.experiments import configure
from cndpm.reports.commands import repeat_command, resume_command, run_command
from cndpm.reports.run import Run


def resolve(command):
    """What a command would run, by its own words."""
    words = shlex.split(command)
    assert words[:2] == ["cndpm", "run"]
    options = dict(zip(words[3::2], words[4::2], strict=True))
    overrides = [value for name, value in zip(words[3::2], words[4::2], strict=True) if name == "--set"]
    numbers = {name: float(options[f"--{name}"]) for name in ("epochs", "fraction") if f"--{name}" in options}
    if "--repeats" in options:
        numbers["repeats"] = int(options["--repeats"])
    return configure(
        words[2],
        learner=options["--learner"],
        preset=options["--preset"],
        seed=int(options.get("--seed", 0)),
        device="cpu",
        overrides=overrides,
        **numbers,
    )


@pytest.mark.parametrize(
    ("scenario", "options"),
    [
        ("split-digits", {}),
        ("split-digits", {"learner": "reservoir", "overrides": ["learner.memory_size=77"], "seed": 3}),
        ("split-mnist", {"preset": "paper", "epochs": 10, "overrides": ["learner.log_alpha=-600"]}),
        ("split-mnist", {"preset": "paper", "repeats": 10}),
        ("split-mnist", {"learner": "finetune", "fraction": 0.2, "overrides": ["run.evaluations=3"]}),
        ("fuzzy-split-mnist", {"preset": "paper", "overrides": ["learner.sharing=false", "run.max_batches=50"]}),
        ("split-digits", {"overrides": ["scenario.labelled=false", 'learner.target="none"']}),
        ("split-digits", {"overrides": ["scenario.batch_size=5", "scenario.label_noise=0.1"]}),
    ],
)
def test_the_command_resolves_to_the_configuration_it_stands_for(scenario, options):
    config = configure(scenario, device="cpu", **options)
    command = run_command(config.to_json(), config.seed)
    assert command is not None
    assert resolve(command) == config


def test_a_scenario_of_ones_own_is_repeated_from_its_record(records):
    run = Run(records / "finetune" / "seed-0")
    own = {**run.config["scenario"], "name": "my own stream"}
    mine = Run(replace(run.record, config={**run.config, "scenario": own}))
    assert run_command(mine.config, 0) is None
    assert repeat_command(mine).startswith("python -c")
    assert str(run.record.folder) in repeat_command(mine)


def test_an_interrupted_run_is_resumed_where_it_lies(records):
    command = resume_command(Run(records / "finetune" / "seed-1"))
    assert command.endswith(f"--seed 1 --out {records / 'finetune'} --resume")
