import pytest

from cndpm.experiments import read_record
from cndpm.experiments.sweep import Sweep, SweepSettings, read_sweep, run_sweep
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError

FILE = """
scenarios = ["split-digits"]
learners = ["slda", "reservoir"]
seeds = [0, 3]
set = ["run.max_batches=6", "run.evaluations=1"]

[[settings]]

[[settings]]
name = "small"
learners = ["reservoir"]
set = ["learner.memory_size=20"]
"""
AS_YAML = """
scenarios: [split-digits]
learners: [slda, reservoir]
seeds: [0, 3]
set: [run.max_batches=6, run.evaluations=1]
settings:
- {}
- {name: small, learners: [reservoir], set: [learner.memory_size=20]}
"""


@pytest.fixture
def sweep(tmp_path):
    (tmp_path / "mine.toml").write_text(FILE)
    return read_sweep(tmp_path / "mine.toml")


def test_everything_is_crossed_and_every_run_has_a_folder_of_its_own(sweep):
    configs = {str(folder): config for folder, config in sweep.configs().items()}
    assert list(configs) == ["split-digits/slda", "split-digits/reservoir", "split-digits/reservoir-small"]
    assert [config.settings.memory_size for name, config in configs.items() if "reservoir" in name] == [500, 20]
    assert all(config.run.max_batches == 6 for config in configs.values())
    assert sweep.all_seeds == (0, 3)


def test_yaml_says_the_same(sweep, tmp_path):
    (tmp_path / "mine.yaml").write_text(AS_YAML)
    assert read_sweep(tmp_path / "mine.yaml") == sweep


def test_a_sweep_leaves_records_and_does_not_repeat_them(sweep, tmp_path):
    results = run_sweep(sweep, tmp_path / "out", device="cpu")
    assert [(result["learner"], len(result["runs"])) for result in results] == [
        ("slda", 2),
        ("reservoir", 2),
        ("reservoir", 2),
    ]
    records = sorted((tmp_path / "out").glob("*/*/seed-*"))
    assert len(records) == 6 and all(read_record(folder).status == "complete" for folder in records)
    asked = []
    assert run_sweep(sweep, tmp_path / "out", device="cpu", monitor_of=asked.append) == results


def test_scenarios_beside_the_file_are_found(tmp_path):
    text = 'name = "mine"\n[[stages]]\nsubsets = [["digits", 0], ["digits", 1]]\nepochs = 1\n'
    (tmp_path / "mine-scenario.toml").write_text(text)
    sweep = Sweep(scenarios=["mine-scenario.toml"], learners=["slda"])
    assert [str(folder) for folder in sweep.configs(beside=tmp_path)] == ["mine/slda"]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("scenarios = []", ConfigError, "scenarios"),
        ("learners = ['slda']", ConfigError, "scenarios"),
        ("scenarios = ['split-digits']\nseed = 3", UnknownNameError, "Did you mean seeds"),
        ("scenarios = ['split-digits']\nseeds = 0", ConfigError, "seeds"),
        ("scenarios = [", ConfigError, "cannot read"),
    ],
)
def test_mistakes_are_named(text, error, words, tmp_path):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(error, match=words):
        read_sweep(tmp_path / "mine.toml")


def test_settings_are_for_learners_of_the_sweep_and_have_names(tmp_path):
    for settings, words in {
        (SweepSettings(name="x", learners=("gem",)),): "settings 'x' are for gem",
        (SweepSettings(name="x"), SweepSettings(name="x")): "has split-digits/slda-x twice",
    }.items():
        with pytest.raises(ConfigError, match=words):
            Sweep(scenarios=["split-digits"], learners=["slda"], settings=settings).configs()
    with pytest.raises(ConfigError, match=r"ends with \.toml"):
        read_sweep(tmp_path / "mine.json")
