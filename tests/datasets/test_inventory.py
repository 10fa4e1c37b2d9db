import shutil
from pathlib import Path

import pytest

from cndpm.datasets import MissingDataError, dataset_names, dataset_status, verify_dataset


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
