import hashlib
import os
import shutil
import struct
from pathlib import Path

import pytest
import torch

from cndpm.datasets import MissingDataError, Split, dataset_names, dataset_status, load_dataset, verify_dataset
from cndpm.datasets.inventory import sha256_of


def test_status_tells_present_from_absent(data_dir: Path):
    status = {entry.name: entry for entry in dataset_status(data_dir)}
    assert tuple(status) == dataset_names()
    assert status["mnist"].present and status["mnist"].location == data_dir / "MNIST" / "raw"
    assert status["mnist"].n_bytes == sum(file.stat().st_size for file in status["mnist"].location.iterdir())
    assert not status["kmnist"].present and status["kmnist"].location is None
    assert status["digits"].present


def test_verifying_notices_other_content_and_fewer_samples(data_dir: Path):
    checks = verify_dataset("mnist", data_dir)
    failed = [check.what for check in checks if not check.ok]
    assert [what for what in failed if what.startswith("sha256")] and "training samples" in failed
    assert "120 of 60000 published" in [check.found for check in checks]


def test_verifying_a_damaged_file_says_so_instead_of_raising(data_dir: Path, tmp_path: Path):
    shutil.copytree(data_dir / "cifar-10-batches-py", tmp_path / "cifar-10-batches-py")
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(b"garbage")
    (check,) = verify_dataset("cifar10", tmp_path)
    assert not check.ok and "test_batch" in check.found


def test_verifying_what_is_complete_finds_nothing_wrong():
    assert all(check.ok for check in verify_dataset("digits"))


def test_verifying_what_is_absent_says_how_to_get_it(tmp_path: Path):
    with pytest.raises(MissingDataError, match="cndpm data fetch kmnist"):
        verify_dataset("kmnist", tmp_path)


def test_the_checksum_of_samples_is_of_pixels_labels_and_their_order():
    x, y = torch.arange(12, dtype=torch.uint8).reshape(3, 1, 2, 2), torch.tensor([0, 1, 1])
    expected = hashlib.sha256(bytes(range(12)) + struct.pack("<3q", 0, 1, 1)).hexdigest()
    assert sha256_of(Split(x, y)) == expected
    assert sha256_of(Split(x.flip(0), y)) != expected
    assert sha256_of(Split(x, 1 - y)) != expected
    assert sha256_of(Split(x.transpose(2, 3).contiguous().transpose(2, 3), y)) == expected  # not of the memory's layout


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10", "cifar100", "digits"])
def test_samples_are_compared_by_checksum_where_they_were_hashed(data_dir: Path, name):
    checks = {check.what: check for check in verify_dataset(name, data_dir)}
    for part in ("train", "test"):
        assert checks[f"sha256 of the {part} set"].ok == (name == "digits")  # the fixture's are not the published ones


def test_one_other_pixel_is_noticed(data_dir: Path, monkeypatch):
    digits = load_dataset("digits")
    digits.train.x[700, 0, 3, 3] += 1
    monkeypatch.setattr("cndpm.datasets.inventory.load_dataset", lambda *_: digits)
    assert [check.what for check in verify_dataset("digits") if not check.ok] == ["sha256 of the train set"]


@pytest.mark.slow
@pytest.mark.skipif("CNDPM_DATA" not in os.environ, reason="needs the published datasets")
def test_the_published_datasets_are_right():
    for status in dataset_status():
        if status.present and status.checksums:
            assert [check for check in verify_dataset(status.name) if not check.ok] == []
