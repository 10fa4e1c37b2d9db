import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.io import savemat

from cndpm.datasets import DamagedFileError
from cndpm.datasets.matlab import read_matlab

numbers = st.sampled_from([np.dtype(code) for code in ("u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")])
arrays = numbers.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=2, max_dims=4, max_side=4)))


def mat_bytes(**content) -> bytes:
    compressed = content.pop("compressed", False)
    buffer = io.BytesIO()
    savemat(buffer, content, do_compression=compressed)
    return buffer.getvalue()


def read(content: bytes, folder: Path, *names: str):
    (folder / "a.mat").write_bytes(content)
    return read_matlab(folder / "a.mat", names or ("X", "y"))


@given(arrays, arrays, st.booleans())
def test_reading_returns_what_scipy_wrote(tmp_path_factory, x, y, compressed):
    found = read(mat_bytes(X=x, y=y, z=x, compressed=compressed), tmp_path_factory.mktemp("mat"))
    assert found.keys() == {"X", "y"}
    np.testing.assert_array_equal(found["X"], x)
    np.testing.assert_array_equal(found["y"], y)


def test_other_variables_are_passed_over(tmp_path: Path):
    content = mat_bytes(text="abc", cell=np.array([1, "b"], object), struct={"a": 1}, y=np.ones((2, 1)), z=1j)
    assert list(read(content, tmp_path)) == ["y"]


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)


def matrix(name: bytes, shape: tuple[int, ...], values: bytes, *, flags=9, kind=2) -> bytes:
    parts = element(6, struct.pack("<II", flags, 0))
    parts += element(5, struct.pack(f"<{len(shape)}i", *shape))
    return element(14, parts + element(1, name) + element(kind, values))


def header() -> bytes:
    return bytes(124) + b"\x00\x01IM"


def deflated(content: bytes) -> bytes:
    packed = zlib.compress(content)
    return struct.pack("<II", 15, len(packed)) + packed


def test_values_run_down_the_columns(tmp_path: Path):
    assert read(header() + matrix(b"X", (2, 3), bytes(range(6))), tmp_path)["X"].tolist() == [[0, 2, 4], [1, 3, 5]]


def test_elements_behind_a_deflated_one_need_no_alignment(tmp_path: Path):
    content = header() + deflated(matrix(b"X", (1, 3), b"abc")) + matrix(b"y", (1, 2), b"de")
    assert read(content, tmp_path)["y"].tolist() == [[100, 101]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "its header should end"),
        (b"\x89HDF\r\n\x1a\n" + bytes(600), "HDF5"),
        (header() + matrix(b"X", (2, 2), b"abc"), r"X has 3 bytes of values; its shape \(2, 2\)"),
        (header() + matrix(b"X", (1 << 30, 1 << 30, 1 << 30), b"abc"), "X has 3 bytes of values"),
        (header() + matrix(b"X", (0, 5), b""), r"empty or has a negative dimension: \(0, 5\)"),
        (header() + matrix(b"X", (-1, -3), b"abc"), "negative dimension"),
        (header() + matrix(b"X", (3,), b"abc"), "2 to 8 dimensions"),
        (header() + matrix(b"X", (1,) * 9, b"a"), "2 to 8 dimensions"),
        (header() + matrix(b"X", (1, 3), b"abc", flags=4), "not an array of real numbers"),
        (header() + matrix(b"X", (1, 3), b"abc", flags=0x0809), "not an array of real numbers"),
        (header() + matrix(b"X", (1, 3), b"abc", kind=14), "end with one element of numbers"),
        (header() + struct.pack("<II", 14, 1 << 31) + bytes(40), "claims 2147483648 bytes where 40 are left"),
        (header() + struct.pack("<HH", 14, 9) + bytes(4), "claims 9 bytes where 4 are left"),
        (header() + element(14, b""), "does not begin with its flags"),
        (header() + element(6, bytes(8)), "type 6; only matrices"),
        (header() + b"rest", "4 bytes are left where a tag"),
        (header() + deflated(b"short"), "ends within its tag"),
        (header() + deflated(element(6, bytes(8))), "should be a matrix"),
        (header() + deflated(struct.pack("<II", 14, 1 << 31)), "claims 2147483648 bytes"),
        (header() + deflated(struct.pack("<II", 14, 16) + bytes(1 << 20)), "claims 16 bytes"),
        (header() + element(15, b"no zlib stream at all...."), "incorrect header check"),
    ],
)
def test_a_file_that_claims_what_it_does_not_hold_is_refused(tmp_path: Path, content, words):
    with pytest.raises(DamagedFileError, match=words) as raised:
        read(content, tmp_path)
    assert "a.mat is not a readable MATLAB 5 file" in str(raised.value) and "Get the file anew" in str(raised.value)


def test_deflated_claims_above_the_memory_limit_are_refused_before_they_are_inflated(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("cndpm.datasets.matlab.memory_limit", lambda: 1000)
    small, large = matrix(b"y", (1, 400), bytes(400)), matrix(b"X", (1, 1000), bytes(1000))
    with pytest.raises(DamagedFileError, match="at most 1000 bytes"):
        read(header() + deflated(large), tmp_path)
    with pytest.raises(DamagedFileError, match=r"at most \d\d bytes"):  # all inflated elements share one limit
        read(header() + deflated(small) * 3, tmp_path)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_that_ends_early_is_refused_wherever_it_ends(tmp_path: Path, compressed):
    content = mat_bytes(X=np.arange(30, dtype=np.uint8).reshape(2, 5, 3), compressed=compressed)
    for n in range(len(content) - 8):
        if n != 128:  # a file without any variable is valid
            with pytest.raises(DamagedFileError):
                read(content[:n], tmp_path)


@pytest.mark.parametrize("n", range(1, 5))
def test_a_deflated_element_without_its_whole_checksum_is_refused(tmp_path: Path, n):
    packed = zlib.compress(matrix(b"X", (1, 3), b"abc"))[:-n]
    with pytest.raises(DamagedFileError, match="deflated matrix claims"):
        read(header() + struct.pack("<II", 15, len(packed)) + packed, tmp_path)


@given(st.data())
def test_damage_to_a_deflated_file_is_refused_or_changes_nothing(tmp_path_factory, data):
    x = np.arange(40, dtype=np.uint8).reshape(2, 5, 4)
    content = bytearray(mat_bytes(X=x, compressed=True))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = read(bytes(content), tmp_path_factory.mktemp("mat"))
    except DamagedFileError:
        return
    np.testing.assert_array_equal(found["X"], x)
