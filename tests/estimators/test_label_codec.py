import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cndpm.estimators.label_codec import LabelCodec, from_plain, to_plain

labels = st.recursive(
    st.one_of(st.integers(), st.text(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.tuples(inner, inner),
    max_leaves=3,
)


@given(st.lists(st.lists(labels, max_size=5), max_size=4))
def test_indices_are_stable_whatever_arrives_later(batches):
    codec = LabelCodec()
    first_seen = {}
    for batch in batches:
        for label, index in zip(batch, codec.encode(batch, learn=True), strict=True):
            assert first_seen.setdefault(label, index) == index
            assert codec.labels[index] == label
    assert sorted(codec.order()) == list(range(len(codec)))


def test_labels_that_are_not_known_are_refused_where_none_are_learned():
    codec = LabelCodec(["a"])
    with pytest.raises(ValueError, match=r"not among the known classes: \['b'\]; known: 'a'"):
        codec.encode(["a", "b"], learn=False)
    assert codec.labels == ["a"]


@given(labels)
def test_labels_survive_saving(label):
    restored = from_plain(to_plain(label))
    assert restored == label
    assert type(restored) is type(label)


def test_classes_are_sorted_where_they_can_be_and_in_order_of_arrival_where_not():
    codec = LabelCodec()
    codec.encode(["b", "a"], learn=True)
    assert codec.classes().tolist() == ["a", "b"]
    codec.encode([("x", 1), 3], learn=True)
    assert codec.classes().tolist() == ["b", "a", ("x", 1), 3]


def test_numpy_scalars_and_python_values_are_one_label():
    codec = LabelCodec()
    assert codec.encode(np.array([3, 1]), learn=True).tolist() == [0, 1]
    assert codec.encode([1, 3], learn=False).tolist() == [1, 0]


def _raises(*_, **__):
    raise KeyError("asked")


ASKED = ("__hash__", "__eq__", "__array__", "__iter__", "__float__", "__int__", "__index__", "__repr__", "bit_length")


@pytest.mark.parametrize("kind, value", [(tuple, (1, "a")), (str, "a"), (int, 3), (float, 2.5)])
def test_labels_of_derived_types_become_plain_and_are_asked_nothing(kind, value):
    label = type("Odd", (kind,), dict.fromkeys(ASKED, _raises))(value)
    codec = LabelCodec()
    assert codec.encode([label, (label, label)], learn=True).tolist() == [0, 1]
    assert codec.classes().tolist() == [value, (value, value)]
    assert type(codec.labels[0]) is type(codec.labels[1][0]) is kind and codec.find(label) == 0


def test_a_label_that_cannot_be_hashed_is_named():
    with pytest.raises(TypeError, match=r"hashable; got a list: \[1\]"):
        LabelCodec().encode([[1]], learn=True)


def test_unknown_labels_are_an_error_when_the_classes_are_closed_and_nothing_is_added():
    codec = LabelCodec(["a"], closed=True)
    with pytest.raises(ValueError, match=r"\['z'\]; known: 'a'"):
        codec.encode(["a", "z"], learn=True)
    assert codec.labels == ["a"]


def test_a_failed_batch_teaches_no_label():
    codec = LabelCodec()
    with pytest.raises(TypeError):
        codec.encode(["new", {}], learn=True)
    assert codec.labels == []


@pytest.mark.parametrize(
    "values", [np.array([3, 1, 3], dtype=np.int8), np.array([True, False]), np.array(["b", "a\0c"]), np.array([2**63])]
)
def test_labels_of_an_array_are_those_of_a_list(values):
    at_once, singly = LabelCodec(), LabelCodec()
    assert at_once.encode(values, learn=True).tolist() == singly.encode(list(values), learn=True).tolist()
    assert [(type(a), a) for a in at_once.labels] == [(type(b), b) for b in singly.labels]


def test_a_copy_learns_alone():
    codec = LabelCodec(["a"])
    copy = codec.copy()
    assert copy.encode(["b", "a"], learn=True).tolist() == [1, 0]
    assert (codec.labels, codec.find("b"), copy.closed) == (["a"], None, False)
    assert LabelCodec(["a"], closed=True).copy().closed


def test_labels_are_counted_as_often_as_they_come():
    codec = LabelCodec()
    codec.encode(["a", "b", "a"], learn=True)
    codec.encode(["a", "c"], np.array([5, 2]), learn=True)  # a row that comes five times, one that comes twice
    assert [codec.count(label) for label in "abcd"] == [7, 1, 2, 0]


def test_whole_numbers_beyond_those_of_arrays_are_not_rounded():
    codec = LabelCodec()
    codec.encode([2**63 + 1, 2**63 + 3, -1], learn=True)
    assert codec.classes().tolist() == [-1, 2**63 + 1, 2**63 + 3]


@pytest.mark.parametrize("label", [float("nan"), float("inf"), (1, float("nan"))])
def test_what_is_no_number_is_no_label(label):
    with pytest.raises(ValueError, match="must not be NaN or infinite"):
        LabelCodec().encode([label], learn=True)
