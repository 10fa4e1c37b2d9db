from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from cndpm.datasets import DamagedFileError, load_dataset
from cndpm.datasets.matlab import read_svhn


def test_the_digit_zero_is_label_zero(data_dir: Path):
    dataset = load_dataset("svhn", data_dir)
    published = dataset.train.x[:, 0, 0, 0]  # the fixture writes the published label there
    assert set(published.tolist()) == set(range(1, 11))
    assert (dataset.train.y == published % 10).all()


def test_images_are_read_channels_first(tmp_path: Path):
    images = np.random.default_rng(0).integers(256, size=(32, 32, 3, 5), dtype=np.uint8)
    savemat(tmp_path / "a.mat", {"X": images, "y": np.ones((5, 1), np.uint8)})
    read, _ = read_svhn([tmp_path / "a.mat"])
    assert read[4, 2, 7, 9] == images[7, 9, 2, 4]


def test_a_damaged_file_is_refused_by_name(tmp_path: Path):
    (tmp_path / "bad.mat").write_bytes(b"not a matlab file" * 20)
    with pytest.raises(DamagedFileError, match=r"bad\.mat"):
        read_svhn([tmp_path / "bad.mat"])


def test_labels_that_do_not_match_the_images_are_refused(tmp_path: Path):
    savemat(tmp_path / "a.mat", {"X": np.zeros((32, 32, 3, 5), np.uint8), "y": np.ones((4, 1))})
    with pytest.raises(DamagedFileError, match=r"\(32, 32, 3, 5\)"):
        read_svhn([tmp_path / "a.mat"])


@pytest.mark.parametrize("label", [0, 11, 20, -1, 2.5])
def test_labels_other_than_one_to_ten_are_refused(tmp_path: Path, label):
    savemat(tmp_path / "a.mat", {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[1], [label]])})
    with pytest.raises(DamagedFileError, match=r"a\.mat should have labels 1 to 10"):
        read_svhn([tmp_path / "a.mat"])


def test_labels_are_read_from_whatever_numbers_they_are_stored_as(tmp_path: Path):
    for kind in (np.uint8, np.int32, np.float64):
        savemat(tmp_path / "a.mat", {"X": np.zeros((2, 2, 3, 3), np.uint8), "y": np.array([[1], [10], [9]], kind)})
        assert read_svhn([tmp_path / "a.mat"])[1].tolist() == [1, 0, 9]


@pytest.mark.parametrize("shape", [(32, 32, 4, 5), (3, 32, 32, 5), (32, 32, 5), (32, 32, 3, 4)])
def test_images_of_another_shape_are_refused(tmp_path: Path, shape):
    savemat(tmp_path / "a.mat", {"X": np.zeros(shape, np.uint8), "y": np.ones((5, 1), np.uint8)})
    with pytest.raises(DamagedFileError, match=r"X \(H, W, 3, n\) of bytes"):
        read_svhn([tmp_path / "a.mat"])


def test_a_file_without_labels_says_what_it_has(tmp_path: Path):
    savemat(tmp_path / "a.mat", {"X": np.zeros((32, 32, 3, 5), np.uint8)})
    with pytest.raises(DamagedFileError, match=r"X and y; of these it has \['X'\]"):
        read_svhn([tmp_path / "a.mat"])
