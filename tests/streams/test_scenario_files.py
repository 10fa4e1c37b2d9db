from pathlib import Path

import numpy as np
import pytest

from cndpm.names import UnknownNameError
from cndpm.streams import ScenarioFileError, load_scenario
from cndpm.validation import ConfigError

TOML = """
summary = "two pairs"
batch_size = 5

[transform]
binarise = true

[[stages]]
epochs = 2
subsets = [{dataset = "digits", classes = [0, 1]}, {dataset = "digits", classes = [2], weight = 1.0}]
"""

EPISODE = """
- subsets: [['mnist', 0], ['mnist', 1]]
  epochs: 1
- subsets: [['mnist', 2], ['mnist', 3]]
  steps: 40
- subsets: [['mnist', 4]]
  samples: 77
"""


def write(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_toml_file_holds_the_fields_of_a_scenario(tmp_path: Path):
    path = write(tmp_path, "own.toml", TOML.replace(", weight = 1.0", ""))
    scenario = load_scenario(str(path), epochs=3)
    assert (scenario.name, scenario.batch_size, scenario.stages[0].epochs) == ("own", 5, 3)
    assert [subset.classes for subset in scenario.stages[0].subsets] == [(0, 1), (2,)]
    assert scenario.transform.binarise


def test_an_episode_file_of_the_release_is_read_as_it_is(tmp_path: Path, data_dir: Path):
    scenario = load_scenario(write(tmp_path, "episode.yaml", EPISODE))
    assert [stage.subsets[0].classes for stage in scenario.stages] == [(0, 1), (2, 3), (4,)]
    assert (scenario.stages[0].epochs, scenario.stages[1].steps, scenario.stages[2].samples) == (1, 40, 77)
    stream = scenario.build(data_dir=data_dir)
    assert stream.stage_samples == (24, 400, 77) and len(stream.tasks) == 3  # type: ignore[attr-defined]


def test_an_episode_of_grey_and_colour_images_gets_one_shape(tmp_path: Path, data_dir: Path):
    text = "- subsets: [[mnist, 0], [mnist, 1]]\n  epochs: 1\n- subsets: [[svhn, 0], [svhn, 1]]\n  epochs: 1\n"
    stream = load_scenario(write(tmp_path, "episode.yml", text)).build(data_dir=data_dir)
    assert stream.input_shape == (3, 32, 32) and [task.classes for task in stream.tasks] == [(0, 1), (0, 1)]


def test_a_dataset_beside_the_file_is_found(tmp_path: Path):
    np.savez(tmp_path / "rows.npz", x=np.zeros((10, 2)), y=np.arange(10) % 2)
    path = write(tmp_path, "own.toml", '[[stages]]\nepochs = 1\nsubsets = [{dataset = "rows.npz"}]')
    assert load_scenario(path).build(data_dir=tmp_path / "elsewhere").n_samples == 8  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[[stages]]\nepochs = 1\nsubsets = [{dataset = "digits", clases = [1]}]',
            r"field in scenario\.stages\.0\.subsets\.0 called 'clases'. Did you mean classes",
        ),
        (
            '[[stages]]\nepochs = 1\nlenght = 2\nsubsets = [{dataset = "digits"}]',
            r"field in scenario\.stages\.0 called 'lenght'",
        ),
        ('bach_size = 3\n[[stages]]\nepochs = 1\nsubsets = [{dataset = "digits"}]', "'bach_size'.*batch_size"),
        ("[[stages]]\nepochs = 1\nsubsets = []", "stages.0.subsets"),
        ('[[stages]]\nepochs = 1\nsubsets = [{dataset = "digits", classes = []}]', "stages.0.subsets.0.classes"),
        ('[[stages]]\nsubsets = [{dataset = "digits"}]', "stages.0.*one of epochs, samples or steps"),
        ("stages = []", "stages"),
        (TOML, "stages.0.*1 of 2 do"),
        ("stages = [", "not readable"),
        ("name = 3", "name"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(tmp_path: Path, text, message):
    with pytest.raises(ScenarioFileError, match=rf"own\.toml.*{message}"):
        load_scenario(write(tmp_path, "own.toml", text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- subsets: []\n  epochs: 1\n", "stages.0.subsets"),
        ("- subsets: [[mnist, 0]]\n  epoch: 1\n", "'epoch'.*epochs"),
        ("- subsets: [[mnist]]\n  epochs: 1\n", "stages.0.subsets.0"),
        ("- subsets: [[mnist, -1]]\n  epochs: 1\n", "classes.0: .*a class is a label .* or the name .* got -1"),
        ("- subsets: [[mnist, true]]\n  epochs: 1\n", "classes.0: .*got True"),
        ("- subsets:\n  epochs: 1\n", "stages.0.subsets"),
        ("- subsets: [{dataset: mnist, classes: 3}, [mnist, 1]]\n  epochs: 1\n", "stages.0.subsets.0.classes"),
        ("- 3\n", "stages.0"),
        ("hello", "got str"),
        ("[", "not readable"),
    ],
)
def test_a_mistake_in_an_episode_is_named_with_its_place(tmp_path: Path, text, message):
    with pytest.raises(ScenarioFileError, match=rf"(?s)own\.yaml.*{message}"):
        load_scenario(write(tmp_path, "own.yaml", text))


def test_yaml_cannot_make_objects(tmp_path: Path):
    with pytest.raises(ScenarioFileError, match="not readable"):
        load_scenario(write(tmp_path, "own.yaml", "!!python/object/apply:os.getcwd []"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(ScenarioFileError, match=r"no scenario file at .*none\.toml"):
        load_scenario(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("split-minst", "split-mnist"), ("iid-split-mnits", "iid-split-mnist"), ("idd-split-digits", "iid-split-digits")],
)
def test_an_unknown_scenario_suggests_the_nearest(name, nearest):
    with pytest.raises(UnknownNameError) as raised:
        load_scenario(name)
    assert nearest in raised.value.suggestions


NOT_READABLE = {
    "a.toml": ("a = " + "[" * 5000, "nested too deeply"),
    "a.yaml": ("[" * 5000, "nested too deeply"),
    "b.yaml": ("a: [\n  b\nc: d", "is not readable: while parsing"),
    "b.toml": ("x" * (1 << 21), "larger than 1048576 bytes"),
    "c.toml": ("a = " + "9" * 5000, "is not readable"),
}


@pytest.mark.parametrize("name", NOT_READABLE)
def test_a_hostile_file_is_refused_in_one_line(tmp_path: Path, name):
    text, message = NOT_READABLE[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(ScenarioFileError, match=message) as refused:
        load_scenario(tmp_path / name)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_a_dataset_whose_name_is_too_long_for_a_file_is_not_known(tmp_path: Path):
    (tmp_path / "a.yaml").write_text(f"- epochs: 1\n  subsets: [[{'digits' * 100}, 0]]")
    with pytest.raises(UnknownNameError, match="there is no dataset"):
        load_scenario(tmp_path / "a.yaml").build()


def test_a_folder_with_the_name_of_a_file_is_refused(tmp_path: Path):
    (tmp_path / "a.toml").mkdir()
    with pytest.raises(ScenarioFileError, match=r"not readable: .*directory"):
        load_scenario(tmp_path / "a.toml")


def test_a_number_is_taken_where_a_name_is_wanted(tmp_path: Path):
    (tmp_path / "a.toml").write_text('name = 2024\n[[stages]]\nepochs = 1\nsubsets = [{dataset = "digits", task = 7}]')
    scenario = load_scenario(tmp_path / "a.toml")
    assert (scenario.name, scenario.stages[0].subsets[0].task) == ("2024", "7")


def test_wrong_items_are_told_without_what_follows_from_them():
    with pytest.raises(ConfigError) as refused:
        load_scenario("split-digits", fraction=2, batch_size="many")
    assert str(refused.value) == (
        "scenario.batch_size: Input should be a valid integer, unable to parse string as an integer; got 'many'"
    )
    with pytest.raises(
        ConfigError, match=r"^scenario.repeats: Input should be less than or equal to 10000; got 1000000000$"
    ):
        load_scenario("split-digits", repeats=10**9)


@pytest.mark.parametrize("epochs", [1e9, 1e300])
def test_a_scenario_that_could_not_finish_is_refused_before_it_is_planned(epochs):
    with pytest.raises(ConfigError, match="samples, whose order is drawn before it begins; at most 100,000,000"):
        load_scenario("split-digits", epochs=epochs).build()


def test_a_table_as_a_scenario_is_answered_with_what_to_do_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cars.csv").write_text("weight,kind\n1,van\n")
    with pytest.raises(ScenarioFileError, match=r"cars\.csv is a table; .*cndpm fit cars\.csv --target"):
        load_scenario("cars.csv")
    with pytest.raises(UnknownNameError, match=r"there is no scenario 'absent\.csv'"):
        load_scenario("absent.csv")


def test_a_folder_in_the_place_of_a_scenario_is_answered_with_how_to_write_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "animals").mkdir()
    with pytest.raises(ScenarioFileError, match=r'animals holds data; .* dataset = "animals"'):
        load_scenario("animals")
    (tmp_path / "animals.toml").write_text("")
    with pytest.raises(UnknownNameError, match=r"no scenario 'animals'\. Did you mean animals\.toml\?"):
        load_scenario("animals")


def test_a_name_that_resembles_none_is_answered_with_the_scenarios_and_not_with_all_their_variations():
    with pytest.raises(UnknownNameError) as refused:
        load_scenario("zzz")
    assert "split-digits" in str(refused.value) and "drift-flip" in str(refused.value)
    assert "iid-" not in str(refused.value)
    with pytest.raises(UnknownNameError, match=r"Did you mean .*iid-split-mnist"):
        load_scenario("iid-splitmnist")
