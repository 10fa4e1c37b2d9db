"""Classes of one's own data by their names, short names of tasks, and images of several sizes."""

import numpy as np
import pytest
import torch
from PIL import Image
from pydantic import ValidationError

from cndpm.datasets.files import MixedSizesError
from cndpm.names import UnknownNameError
from cndpm.streams import Scenario, Subset
from cndpm.streams.variations import imbalanced


@pytest.fixture
def animals(tmp_path):
    """Thirty grey images: class k of three is filled with the shade 80 k, their sizes differ."""
    for k, name in enumerate(("cat", "dog", "fox")):
        (tmp_path / "animals" / name).mkdir(parents=True)
        for i in range(10):
            pixels = np.full((8 + i % 3, 9), 80 * k, np.uint8)
            Image.fromarray(pixels).save(tmp_path / "animals" / name / f"{i}.png")
    return tmp_path


def scenario(*groups, size=6, dataset="animals"):
    stages = [{"subsets": [{"dataset": dataset, "classes": classes}], "epochs": 1} for classes in groups]
    return Scenario(name="mine", stages=stages, transform={"size": size})


def test_names_of_classes_mean_their_labels(animals):
    named, numbered = (
        scenario(*groups).build(data_dir=animals) for groups in ((["dog", "fox"], ["cat"]), ([1, 2], [0]))
    )
    for a, b in zip(named.batches(), numbered.batches(), strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.y, b.y)
    assert [task.classes for task in named.tasks] == [(1, 2), (0,)]
    assert [task.name for task in named.tasks] == ["animals dog/fox", "animals cat"]


def test_an_unknown_class_is_answered_with_the_nearest(animals):
    with pytest.raises(UnknownNameError, match=r"no class in animals called 'dgo'\. Did you mean dog"):
        scenario(["dgo"]).build(data_dir=animals)


def test_a_class_named_twice_is_refused(animals):
    with pytest.raises(ValueError, match="twice, by name and by label"):
        scenario(["dog", 1]).build(data_dir=animals)


def test_images_of_several_sizes_are_resized_to_the_scenario_s(animals):
    stream = scenario(["cat"], ["dog"], size=6).build(data_dir=animals)
    assert stream.input_shape == (1, 6, 6)
    shades = torch.cat([batch.x.flatten() for batch in stream.batches()]).unique()
    assert shades.tolist() == pytest.approx([0.0, 80 / 255])


def test_images_of_several_sizes_without_one_say_where_to_set_it(animals):
    with pytest.raises(MixedSizesError, match=r"transform = \{ size = 8 \}"):
        scenario(["cat"], size=None).build(data_dir=animals)


@pytest.mark.parametrize(
    ("dataset", "name"), [("/a/long/path/pets", "pets 0"), ("data/cars.npz", "cars 0"), ("mnist", "mnist 0")]
)
def test_a_task_is_called_by_what_its_path_leads_to(dataset, name):
    assert Subset(dataset=dataset, classes=(0,)).task_name == name


def test_two_folders_of_one_name_need_names_for_their_tasks():
    both = [{"subsets": [{"dataset": folder, "classes": [0]}], "epochs": 1} for folder in ("a/pets", "b/pets")]
    with pytest.raises(ValidationError, match="a/pets and b/pets would both be the task 'pets 0'"):
        Scenario(name="two", stages=both)
    both[0]["subsets"][0]["task"] = "other pets"
    assert len(Scenario(name="two", stages=both).stages) == 2


def test_names_and_numbers_of_classes_can_be_thinned_together():
    thinned = imbalanced(scenario([1], ["cat", "dog"]), ratio=4.0)
    fractions = {s.classes[0]: s.fraction for stage in thinned.stages for s in stage.subsets}
    assert fractions == {1: 1.0, "cat": pytest.approx(0.5), "dog": pytest.approx(0.25)}
