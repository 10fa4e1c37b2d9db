from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from cndpm.datasets import DamagedFileError, load_dataset
from cndpm.datasets.svhn import read_svhn


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
