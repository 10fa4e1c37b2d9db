from pathlib import Path

import numpy as np
import pytest

from cndpm.datasets import DamagedFileError, load_dataset
from cndpm.datasets.cifar import read_cifar_binary, read_cifar_python
from published_files import cifar_arrays


def test_the_python_version_keeps_channels_rows_and_columns_apart(data_dir: Path):
    images, labels = read_cifar_python([data_dir / "cifar-10-batches-py" / f"data_batch_{i}" for i in range(1, 6)])
    expected, expected_labels = cifar_arrays(12, 10, 0)
    np.testing.assert_array_equal(images.reshape(120, 3072), expected)
    np.testing.assert_array_equal(labels, expected_labels)
    assert images.shape == (120, 3, 32, 32)
    assert images[7, 2, 3, 4] == expected[7, 2 * 1024 + 3 * 32 + 4]


def test_cifar100_has_its_fine_labels(data_dir: Path):
    assert load_dataset("cifar100", data_dir).train.y[:100].tolist() == list(range(100))


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_the_binary_version_gives_the_same_as_the_python_version(tmp_path: Path, data_dir: Path, name):
    expected = load_dataset(name, data_dir)
    n_classes = len(expected.classes)
    folder = tmp_path / {"cifar10": "cifar-10-batches-bin", "cifar100": "cifar-100-binary"}[name]
    folder.mkdir()
    for part, split in (("train", expected.train), ("test", expected.test)):
        labels = split.y.numpy().astype(np.uint8)[:, None]
        coarse = [] if n_classes == 10 else [labels // 5]
        records = np.concatenate([*coarse, labels, split.x.numpy().reshape(len(labels), -1)], axis=1)
        files = [f"{part}.bin"] if n_classes == 100 else ["test_batch.bin"]
        files = [f"data_batch_{i}.bin" for i in range(1, 6)] if part == "train" and n_classes == 10 else files
        for file, rows in zip(files, np.array_split(records, len(files)), strict=True):
            rows.tofile(folder / file)
    read = load_dataset(name, tmp_path)
    for part in ("train", "test"):
        np.testing.assert_array_equal(getattr(read, part).x, getattr(expected, part).x)
        np.testing.assert_array_equal(getattr(read, part).y, getattr(expected, part).y)


@pytest.mark.parametrize("n_labels", [1, 2])
def test_a_binary_file_with_part_of_a_record_is_refused(tmp_path: Path, n_labels):
    (tmp_path / "cut.bin").write_bytes(bytes(4000))
    with pytest.raises(DamagedFileError, match=r"cut\.bin .* 4000 bytes"):
        read_cifar_binary([tmp_path / "cut.bin"], n_labels=n_labels)


def test_a_pickle_without_labels_is_refused_by_name(tmp_path: Path):
    import pickle

    (tmp_path / "batch").write_bytes(pickle.dumps({b"data": np.zeros((2, 3072), np.uint8)}))
    with pytest.raises(DamagedFileError, match="batch should hold"):
        read_cifar_python([tmp_path / "batch"])


def test_channels_of_the_binary_version_are_red_green_and_blue(tmp_path: Path):
    record = bytes([4]) + b"\x01" * 1024 + b"\x02" * 1024 + b"\x03" * 1024
    (tmp_path / "a.bin").write_bytes(record)
    images, labels = read_cifar_binary([tmp_path / "a.bin"], n_labels=1)
    assert images.mean(axis=(2, 3)).tolist() == [[1, 2, 3]] and labels.tolist() == [4]


def test_of_two_labels_in_the_binary_version_the_second_is_the_fine_one(tmp_path: Path):
    (tmp_path / "a.bin").write_bytes(bytes([3, 77]) + bytes(3072))
    assert read_cifar_binary([tmp_path / "a.bin"], n_labels=2)[1].tolist() == [77]


def test_a_coarse_label_that_does_not_exist_is_refused(tmp_path: Path):
    (tmp_path / "a.bin").write_bytes(bytes([20, 77]) + bytes(3072))
    with pytest.raises(DamagedFileError, match=r"a\.bin should have coarse labels from 0 to 19; one is 20"):
        read_cifar_binary([tmp_path / "a.bin"], n_labels=2)


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
        read_cifar_python([tmp_path / "batch"])


def test_labels_of_many_dimensions_are_refused_without_being_followed(tmp_path: Path):
    labels = [1] * 10
    for _ in range(40):
        labels = [labels] * 10  # 10 ** 41 numbers, in 400 references
    import pickle

    (tmp_path / "batch").write_bytes(pickle.dumps({b"data": IMAGES, b"labels": labels}, protocol=2))
    with pytest.raises(DamagedFileError, match="of other types"):
        read_cifar_python([tmp_path / "batch"])
