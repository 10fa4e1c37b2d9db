"""Arrays from outside: what can be learned is taken, everything else is refused by name."""

import enum
from collections import deque

import numpy as np
import pytest
import torch
from scipy import sparse

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.estimators.arrays import admit_number, as_array, readable, whole_number
from cndpm.estimators.label_codec import LabelCodec

RNG = np.random.default_rng(0)


class Offered:
    """Offers an array, as tables of other libraries do."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


class Raising:
    """Raises when it is asked for an array, or how long it is."""

    def __array__(self, *_, **__):
        raise KeyError("array")

    def __len__(self):
        raise KeyError("len")


@pytest.mark.parametrize("value", [3e38, -3e38, 1e16, 2e15])
def test_values_that_are_too_large_are_refused_with_their_place_and_set_aside_in_rows(value):
    rows = RNG.normal(size=(20, 4))
    rows[7, 2] = value
    model = CNDPMDensity(memory_size=10).fit(rows)
    assert model.learner_.describe()["n_set_aside"] == 1
    assert np.isfinite(model.score_samples(rows)).all()
    with pytest.raises(ValueError, match=r"X\[7, 2\] is .*values up to 1e\+15 can be learned"):
        CNDPMDensity(input_shape=(1, 2, 2)).fit(rows)
    with pytest.raises(ValueError, match=r"values up to 1e\+15 can be learned"):
        CNDPMDensity().fit(np.full((20, 4), value))
    with pytest.raises(ValueError, match=r"y\[3\] is .*values up to 1e\+15"):
        CNDPMRegressor().fit(rows[:4], [0, 1, 2, value])


@pytest.mark.parametrize("value", [1e15, -1e12, 1e-45, 0.0])
def test_extreme_values_below_that_are_learned(value):
    rows = RNG.normal(size=(60, 3))
    rows[30:, 1] = value
    for model in (CNDPMDensity(memory_size=20).fit(rows), CNDPMDensity(memory_size=20).fit(np.full((30, 2), value))):
        assert np.isfinite(model.score_samples(rows[:, : model.n_features_in_])).all()
    assert np.isfinite(CNDPMRegressor(memory_size=20).fit(rows, rows[:, 1]).predict(rows)).all()


def test_every_label_its_own_is_learned():
    rows = RNG.normal(size=(500, 4))
    model = CNDPMClassifier(memory_size=50, random_state=0, settings={"n_fourier": 32}).fit(rows, list(range(500)))
    assert len(model.classes_) == 500
    assert np.isfinite(model.predict_proba(rows[:20])).all()


def test_one_sample_constant_and_duplicate_columns_are_learned():
    assert CNDPMClassifier().fit([[1.0, 2.0]], ["only"]).predict([[5.0, 5.0]]).tolist() == ["only"]
    rows = np.repeat(RNG.normal(size=(60, 1)), 3, axis=1)
    rows[:, 2] = 7.0
    model = CNDPMClassifier(memory_size=20, random_state=0).fit(rows, rows[:, 0] > 0)
    assert model.score(rows, rows[:, 0] > 0) > 0.9


def test_tensors_of_any_kind_are_arrays():
    values = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    for tensor in (values, values.bfloat16(), values.to_sparse(), values.clone().requires_grad_()):
        assert as_array(tensor, "X").tolist() == values.tolist()
    with pytest.raises(ValueError, match="X is a tensor on the device 'meta'"):
        as_array(values.to("meta"), "X")
    with pytest.raises(ValueError, match="Complex data not supported"):
        as_array(values.to(torch.complex64), "X")


def test_masked_values_are_refused_and_masks_of_nothing_are_not():
    rows = np.ma.masked_array(np.ones((3, 2)), mask=False)
    assert type(as_array(rows, "X")) is np.ndarray
    rows[1, 1] = np.ma.masked
    with pytest.raises(ValueError, match="X has 1 masked values"):
        as_array(rows, "X")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_masked_values_of_sparse_matrices_are_refused(kind):
    made = sparse.csr_matrix(np.eye(3)).asformat(kind)
    if kind == "lil":
        made.data[1] = [np.ma.masked]
    elif kind == "dok":
        made._dict[1, 1] = np.ma.masked
    else:
        made.data = np.ma.masked_array(made.data, mask=made.data == 0)
        made.data.flat[0] = np.ma.masked
    with pytest.raises(ValueError, match="X has 1 masked values"):
        as_array(made, "X")


@pytest.mark.parametrize("kind", [CNDPMClassifier, CNDPMRegressor])
def test_masked_targets_and_weights_are_refused_by_scores_too(kind):
    X, y = RNG.normal(size=(30, 3)), np.arange(30) % 2
    model, masked = kind(memory_size=10, random_state=0).fit(X, y), np.ma.masked_array(np.ones(30), mask=y == 0)
    for given in ((X, masked), (X, y, masked)):
        with pytest.raises(ValueError, match="15 masked values"):
            model.score(*given)
    with pytest.raises(TypeError, match="cannot be read"):
        model.score(X, Raising())
    assert model.score(X, y, np.ones(30)) == model.score(X, y)


def test_what_only_looks_like_an_array_is_a_type_error():
    with pytest.raises(TypeError, match="X cannot be read as an array of numbers: KeyError"), readable("X"):
        raise KeyError("no")
    with pytest.raises(ValueError, match="as it is"), readable("X"):
        raise ValueError("as it is")


def test_numbers_in_arguments_are_checked():
    assert whole_number(np.int64(3), "n", least=1, most=5) == 3
    for value, error in ((0, ValueError), (6, ValueError), (2.0, TypeError), (True, TypeError), ("3", TypeError)):
        with pytest.raises(error, match="n must"):
            whole_number(value, "n", least=1, most=5)
    assert admit_number(np.float32(0.5), "threshold") == 0.5
    for value, error in ((float("nan"), ValueError), ("a", TypeError), (None, TypeError)):
        with pytest.raises(error, match="threshold must be a number"):
            admit_number(value, "threshold")


class Colour(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("label", "error", "message"),
    [
        (b"a", TypeError, "got a bytes"),
        (frozenset({1}), TypeError, "got a frozenset"),
        ((1, [2]), TypeError, "hashable"),
        (1j, TypeError, "got a complex"),
        (np.datetime64("2020-01-01"), TypeError, "got a date"),
        (10**400, ValueError, "at most 1024 bits"),
        (("a", float("nan")), ValueError, "NaN"),
    ],
)
def test_labels_that_a_file_cannot_hold_are_refused_when_they_arrive(label, error, message):
    with pytest.raises(error, match=message):
        LabelCodec().encode([label], learn=True)


def test_a_label_of_very_deep_tuples_is_refused_without_walking_to_its_end():
    label = 1
    for _ in range(200_000):
        label = (label,)
    with pytest.raises(TypeError, match="got a tuple"):
        LabelCodec().encode([label], learn=True)


@pytest.mark.parametrize("labels", [[-1, 2**63], [2**64, 1], ["a\0", "b"], ["", "\ud800"], [(1, (None, "a")), (2,)]])
def test_classes_are_the_labels_to_the_last_digit_and_survive_saving(labels, tmp_path):
    model = CNDPMClassifier(random_state=0).partial_fit(RNG.normal(size=(2, 3)), labels)
    assert sorted(map(repr, model.classes_.tolist())) == sorted(map(repr, labels))
    model.save(tmp_path / "model")
    assert CNDPMClassifier.load(tmp_path / "model").classes_.tolist() == model.classes_.tolist()


def test_members_of_enumerations_are_what_they_equal():
    codec = LabelCodec()
    assert codec.encode([Colour.RED, 3], learn=True).tolist() == [0, 0]
    assert type(codec.labels[0]) is int


@pytest.mark.parametrize("estimator", [CNDPMClassifier, CNDPMRegressor, CNDPMDensity])
def test_first_rows_of_which_none_can_be_learned_are_refused(estimator):
    beyond = np.array([[0.0, 1e20], [1.0, -3e38]], dtype=np.float32)
    for call in (estimator().fit, estimator().partial_fit):
        with pytest.raises(ValueError, match="values up to 1e"):
            call(beyond, [0, 1]) if estimator is not CNDPMDensity else call(beyond)


def sparse_matrices():
    """Matrices (6, 4) whose parts do not fit each other, by what is wrong."""
    made = {}
    for kind in ("csr", "csc", "bsr"):
        good = sparse.random(6, 4, density=0.5, random_state=0, format=kind)
        for part, value in (("indices", 10**6), ("indices", -7), ("indptr", 10**6), ("indptr", -7)):
            bad = good.copy()
            getattr(bad, part)[2] = value
            made[f"{kind}, {part} {value}"] = bad
        longer = good.copy()
        longer.indptr[-1] = 10**6
        made[f"{kind}, beyond its end"] = longer
    coo = sparse.random(6, 4, density=0.5, random_state=0, format="coo")
    coo.coords[1][0] = 10**6
    lil = sparse.random(6, 4, density=0.5, random_state=0, format="lil")
    lil.data[1] = [1.0] * 1000
    dia = sparse.dia_matrix((np.ones((2, 4)), [0, 1]), shape=(6, 4))
    dia.offsets = np.arange(500)
    short = sparse.random(6, 4, density=0.5, random_state=0, format="lil")
    short._shape = (3, 4)  # compiled code would write six rows where there is room for three
    long = sparse.random(6, 4, density=0.5, random_state=0, format="lil")
    long.rows, long.data = long.rows[:3], long.data[:3]
    next_to = sparse.csr_matrix(np.eye(4))
    next_to.indices = np.array([0, 1, 2, 4], dtype=np.int32)  # the first place that is outside
    flat = sparse.random(6, 4, density=0.5, random_state=0, format="csr")
    flat.data = np.repeat(flat.data[:, None], 2, axis=1)  # compiled code would take the first half for all
    return made | {
        "values in two columns": flat,
        "one column too far": next_to,
        "coo": coo,
        "lil": lil,
        "short lil": short,
        "long lil": long,
        "dia": dia,
    }


@pytest.mark.parametrize("what", sparse_matrices())
def test_sparse_matrices_whose_parts_do_not_fit_are_refused(what):
    with pytest.raises(ValueError, match=r"X is a sparse matrix whose indices do not fit|Make it anew"):
        as_array(sparse_matrices()[what], "X")


@pytest.mark.parametrize("n_columns", [3, 1 << 40])
def test_sparse_rows_of_other_columns_are_refused_before_they_are_written_out(n_columns):
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = CNDPMClassifier(memory_size=6, random_state=0, settings={"representations": "one"}).fit(X, [0, 1] * 6)
    with pytest.raises(ValueError, match=f"X has {n_columns} features, but CNDPMClassifier is expecting 2"):
        model.predict(sparse.coo_matrix(([1.0], ([0], [0])), shape=(6, n_columns)))


def test_sound_sparse_matrices_of_every_kind_are_taken_and_left_alone():
    dense = sparse.random(6, 4, density=0.5, random_state=0).toarray()
    for kind in ("csr", "csc", "bsr", "coo", "lil", "dok", "dia"):
        for make in (sparse.csr_matrix, sparse.csr_array):
            given = make(dense).asformat(kind)
            assert np.array_equal(as_array(given, "X").toarray(), dense), kind
            assert np.array_equal(given.toarray(), dense)
    assert as_array(sparse.csr_matrix((0, 4)), "X").shape == (0, 4)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_tensors_whose_parts_do_not_fit_are_refused():
    options = {"size": (2, 2), "check_invariants": False}
    coo = torch.sparse_coo_tensor(torch.tensor([[0], [9_000_000]]), torch.ones(1), **options)
    csr = torch.sparse_csr_tensor(torch.tensor([0, 1, 1]), torch.tensor([9_000_000]), torch.ones(1), **options)
    for tensor in (coo, csr):
        with pytest.raises((TypeError, ValueError), match="X cannot be read"):
            as_array(tensor, "X")
    good = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    for sound in (good.to_sparse_csr(), good.to_sparse_csc(), good.to_sparse_bsr((1, 1)), good.to_sparse_bsc((1, 1))):
        assert as_array(sound, "X").tolist() == good.tolist()


@pytest.mark.parametrize(
    "values",
    [
        np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        [np.ma.masked_array([1.0, 2.0], mask=[True, False]), [1.0, 2.0]],
        [[1.0, np.ma.masked]],
        (1.0, np.ma.masked),
        np.array([[1.0, np.ma.masked]], dtype=object),
        deque([np.ma.masked_array([1.0, 2.0], mask=[True, False])]),
        Offered(np.ma.masked_array([1.0, 2.0], mask=[True, False])),
    ],
)
def test_masked_values_are_refused_wherever_they_are(values):
    with pytest.raises(ValueError, match="y has 1 masked values"):
        as_array(values, "y")


class Hostile:
    """Raises, when it is read, what no caller of a library expects."""

    shape, dtype = (12, 3), np.dtype("float32")

    def __len__(self):
        return 12

    def __array__(self, *_, **__):
        raise KeyError("array")

    def __getitem__(self, _):
        raise ZeroDivisionError

    def __iter__(self):
        raise LookupError("iter")


@pytest.mark.parametrize("argument", ["X", "y", "sample_weight", "classes"])
def test_objects_that_raise_when_they_are_read_are_refused_by_name(argument):
    rows = RNG.normal(size=(12, 3))
    given = {"X": rows, "y": [0, 1] * 6, "sample_weight": np.ones(12), "classes": [0, 1]} | {argument: Hostile()}
    for model in (CNDPMClassifier(), CNDPMClassifier().partial_fit(rows, [0, 1] * 6, classes=[0, 1])):
        with pytest.raises(TypeError, match=f"{argument} cannot be read"):
            model.partial_fit(**given)
    if argument != "classes":
        del given["classes"]
        with pytest.raises(TypeError, match=f"{argument} cannot be read"):
            CNDPMRegressor().fit(**given)


def test_masked_weights_are_refused():
    rows = RNG.normal(size=(12, 3))
    with pytest.raises(ValueError, match="sample_weight has 12 masked values"):
        CNDPMRegressor().fit(rows, rows[:, 0], sample_weight=np.ma.masked_array(np.ones(12), mask=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_views_that_run_backwards_are_learned_as_their_copies_are(dtype):
    rows = RNG.normal(size=(40, 3)).astype(dtype)[::-1, ::-1]
    answers = []
    for x, y in ((rows, rows[:, 0]), (rows.copy(), rows[:, 0].copy())):
        regressor = CNDPMRegressor(random_state=0).fit(x, y).partial_fit(x, y)
        answers.append(regressor.predict(x, return_std=True))
    assert np.array_equal(*answers)
