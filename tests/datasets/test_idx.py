import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cndpm.datasets import DamagedFileError
from cndpm.datasets.idx import read_idx, read_idx_pair, read_transposed_idx_pair
from published_files import idx_bytes

arrays = hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=4, max_side=5))


@given(arrays, st.booleans())
def test_reading_returns_what_was_written_gzipped_or_not(tmp_path_factory, array, zipped):
    path = tmp_path_factory.mktemp("idx") / ("a.gz" if zipped else "a")
    path.write_bytes(gzip.compress(idx_bytes(array)) if zipped else idx_bytes(array))
    np.testing.assert_array_equal(read_idx(path), array)


@given(arrays, st.data())
def test_a_file_that_ends_early_is_refused(tmp_path_factory, array, data):
    content = idx_bytes(array)
    path = tmp_path_factory.mktemp("idx") / "short"
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(DamagedFileError, match="short"):
        read_idx(path)


def test_a_truncated_gzip_file_is_refused_by_name(tmp_path: Path):
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(idx_bytes(np.arange(200, dtype=np.uint8)))[:-20])
    with pytest.raises(DamagedFileError, match=r"images\.gz is truncated"):
        read_idx(path)


def test_another_type_code_is_refused(tmp_path: Path):
    path = tmp_path / "floats"
    path.write_bytes(bytes([0, 0, 13, 1]) + bytes(8))
    with pytest.raises(DamagedFileError, match="00000d01"):
        read_idx(path)


def test_images_and_labels_of_different_numbers_are_refused(tmp_path: Path):
    (tmp_path / "x").write_bytes(idx_bytes(np.zeros((3, 2, 2), np.uint8)))
    (tmp_path / "y").write_bytes(idx_bytes(np.zeros(4, np.uint8)))
    with pytest.raises(DamagedFileError, match=r"\(3, 2, 2\) and \(4,\)"):
        read_idx_pair([tmp_path / "x", tmp_path / "y"])


def test_transposed_images_are_turned_back(tmp_path: Path):
    images = np.arange(12, dtype=np.uint8).reshape(1, 3, 4)
    (tmp_path / "x").write_bytes(idx_bytes(images))
    (tmp_path / "y").write_bytes(idx_bytes(np.zeros(1, np.uint8)))
    read, _ = read_transposed_idx_pair([tmp_path / "x", tmp_path / "y"])
    np.testing.assert_array_equal(read[0, 0], images[0].T)


@given(arrays, st.data())
def test_damage_to_a_gzipped_file_is_refused_or_changes_nothing(tmp_path_factory, array, data):
    content = bytearray(gzip.compress(idx_bytes(array)))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("idx") / "a.gz"
    path.write_bytes(content)
    try:
        read = read_idx(path)
    except DamagedFileError:
        return
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "begins with ''"),
        (bytes([0, 0, 8, 0]), "1 to 4 dimensions"),
        (bytes([0, 0, 8, 255]) + bytes([0, 0, 0, 1]) * 255 + b"1", "1 to 4 dimensions"),
        (bytes([0, 0, 8, 2, 0, 0, 0, 1]), "holds 4 bytes for them"),
        (bytes([0, 0, 8, 2]) + bytes(8), r"no samples: its shape is \(0, 0\)"),
        (bytes([0, 0, 8, 4]) + b"\x01\x00\x00\x00" * 4 + b"1", "bytes; at most|bytes after its header"),  # 2 ** 96
        (idx_bytes(np.zeros(3, np.uint8)) + b"1", r"should hold 3 bytes .* it holds more"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_a_header_that_claims_what_the_file_does_not_hold_is_refused(tmp_path: Path, content, words, zipped):
    path = tmp_path / ("images.gz" if zipped else "images")
    path.write_bytes(gzip.compress(content) if zipped else content)
    with pytest.raises(DamagedFileError, match=words) as raised:
        read_idx(path)
    assert str(path) in str(raised.value)


def test_images_keep_rows_and_columns(tmp_path: Path):
    images = np.arange(12, dtype=np.uint8).reshape(1, 3, 4)
    (tmp_path / "x").write_bytes(idx_bytes(images))
    (tmp_path / "y").write_bytes(idx_bytes(np.array([7], np.uint8)))
    read, labels = read_idx_pair([tmp_path / "x", tmp_path / "y"])
    np.testing.assert_array_equal(read[0, 0], images[0])
    assert labels.tolist() == [7] and labels.dtype == np.int64
