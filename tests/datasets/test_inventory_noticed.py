"""A verified dataset has all its classes."""

from __future__ import annotations

from pathlib import Path

from cndpm.datasets import verify_dataset
from published_files import write_idx_dataset


def test_verifying_notices_a_class_without_training_samples(tmp_path: Path):
    write_idx_dataset(tmp_path / "MNIST" / "raw", seed=0, n_classes=9)
    (check,) = [check for check in verify_dataset("mnist", tmp_path) if check.what.startswith("classes")]
    assert not check.ok
    assert check.found == "9 of 10"
