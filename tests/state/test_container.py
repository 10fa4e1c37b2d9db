"""Whatever a header claims, reading compares it with the bytes that are there."""

import io
import json

import pytest
import torch

from cndpm.state.container import StateError, container_pieces, has_right_checksum, read_container


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = len(text).to_bytes(8, "little") + text + data
    return io.BufferedReader(io.BytesIO(content)), len(content)


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.float64])
def test_every_type_comes_back_to_the_bit(dtype):
    tensors = {"a": torch.arange(6).reshape(2, 3).to(dtype), "none": torch.zeros(0, dtype=dtype)}
    content = b"".join(bytes(piece) for piece in container_pieces({"x": "y"}, tensors))
    file = io.BufferedReader(io.BytesIO(content))
    assert has_right_checksum(file, len(content))
    read = read_container(file, len(content))
    assert read.texts == {"x": "y"}
    assert torch.equal(read.tensors["a"], tensors["a"]) and read.tensors["a"].dtype is dtype
    assert read.tensors["none"].shape == (0,)


@pytest.mark.parametrize(
    ("header", "data", "reason"),
    [
        (b"{}" + b" " * 40, b"", None),
        (b"[]", b"", "no JSON object"),
        (b"{", b"", "header has 1"),
        (b"{,", b"", "not JSON"),
        (b"[" * 100_000, b"", "its header of 100000 bytes has 100000 dictionaries and lists"),
        (b"[" * 9_000, b"", "not JSON"),
        (b"{}" + b" " * (1 << 22), b"", "says that its header has"),
        ({str(i): entry("F32", (0,), (0, 0)) for i in range(10_001)}, b"", "10001 tensors, more than 0 bytes are for"),
        ({"__metadata__": {"a": 1}}, b"", "not texts"),
        ({"a": 7}, b"", "does not describe 'a'"),
        ({"a": {**entry(), "more": 1}}, b"\0" * 8, "does not describe 'a'"),
        ({"a": entry("F99")}, b"\0" * 8, "is of type 'F99'"),
        ({"a": entry(shape=(3,))}, b"\0" * 8, "does not have 8 bytes"),
        ({"a": entry(shape=(-2,))}, b"\0" * 8, "cannot be"),
        ({"a": entry(shape=(True, 2))}, b"\0" * 8, "cannot be"),
        ({"a": entry(shape=(0, 1 << 39, 1 << 39), offsets=(0, 0))}, b"", "does not have 0 bytes"),
        ({"a": entry(shape=[1] * 40, offsets=(0, 4))}, b"\0" * 4, "cannot be"),
        ({"a": entry(offsets=(1, 9))}, b"\0" * 9, "begin at 1, not at 0"),
        ({"a": entry(), "b": entry()}, b"\0" * 8, "begin at 0, not at 8"),
        ({"a": entry()}, b"\0" * 9, "9 bytes of tensors where its header speaks of 8"),
        ({"a": entry("F32", (1 << 38,), (0, 1 << 40))}, b"\0" * 8, "speaks of"),
        ({"a": entry("BOOL", (2,), (0, 2))}, b"\1\2", "other values than 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_used(header, data, reason):
    file, size = file_of(header, data)
    if reason is None:
        assert read_container(file, size).tensors == {}
        return
    with pytest.raises(StateError, match=reason):
        read_container(file, size)


def test_a_length_beyond_the_file_is_refused():
    for n in (1 << 63, 1 << 28, 11):
        content = n.to_bytes(8, "little") + b"{}        "
        with pytest.raises(StateError, match="says that its header has"):
            read_container(io.BufferedReader(io.BytesIO(content)), len(content))


def test_complex_tensors_are_refused_by_name():
    with pytest.raises(TypeError, match="complex64 at 'z'"):
        list(container_pieces({}, {"z": torch.zeros(2, dtype=torch.complex64)}))
