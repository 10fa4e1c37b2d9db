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
