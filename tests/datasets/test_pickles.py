import os
import pickle
from collections import OrderedDict
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cndpm.datasets import RefusedPickleError
from cndpm.datasets.pickles import read_pickle

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.binary(), inner, max_size=3),
    max_leaves=8,
)


class Calls:
    """Unpickling this calls a function with arguments."""

    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


@given(plain, st.integers(2, 5))
def test_plain_containers_come_back(tmp_path_factory, value, protocol):
    path = tmp_path_factory.mktemp("pickle") / "a"
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    assert read_pickle(path) == value


@given(hnp.arrays(st.sampled_from([np.uint8, np.int64, np.float32]), (3, 2)), st.integers(2, 4))
def test_arrays_come_back(tmp_path_factory, array, protocol):
    path = tmp_path_factory.mktemp("pickle") / "a"
    path.write_bytes(pickle.dumps({b"data": array}, protocol=protocol))
    read = read_pickle(path)[b"data"]
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)


def test_the_names_that_numpy_1_wrote_are_admitted(tmp_path: Path):
    content = pickle.dumps(np.arange(4, dtype=np.uint8), protocol=2).replace(b"numpy._core", b"numpy.core")
    assert b"numpy.core" in content
    (tmp_path / "old").write_bytes(content)
    np.testing.assert_array_equal(read_pickle(tmp_path / "old"), np.arange(4))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(os.system, ("true",)), (eval, ("1",)), (getattr, ("", "upper")), (np.load, ("x",)), (partial, (print,))],
)
def test_a_hostile_pickle_is_refused_and_not_run(tmp_path: Path, function, arguments):
    (tmp_path / "evil").write_bytes(pickle.dumps({b"data": Calls(function, *arguments)}))
    with pytest.raises(RefusedPickleError, match=r"evil is refused: .* only arrays and plain containers"):
        read_pickle(tmp_path / "evil")


def test_what_a_hostile_pickle_would_do_does_not_happen(tmp_path: Path):
    mark = tmp_path / "mark"
    (tmp_path / "evil").write_bytes(pickle.dumps(Calls(os.mkdir, str(mark))))
    with pytest.raises(RefusedPickleError):
        read_pickle(tmp_path / "evil")
    assert not mark.exists()


@pytest.mark.parametrize("value", [OrderedDict(a=1), Path("x"), np.random.default_rng(0)])
def test_objects_are_refused(tmp_path: Path, value):
    (tmp_path / "object").write_bytes(pickle.dumps(value))
    with pytest.raises(RefusedPickleError):
        read_pickle(tmp_path / "object")


def test_an_array_that_hides_an_object_is_refused(tmp_path: Path):
    array = np.array([Calls(os.getcwd)], dtype=object)
    (tmp_path / "object").write_bytes(pickle.dumps(array))
    with pytest.raises(RefusedPickleError):
        read_pickle(tmp_path / "object")


@given(st.binary(max_size=60))
def test_garbage_is_refused_with_one_kind_of_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("pickle") / "garbage"
    path.write_bytes(content)
    try:
        read_pickle(path)
    except RefusedPickleError as error:
        assert "garbage" in str(error)


def refused(content: bytes, folder: Path, words: str) -> None:
    (folder / "crafted").write_bytes(content)
    with pytest.raises(RefusedPickleError, match=words) as raised:
        read_pickle(folder / "crafted")
    assert "crafted" in str(raised.value) and "Get the file anew" in str(raised.value)


ENCODE = b"c_codecs\nencode\n"
ARRAY = b"cnumpy._core.multiarray\n_reconstruct\n)R"


def array_state(shape: bytes, code: bytes, content: bytes) -> bytes:
    """A pickle of one array: shape, type and content as instructions."""
    dtype = b"cnumpy\ndtype\n" + code + b"\x85R"
    return b"\x80\x02" + ARRAY + b"(K\x01" + shape + dtype + b"\x89" + content + b"tb."


def text(value: bytes) -> bytes:
    return b"X" + len(value).to_bytes(4, "little") + value


def raw(value: bytes) -> bytes:
    return b"B" + len(value).to_bytes(4, "little") + value


