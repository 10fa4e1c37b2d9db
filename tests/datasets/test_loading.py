import gzip
import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from cndpm.datasets import (
    DamagedFileError,
    Dataset,
    MissingDataError,
    RefusedPickleError,
    Split,
    dataset_names,
    load_dataset,
    resolve_data_dir,
)
from cndpm.datasets.catalogue import catalogue
from cndpm.names import UnknownNameError, nearest_names
from published_files import idx_bytes


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10", "cifar100", "svhn", "emnist-letters"])
def test_published_files_are_found_and_hold_every_class(data_dir: Path, name):
    dataset = load_dataset(name, data_dir)
    n_classes = len(catalogue()[name].classes)
    for split, n in ((dataset.train, 12), (dataset.test, 4)):
        assert split.x.dtype == torch.uint8 and split.y.dtype == torch.int64
        assert torch.bincount(split.y).tolist() == [n] * n_classes
    assert len(dataset.classes) == n_classes


def test_letters_are_numbered_from_zero_and_stand_upright(data_dir: Path):
    letters = load_dataset("emnist-letters", data_dir)
    assert (letters.train.x[:, 0, 0, 0] == letters.train.y + 1).all()  # the fixture writes the published label there
    assert (letters.train.x[26:52, 0, 1, 0] == 1).all()  # and the repetition in the next column, transposed: row


@pytest.mark.parametrize("name", [name for name in dataset_names() if name not in ("digits", "fashion-mnist")])
def test_missing_data_says_what_where_and_how(tmp_path: Path, name):
    entry = catalogue()[name]
    with pytest.raises(MissingDataError) as raised:
        load_dataset(name, tmp_path)
    message = str(raised.value)
    assert f"cndpm data fetch {name}" in message
    assert all(file in message for file in entry.layouts[0].train)
    assert all(str(tmp_path / folder) in message for layout in entry.layouts for folder in layout.folders)


def test_an_incomplete_dataset_is_missing(tmp_path: Path, data_dir: Path):
    for file in list((data_dir / "MNIST" / "raw").iterdir())[:3]:
        (tmp_path / "mnist").mkdir(exist_ok=True)
        (tmp_path / "mnist" / file.name).write_bytes(file.read_bytes())
    with pytest.raises(MissingDataError):
        load_dataset("mnist", tmp_path)


def test_an_unknown_dataset_suggests_the_nearest(tmp_path: Path):
    with pytest.raises(UnknownNameError, match=r"cifra10.*cifar10") as raised:
        load_dataset("cifra10", tmp_path)
    assert raised.value.suggestions[0] == "cifar10"


def test_a_name_like_none_lists_all():
    assert nearest_names("xyzzy", dataset_names()) == ()
    with pytest.raises(UnknownNameError, match=r"Known: mnist, .*digits"):
        load_dataset("xyzzy")


def test_the_data_folder_is_the_argument_then_the_environment_then_the_cache(monkeypatch, tmp_path: Path):
    monkeypatch.setenv("CNDPM_DATA", str(tmp_path / "environment"))
    assert resolve_data_dir(tmp_path) == tmp_path
    assert resolve_data_dir() == tmp_path / "environment"
    monkeypatch.delenv("CNDPM_DATA")
    assert resolve_data_dir().name == "cndpm"


def test_a_split_has_one_label_per_sample():
    with pytest.raises(ValueError, match="3 samples and 2 labels"):
        Split(torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64))


def test_labels_beyond_the_classes_are_refused():
    split = Split(torch.zeros(2, 2), torch.tensor([0, 5]))
    with pytest.raises(ValueError, match=r"from 0 to 5.*2 classes"):
        Dataset("bad", split, split, ("a", "b"))


def test_every_checksum_of_the_catalogue_is_a_sha256():
    for entry in catalogue().values():
        sums = [download.sha256 for download in entry.downloads]
        assert all(len(value) == hashlib.sha256().digest_size * 2 and int(value, 16) >= 0 for value in sums)
        assert not entry.downloads or entry.mirrors


def test_an_own_dataset_that_is_not_there_is_named_with_both_places(tmp_path: Path):
    with pytest.raises(MissingDataError, match=rf"rows\.npz or {tmp_path}"):
        load_dataset("rows.npz", tmp_path)


def copied(data_dir: Path, folder: str, tmp_path: Path) -> Path:
    shutil.copytree(data_dir / folder, tmp_path / folder)
    return tmp_path / folder


def test_a_damaged_file_of_the_catalogue_says_how_to_fetch_it_anew(data_dir: Path, tmp_path: Path):
    (copied(data_dir, "svhn", tmp_path) / "test_32x32.mat").write_bytes(b"damaged")
    with pytest.raises(DamagedFileError, match=r"test_32x32\.mat .*`cndpm data fetch svhn --force` fetches"):
        load_dataset("svhn", tmp_path)
    (copied(data_dir, "cifar-10-batches-py", tmp_path) / "data_batch_3").write_bytes(b"damaged")
    with pytest.raises(RefusedPickleError, match=r"data_batch_3 .*`cndpm data fetch cifar10 --force` fetches"):
        load_dataset("cifar10", tmp_path)


def test_labels_that_a_dataset_does_not_have_are_refused_with_the_file_and_their_range(data_dir: Path, tmp_path: Path):
    folder = copied(data_dir, "fashion-mnist", tmp_path)
    labels = folder / "train-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\x0a")
    with pytest.raises(DamagedFileError, match=r"train-labels-idx1-ubyte: labels .* between 0 and 9; .* from 0 to 10"):
        load_dataset("fashion-mnist", tmp_path)


def test_the_label_below_the_first_is_refused(data_dir: Path, tmp_path: Path):
    folder = copied(data_dir, "EMNIST", tmp_path) / "raw"
    labels = folder / "emnist-letters-test-labels-idx1-ubyte.gz"
    labels.write_bytes(gzip.compress(gzip.decompress(labels.read_bytes())[:-1] + b"\x00"))
    with pytest.raises(DamagedFileError, match=r"between 1 and 26; they run from 0 to 26"):
        load_dataset("emnist-letters", tmp_path)


def test_training_and_test_images_of_different_shapes_are_refused(data_dir: Path, tmp_path: Path):
    folder = copied(data_dir, "fashion-mnist", tmp_path)
    (folder / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((40, 27, 28), np.uint8)))
    with pytest.raises(DamagedFileError, match=r"one shape; they have \(1, 28, 28\) and \(1, 27, 28\)"):
        load_dataset("fashion-mnist", tmp_path)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "cifar100", "svhn", "emnist-letters"])
def test_training_and_test_sets_are_not_exchanged(data_dir: Path, name):
    dataset = load_dataset(name, data_dir)
    assert len(dataset.train) == 3 * len(dataset.test)  # as the fixture writes them


@pytest.mark.parametrize("name", ["x" * 5000, "~nobody-of-this-name", "a\0b"])
def test_a_name_that_cannot_be_a_path_is_unknown(tmp_path: Path, name):
    with pytest.raises(UnknownNameError):
        load_dataset(name, tmp_path)


def test_a_folder_that_cannot_be_looked_into_holds_no_dataset(tmp_path: Path, monkeypatch):
    def is_file(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", is_file)
    with pytest.raises(MissingDataError, match="cndpm data fetch mnist"):
        load_dataset("mnist", tmp_path)
