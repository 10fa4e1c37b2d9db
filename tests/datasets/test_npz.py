import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cndpm.datasets import DamagedFileError, load_dataset
from cndpm.datasets.npz import read_npz

kinds = st.sampled_from(["<f4", ">f8", "<i2", ">u8", "|u1", "|b1", "<U3", "|S4"])
arrays = kinds.flatmap(lambda kind: hnp.arrays(np.dtype(kind), hnp.array_shapes(min_dims=0, max_dims=4, max_side=4)))


def npy(array: np.ndarray, *, fortran: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asfortranarray(array) if fortran else array)
    return buffer.getvalue()


def npy_claiming(header: str, values: bytes = b"", *, version: int = 1) -> bytes:
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(2 * version, "little") + header.encode() + values


def write_zip(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


@given(arrays, arrays, st.booleans())
def test_reading_returns_what_numpy_wrote(tmp_path_factory, x, y, compressed):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    (np.savez_compressed if compressed else np.savez)(path, x=x, y=y, z=x)
    read = read_npz(path, [("missing", "x"), ("x", "y")])
    assert list(read) == ["x", "y"]
    for name, array in (("x", x), ("y", y)):
        assert read[name].dtype == array.dtype
        np.testing.assert_array_equal(read[name], array)


def test_columns_first_is_read_as_such(tmp_path: Path):
    array = np.arange(6).reshape(2, 3)
    path = write_zip(tmp_path / "a.npz", x=npy(array, fortran=True))
    np.testing.assert_array_equal(read_npz(path, [("x",)])["x"], array)


HEADER = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not an array in .npy format"),
        (npy(np.zeros(3))[:-1], "23 bytes of values"),
        (npy(np.zeros(3)) + b"1", "25 bytes of values"),
        (npy_claiming(HEADER % ("<f8", "(1000000000000, 1000000000)"), bytes(8)), "8 bytes of values"),
        (npy_claiming(HEADER % ("<f8", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), bytes(8)), "8 bytes of values"),
        (npy_claiming(HEADER % ("<U0", "(1000000000,)")), "not a plain array"),
        (npy_claiming(HEADER % ("|O", "(1,)"), bytes(8)), "not a plain array"),
        (npy_claiming(HEADER % ("<f8", "(-1, -1)"), bytes(8)), "not a plain array"),
        (npy_claiming("(" * 9000), "not a plain array"),
        (npy_claiming("__import__('os').getcwd()"), "not a plain array"),
        (npy_claiming(HEADER % ("<f3", "(1,)"), bytes(3)), "f3"),
        (npy_claiming(HEADER % ("<f8", "(1,)"), bytes(8), version=3), "format 1 or 2"),
        (b"\x93NUMPY\x01\x00\xff\xff{}", "not a plain array"),
    ],
)
def test_an_array_that_claims_what_it_does_not_hold_is_refused(tmp_path: Path, content, words):
    path = write_zip(tmp_path / "a.npz", x=content, y=npy(np.zeros(1)))
    with pytest.raises(DamagedFileError, match=words) as raised:
        read_npz(path, [("x", "y")])
    assert "a.npz" in str(raised.value) and "numpy.savez" in str(raised.value)


def test_the_later_header_format_is_read(tmp_path: Path):
    path = write_zip(tmp_path / "a.npz", x=npy_claiming(HEADER % ("<i4", "(1,)"), b"\x07\0\0\0", version=2))
    assert read_npz(path, [("x",)])["x"].tolist() == [7]


def test_an_archive_that_would_grow_above_the_limit_is_refused_unread(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("cndpm.datasets.files.memory_limit", lambda: 5000)
    path = write_zip(tmp_path / "bomb.npz", x=npy(np.zeros(100_000)), y=npy(np.zeros(3)))
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(DamagedFileError, match=r"bomb\.npz claims to hold 800\d\d\d bytes"):
        read_npz(path, [("x", "y")])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04.", npy(np.zeros(3))])
def test_what_is_no_zip_archive_is_refused_by_name(tmp_path: Path, content):
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a\.npz should be an \.npz file of plain arrays named x, y"):
        read_npz(tmp_path / "a.npz", [("x", "y")])


@given(st.data())
def test_damage_is_refused_or_changes_nothing(tmp_path_factory, data):
    x, path = np.arange(40.0).reshape(10, 4), tmp_path_factory.mktemp("npz") / "a.npz"
    np.savez(path, x=x, y=np.arange(10) % 2)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        read = read_npz(path, [("x", "y")])
    except DamagedFileError:
        return
    np.testing.assert_array_equal(read["x"], x)
    np.testing.assert_array_equal(read["y"], np.arange(10) % 2)


IMAGES = np.zeros((3, 4, 4), np.uint8)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": IMAGES, "y": np.arange(4)}, r"one label per sample, \(3,\).* it holds \(4,\)"),
        ({"x": IMAGES, "y": np.arange(6).reshape(3, 2)}, r"it holds \(3, 2\)"),
        ({"x": IMAGES, "y": np.array([0.0, np.nan, 1.0])}, "finite numbers or text"),
        ({"x": IMAGES, "y": np.array([b"\xff", b"a", b"b"])}, "labels that are no text"),
        ({"x": IMAGES, "y": np.array([0x110000, 1, 2], np.uint32).view("<U1")}, "labels that are no text"),
        ({"x": IMAGES, "y": np.array([0xD800, 65, 66], np.uint32).view("<U1")}, "labels that are no text"),
        ({"x": IMAGES[:0], "y": np.arange(0)}, "at least one"),
        ({"x": IMAGES.astype(np.float32), "y": np.arange(3)}, r"it holds \(3, 4, 4\) of float32"),
        ({"x": np.zeros((3, 4, 4, 2), np.uint8), "y": np.arange(3)}, r"\(3, 4, 4, 2\)"),
        ({"x": np.array([["a"]]), "y": np.arange(1)}, "of <U1"),
        ({"x": np.array([[1.0, np.nan]]), "y": np.arange(1)}, "row 0 has nan in column 1"),
        ({"x": np.array([[1.0], [1e300]]), "y": np.arange(2)}, r"row 1 has 1e\+300 in column 0"),
        (
            {
                "x_train": IMAGES,
                "y_train": np.arange(3),
                "x_test": IMAGES[:, :, :2],
                "y_test": np.arange(3),
            },
            r"\(3, 1, 4, 2\)",
        ),
        ({"x_train": IMAGES, "y_train": np.arange(3), "x_test": IMAGES, "y_test": np.array(list("abc"))}, "one kind"),
    ],
)
def test_arrays_that_are_no_dataset_are_refused_by_name(tmp_path: Path, arrays, words):
    np.savez(tmp_path / "own.npz", **arrays)
    with pytest.raises(DamagedFileError, match=words) as raised:
        load_dataset("own.npz", tmp_path)
    assert "own.npz" in str(raised.value)


def test_labels_of_bytes_and_columns_are_read(tmp_path: Path):
    np.savez(tmp_path / "own.npz", x=IMAGES, y=np.array([[b"dog"], [b"cat"], [b"dog"]]))
    own = load_dataset("own.npz", tmp_path)
    assert own.classes == ("cat", "dog") and own.train.y.tolist() == [1, 0, 1]
