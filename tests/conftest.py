"""Small streams that every room's tests use; one thread a process."""

import os
from collections.abc import Callable

# Before numpy and torch are imported, and for processes that tests start: two test processes share two cores, and
# threads of linear algebra would only wait for each other.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import hypothesis
import numpy as np
import pytest
import torch
from scipy.io import savemat
from torch import Tensor

from cndpm.model.settings import CNDPMSettings
from published_files import N_TEST, N_TRAIN, write_cifar10, write_cifar100, write_idx_dataset

# No deadlines: these machines are shared, and a slow moment is not a failure. The same examples every time, so that a
# change is what makes a test fail; `--hypothesis-profile search` looks for others.
PATIENT = hypothesis.settings(
    deadline=None, max_examples=40, suppress_health_check=[hypothesis.HealthCheck.too_slow], database=None
)
hypothesis.settings.register_profile("cndpm", PATIENT, derandomize=True)
hypothesis.settings.register_profile("search", PATIENT)
hypothesis.settings.load_profile("cndpm")

Batches = list[tuple[Tensor, Tensor]]


@pytest.fixture(scope="session")
def small_settings() -> Callable[..., CNDPMSettings]:
    """Settings under which a whole stream takes a second or two."""

    def make(**changes: object) -> CNDPMSettings:
        values: dict[str, object] = {
            "memory_size": 40,
            "log_alpha": -60.0,
            "hidden": 12,
            "hidden_growth": 6,
            "latent_dim": 3,
            "n_latent_samples": 4,
            "density_lr": 3e-3,
            "predictor_lr": 1e-2,
            "density_sleep_steps": 60,
            "predictor_sleep_steps": 60,
            "sleep_batch_size": 20,
        }
        return CNDPMSettings.paper(**{**values, **changes})

    return make


@pytest.fixture(scope="session")
def two_task_stream() -> Batches:
    """Two tasks of two classes each in [0, 1]^8, 12 batches of 10 a task."""
    generator = torch.Generator().manual_seed(3)
    batches: Batches = []
    for task in range(2):
        centres = torch.rand(2, 8, generator=generator)
        for _ in range(12):
            y = torch.randint(2, (10,), generator=generator)
            x = centres[y] + 0.05 * torch.randn(10, 8, generator=generator)
            batches.append((x.clamp(0, 1), y + 2 * task))
    return batches


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
