"""Small datasets in the published formats, made once for all tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from published_files import N_TEST, N_TRAIN, write_cifar10, write_cifar100, write_idx_dataset
from scipy.io import savemat

settings.register_profile("no-deadline", deadline=None)  # examples touch files, whose speed is the machine's affair
settings.load_profile("no-deadline")


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    """MNIST, Fashion-MNIST, CIFAR10, CIFAR100 and SVHN with a few samples of every class."""
    root = tmp_path_factory.mktemp("data")
    write_idx_dataset(root / "MNIST" / "raw", seed=0)
    write_idx_dataset(root / "fashion-mnist", seed=1, zipped=False)
    write_idx_dataset(
        root / "EMNIST" / "raw",
        seed=2,
        prefixes=("emnist-letters-train", "emnist-letters-test"),
        n_classes=26,
        first_label=1,
    )
    write_cifar10(root / "cifar-10-batches-py")
    write_cifar100(root / "cifar-100-python")
    (root / "svhn").mkdir()
    for part, n in (("train", N_TRAIN), ("test", N_TEST)):
        labels = np.tile(np.arange(1, 11), n)
        images = np.random.default_rng(n).integers(256, size=(32, 32, 3, len(labels)), dtype=np.uint8)
        images[0, 0, 0] = labels
        savemat(root / "svhn" / f"{part}_32x32.mat", {"X": images, "y": labels[:, None]})
    return root
