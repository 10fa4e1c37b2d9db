from pathlib import Path

import numpy as np
import pytest

from cndpm.datasets import DamagedFileError, load_dataset
from cndpm.datasets.pickles import read_cifar
from published_files import cifar_arrays


def test_the_python_version_keeps_channels_rows_and_columns_apart(data_dir: Path):
    images, labels = read_cifar([data_dir / "cifar-10-batches-py" / f"data_batch_{i}" for i in range(1, 6)])
    expected, expected_labels = cifar_arrays(12, 10, 0)
    np.testing.assert_array_equal(images.reshape(120, 3072), expected)
    np.testing.assert_array_equal(labels, expected_labels)
    assert images.shape == (120, 3, 32, 32)
    assert images[7, 2, 3, 4] == expected[7, 2 * 1024 + 3 * 32 + 4]


def test_cifar100_has_its_fine_labels(data_dir: Path):
    assert load_dataset("cifar100", data_dir).train.y[:100].tolist() == list(range(100))


def test_a_pickle_without_labels_is_refused_by_name(tmp_path: Path):
    import pickle

    (tmp_path / "batch").write_bytes(pickle.dumps({b"data": np.zeros((2, 3072), np.uint8)}))
    with pytest.raises(DamagedFileError, match="batch should hold"):
        read_cifar([tmp_path / "batch"])


IMAGES = np.zeros((2, 3072), np.uint8)


@pytest.mark.parametrize(
    "batch",
    [
        [],
        {b"data": IMAGES},
        {b"data": IMAGES, b"labels": [1]},
        {b"data": IMAGES, b"labels": [1, -1]},
        {b"data": IMAGES, b"labels": [1, 2.0]},
        {b"data": IMAGES, b"labels": [1, True]},
        {b"data": IMAGES, b"labels": [[1], [2]]},
        {b"data": IMAGES, b"labels": [1, 1 << 70]},
        {b"data": IMAGES, b"labels": "ab"},
        {b"data": IMAGES.astype(np.float32), b"labels": [1, 2]},
        {b"data": IMAGES[:, :-1], b"labels": [1, 2]},
        {b"data": IMAGES.reshape(-1), b"labels": [1, 2]},
        {b"data": IMAGES[:0], b"labels": []},
        {b"data": IMAGES.tolist(), b"labels": [1, 2]},
        {b"data": IMAGES, b"coarse_labels": [1, 2]},
    ],
)
def test_a_pickle_of_other_things_is_refused_by_name(tmp_path: Path, batch):
    import pickle

    (tmp_path / "batch").write_bytes(pickle.dumps(batch, protocol=2))
    with pytest.raises(DamagedFileError, match=r"batch should hold 'data' .* Get the file anew"):
        read_cifar([tmp_path / "batch"])


def test_labels_of_many_dimensions_are_refused_without_being_followed(tmp_path: Path):
    labels = [1] * 10
    for _ in range(40):
        labels = [labels] * 10  # 10 ** 41 numbers, in 400 references
    import pickle

    (tmp_path / "batch").write_bytes(pickle.dumps({b"data": IMAGES, b"labels": labels}, protocol=2))
    with pytest.raises(DamagedFileError, match="of other types"):
        read_cifar([tmp_path / "batch"])