def test_the_crafted_pickle_of_an_array_is_one_when_nothing_is_wrong_with_it(tmp_path: Path):
    (tmp_path / "a").write_bytes(array_state(b"K\x02K\x02\x86", text(b"u1"), raw(b"abcd")))
    assert read_pickle(tmp_path / "a").tolist() == [[97, 98], [99, 100]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (array_state(b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x85", text(b"u1"), raw(b"abcd")), "other than its shape"),
        (array_state(b"J\xff\xff\xff\x7f" * 2 + b"\x86", text(b"u1"), raw(b"abcd")), "other than its shape"),
        (array_state(b"J\xfc\xff\xff\xff\x85", text(b"u1"), raw(b"abcd")), "other than its shape"),
        (array_state(b"(" + b"K\x01" * 9 + b"t", text(b"u1"), raw(b"a")), "other than its shape"),
        (array_state(b"K\x04\x85", text(b"u8"), raw(b"abcd")), "4 bytes of uint64"),
        (array_state(b"K\x01\x85", text(b"O8"), raw(b"abcdefgh")), "dtype with other arguments"),
        (array_state(b"K\x01\x85", text(b"V100000000"), raw(b"abcd")), "dtype with other arguments"),
        (array_state(b"K\x01\x85", text(b"U1"), raw(b"abcd")), "dtype with other arguments"),
        (array_state(b"K\x01\x85", text(b"u1"), b"]"), "a shape, a type of numbers and bytes"),
        (b"\x80\x02" + ARRAY + b"}b.", "sets an object's state"),
        (b"\x80\x02cnumpy\nndarray\nJ\xff\xff\xff\x7f\x85R.", "ndarray with other arguments"),
        (b"\x80\x02c__builtin__\nbytes\nJ\xff\xff\xff\x7f\x85R.", "bytes with other arguments"),
        (b"\x80\x02" + ENCODE + text(b"a") + text(b"rot13") + b"\x86R.", "only 'latin1' is admitted"),
    ],
)
def test_an_array_that_claims_what_the_pickle_does_not_hold_is_refused(tmp_path: Path, content, words):
    refused(content, tmp_path, words)


def test_what_follows_a_pickle_is_refused(tmp_path: Path):
    refused(pickle.dumps({b"labels": [1]}, protocol=2) + b"1", tmp_path, "something follows")


def test_what_was_admitted_cannot_be_changed(tmp_path: Path):
    before = dict(vars(np.ndarray))
    for name in (ENCODE, b"cnumpy\nndarray\n", b"cnumpy._core.multiarray\n_reconstruct\n"):
        state = b"(N}" + text(b"__doc__") + text(b"changed") + b"st"
        refused(b"\x80\x02" + name + state + b"b.", tmp_path, "sets an object's state")
        refused(b"\x80\x02" + name + b"}" + text(b"a") + b"K\x01s" + b"b.", tmp_path, "sets an object's state")
    assert dict(vars(np.ndarray)) == before


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02]r\xff\xff\xff\x7f.",  # number 2 ** 31 - 1: the C unpickler makes room for all before it
        b"\x80\x04]r\xff\xff\xff\xff\x94.",
    ],
)
def test_a_large_number_to_remember_by_takes_no_memory(tmp_path: Path, content):
    (tmp_path / "memo").write_bytes(content)
    assert read_pickle(tmp_path / "memo") == []


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",  # bytes of 2 ** 63 - 1
        b"\x80\x04B\xff\xff\xff\xffabc.",
        b"\x80\x04\x8b\xff\xff\xff\x7fabc.",  # a number of 2 ** 31 - 1 bytes
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff.",  # a frame
        b"\x80\x04X\xff\xff\xff\xffabc.",
        b"\x80\x02T\xff\xff\xff\xffabc.",
    ],
)
def test_a_length_beyond_the_end_takes_no_memory(tmp_path: Path, content):
    refused(content, tmp_path, "crafted is")


def test_bytes_that_are_made_again_and_again_are_counted(tmp_path: Path):
    long = text(b"a" * 10_000) + b"q\x00"
    again = (ENCODE + b"h\x00" + text(b"latin1") + b"\x86R0") * 100
    refused(b"\x80\x02" + long + again.replace(b"0", b"") + b".", tmp_path, "more bytes than it holds")


@pytest.mark.parametrize("deeper", [b"]" * 100_000 + b"a" * 99_999, b")" + b"\x85" * 100_000])
def test_what_is_nested_without_end_is_read_or_refused_without_recursion(tmp_path: Path, deeper):
    (tmp_path / "deep").write_bytes(b"\x80\x02" + deeper + b".")
    assert len(read_pickle(tmp_path / "deep")) == 1


def test_a_key_is_nothing_nested(tmp_path: Path):
    key = b")" + b"\x85" * 100_000  # hashing it would overflow the C stack
    refused(b"\x80\x02}" + key + b"K\x01s.", tmp_path, "keys must be text, bytes or numbers")


def test_the_number_of_instructions_is_limited(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("cndpm.datasets.pickles._MOST_INSTRUCTIONS", 50)
    refused(b"\x80\x02(" + b"]" * 60 + b"t.", tmp_path, "more than 50 instructions")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x80\x02.", "more or less than one value"),
        (b"\x80\x02]].", "more or less than one value"),
        (b"\x80\x02(].", "more or less than one value"),
        (b"\x80\x02(", "not a readable pickle"),
        (b"\x80\x02a.", "not a readable pickle"),
        (b"\x80\x02](a.", "not a readable pickle"),
        (b"\x80\x02}]a.", "not a readable pickle"),
        (b"\x80\x02]K\x01K\x02s.", "needs a dict, not a list"),
        (b"\x80\x02t.", "not a readable pickle"),
        (b"\x80\x02h\x07.", "not a readable pickle"),
        (b"\x80\x02}(K\x01u.", "each with a value"),
        (b"\x80\x02K\x01K\x01R.", "the pickle calls something"),
        (b"\x80\x04]]\x93.", "not a readable pickle"),
        (b"\x80\x02\x82\x01.", "EXT1|not a readable"),
        (b"\x80\x02U\x01aQ.", "BINPERSID"),
        (b"\x80\x02(ios\nsystem\n.", "INST"),
        (b"\x80\x04\x8f.", "EMPTY_SET"),
        (b"\x80\x02N)\x81.", "NEWOBJ"),
        (b"\x80\x05\x96\x01\0\0\0\0\0\0\0a.", "BYTEARRAY8"),
    ],
)
def test_a_program_that_makes_no_sense_is_refused(tmp_path: Path, content, words):
    refused(content, tmp_path, words)


@given(st.data())
def test_damage_is_refused_or_gives_plain_things(tmp_path_factory, data):
    content = bytearray(pickle.dumps({b"data": np.arange(12, dtype=np.uint8), b"labels": [1, 2]}, protocol=2))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path_factory.mktemp("pickle") / "damaged"
    path.write_bytes(content)
    try:
        read_pickle(path)
    except RefusedPickleError as error:
        assert "damaged" in str(error)
