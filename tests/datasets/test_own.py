from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cndpm.datasets import DamagedFileError, Dataset, Split, load_dataset


def test_digits_keep_their_17_levels_and_are_split_by_class():
    digits = load_dataset("digits")
    assert len(digits.train) + len(digits.test) == 1797
    levels = torch.unique(digits.train.x)
    assert len(levels) == 17
    assert torch.allclose(levels / 255, torch.arange(17) / 16, atol=0.5 / 255)
    for label in range(10):
        n_train, n_test = ((split.y == label).sum().item() for split in (digits.train, digits.test))
        assert n_test == (n_train + n_test) // 5


def test_digits_are_the_same_every_time():
    first, second = load_dataset("digits"), load_dataset("digits")
    assert torch.equal(first.train.x, second.train.x) and torch.equal(first.test.y, second.test.y)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((20, 6, 5), (1, 6, 5)), ((20, 6, 5, 3), (3, 6, 5)), ((20, 3, 6, 5), (3, 6, 5)), ((20, 6, 5, 1), (1, 6, 5))],
)
def test_images_of_an_npz_become_channels_first(tmp_path: Path, shape, expected):
    x = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    np.savez(tmp_path / "own.npz", x=x, y=np.arange(20) % 2)
    dataset = load_dataset("own.npz", tmp_path)
    assert dataset.train.x.shape[1:] == expected and dataset.train.x.dtype == torch.uint8
    assert (len(dataset.train), len(dataset.test)) == (16, 4)


def test_features_of_an_npz_are_taken_as_they_are(tmp_path: Path):
    x = np.random.default_rng(0).normal(size=(9, 4))
    np.savez(tmp_path / "own.npz", x_train=x[:6], y_train=list("bacbac"), x_test=x[6:], y_test=list("abc"))
    dataset = load_dataset(str(tmp_path / "own.npz"))
    np.testing.assert_array_equal(dataset.train.x, x[:6].astype(np.float32))
    assert dataset.classes == ("a", "b", "c")
    assert dataset.train.y.tolist() == [1, 0, 2, 1, 0, 2] and dataset.test.y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("bits", [0x7FF0_0000_0000_0001, 0x7FF0_0000_0000_0000, 0x7FEF_FFFF_FFFF_FFFF])
def test_features_of_an_npz_that_32_bits_cannot_hold_are_refused_by_name(tmp_path: Path, bits):
    x = np.array([[bits]], dtype=np.uint64).view(np.float64)  # a NaN that signals, infinity, and the largest number
    np.savez(tmp_path / "own.npz", x_train=x, y_train=[0], x_test=x, y_test=[0])
    with pytest.raises(DamagedFileError, match=r"own\.npz should hold finite features"):
        load_dataset("own.npz", tmp_path)


def test_an_npz_without_the_expected_arrays_names_what_it_has(tmp_path: Path):
    np.savez(tmp_path / "own.npz", images=np.zeros(3))
    with pytest.raises(DamagedFileError, match="images"):
        load_dataset("own.npz", tmp_path)


def test_a_pickled_array_in_an_npz_is_refused(tmp_path: Path):
    np.savez(tmp_path / "own.npz", x=np.array([object()]), y=np.zeros(1))
    with pytest.raises(DamagedFileError, match="plain arrays"):
        load_dataset("own.npz", tmp_path)


def write_images(folder: Path, *, n: int = 5, size: tuple[int, int] = (4, 3), mode: str = "RGB") -> None:
    for value, name in enumerate(("cat", "dog")):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            Image.new(mode, size, 100 * value + i if mode == "L" else (100 * value, i, 0)).save(
                folder / name / f"{i}.png"
            )


def test_a_folder_of_images_is_split_where_it_has_no_test_set(tmp_path: Path):
    write_images(tmp_path / "pets")
    pets = load_dataset("pets", tmp_path)
    assert pets.classes == ("cat", "dog") and (len(pets.train), len(pets.test)) == (8, 2)
    assert pets.train.x.shape == (8, 3, 3, 4)
    assert (pets.train.x[:, 0, 0, 0] == 100 * pets.train.y).all()
    assert pets.train.x[:, 1, 0, 0].tolist() == [0, 1, 2, 3] * 2  # by the names of the files


def test_a_folder_with_train_and_test_keeps_them_apart(tmp_path: Path):
    write_images(tmp_path / "pets" / "train", n=3, mode="L")
    write_images(tmp_path / "pets" / "test", n=1, mode="L")
    pets = load_dataset("pets", tmp_path)
    assert (len(pets.train), len(pets.test)) == (6, 2) and pets.train.x.shape[1:] == (1, 3, 4)


def test_images_of_different_sizes_are_refused_by_name(tmp_path: Path):
    write_images(tmp_path / "pets")
    Image.new("RGB", (9, 9)).save(tmp_path / "pets" / "dog" / "large.png")
    with pytest.raises(DamagedFileError, match=r"large\.png"):
        load_dataset("pets", tmp_path)


def test_a_folder_without_images_is_refused(tmp_path: Path):
    (tmp_path / "pets" / "cat").mkdir(parents=True)
    with pytest.raises(DamagedFileError, match="no images"):
        load_dataset("pets", tmp_path)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_every_fifth_sample_of_each_class_is_held_out(tmp_path_factory, labels):
    folder = tmp_path_factory.mktemp("own")
    np.savez(folder / "own.npz", x=np.arange(len(labels), dtype=float)[:, None], y=labels)
    own = load_dataset("own.npz", folder)
    held = [i for label in set(labels) for i in [j for j, y in enumerate(labels) if y == label][4::5]]
    assert own.test.x.flatten().tolist() == sorted(held)
    assert own.train.x.flatten().tolist() == [i for i in range(len(labels)) if i not in held]


def test_labels_beyond_the_classes_and_samples_without_labels_are_refused():
    split = Split(torch.zeros(2, 3), torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="from 0 to 2; there are 2 classes"):
        Dataset("mine", split, split, ("a", "b"))
    for n in (1, 3):
        with pytest.raises(ValueError, match="one label per sample"):
            Split(torch.zeros(2, 3), torch.zeros(n, dtype=torch.long))
