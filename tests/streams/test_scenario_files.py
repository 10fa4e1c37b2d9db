from pathlib import Path

import numpy as np
import pytest

from cndpm.names import UnknownNameError
from cndpm.streams import ScenarioFileError, load_scenario

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
    assert stream.stage_samples == (24, 400, 77) and len(stream.tasks) == 3


def test_an_episode_of_grey_and_colour_images_gets_one_shape(tmp_path: Path, data_dir: Path):
    text = "- subsets: [[mnist, 0], [mnist, 1]]\n  epochs: 1\n- subsets: [[svhn, 0], [svhn, 1]]\n  epochs: 1\n"
    stream = load_scenario(write(tmp_path, "episode.yml", text)).build(data_dir=data_dir)
    assert stream.input_shape == (3, 32, 32) and [task.classes for task in stream.tasks] == [(0, 1), (0, 1)]


def test_a_dataset_beside_the_file_is_found(tmp_path: Path):
    np.savez(tmp_path / "rows.npz", x=np.zeros((10, 2)), y=np.arange(10) % 2)
    path = write(tmp_path, "own.toml", '[[stages]]\nepochs = 1\nsubsets = [{dataset = "rows.npz"}]')
    assert load_scenario(path).build(data_dir=tmp_path / "elsewhere").n_samples == 8


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
