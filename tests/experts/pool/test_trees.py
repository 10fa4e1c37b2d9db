"""Trees that take turns: what they are grown on, what they answer, and which states are refused."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from cndpm.experts.pool import ClassPool, trees
from cndpm.experts.pool.kept_rows import KeptRows
from cndpm.experts.pool.trees import Trees, _is_drawn
from cndpm.state import StateError


def drawn(n, seed=0):
    """Rows in a square of two by two fields whose colours differ, as on a board."""
    x = np.random.default_rng(seed).uniform(size=(n, 3))
    return x, (x[:, :2] > 0.5).sum(axis=1) % 2


def kept(x, y, n_labels=2):
    rows = KeptRows(x.shape[1], room=2 * len(x))
    rows.admit(n_labels)
    rows.add(x, rows.place(x), y)
    return rows


def grown(n_trees, x, y, n_labels=2):
    made = Trees()
    made.admit(n_labels)
    for _ in range(n_trees):
        made.grown_at = -len(x)  # so that another is due
        made.grow(kept(x, y, n_labels), seed=0)
    return made


@pytest.fixture(scope="module")
def forest():
    return grown(10, *drawn(1000))


def test_a_tree_is_walked_as_scikit_learn_walks_it():
    x, y = drawn(400)
    trees, mine = grown(1, x, y), _is_drawn(np.arange(400), 0)
    theirs = DecisionTreeClassifier(max_features="sqrt", random_state=0).fit(x[mine], y[mine])
    asked = drawn(500, seed=1)[0]
    assert trees.answer(asked)[0].argmax(axis=1).tolist() == theirs.predict(asked).tolist()


@pytest.mark.parametrize("n", [1, 7])
def test_few_rows_come_to_the_same_leaves_as_many(forest, n):
    asked = drawn(1000, seed=3)[0]
    assert n * len(forest.columns) <= trees._ALL_NODES < 1000 * len(forest.columns)
    assert np.array_equal(forest._leaves(asked[:n]), forest._leaves(asked)[:, :n])
    for labels in (3, 5):  # and answers do not rest on what was before there were more labels
        forest = deepcopy(forest)
        forest.admit(labels)
        assert forest.answer(asked[:n]).shape == (1, n, labels)


def test_votes_are_counted_and_divided_by_how_often_labels_came(forest):
    x, y = drawn(50, seed=2)
    one_by_one = [grown(10, *drawn(1000))._leaves(x)[t] for t in range(10)]
    votes = np.stack([(forest.labels[np.array(one_by_one)] == c).sum(axis=0) for c in (0, 1)], axis=1)
    expected = np.log(votes + 0.1) - np.log(forest.shares.mean(axis=0) + 0.1)
    np.testing.assert_allclose(forest.answer(x)[0], expected, atol=1e-12)
    assert (forest.answer(x)[0].argmax(axis=1) == y).mean() > 0.9


def test_rows_that_were_kept_are_asked_of_trees_that_never_met_them():
    x = np.random.default_rng(0).normal(size=(600, 3))
    y = np.random.default_rng(1).integers(0, 2, 600)  # nothing to be learned
    trees, serial = grown(10, x, y), np.arange(600)
    assert (trees.answer(x)[0].argmax(axis=1) == y).mean() > 0.85  # they know these rows by heart
    assert (trees.answer(x, serial)[0].argmax(axis=1) == y).mean() < 0.6


def test_every_tree_has_five_rows_in_eight_of_its_own():
    each = _is_drawn(np.arange(20000), np.arange(20)[:, None])
    assert np.allclose(each.mean(axis=1), 5 / 8, atol=0.02)
    both = np.corrcoef(each.astype(float)) - np.eye(20)
    assert np.abs(both).max() < 0.05


def test_the_oldest_of_ten_makes_way():
    trees = grown(13, *drawn(300))
    assert trees.numbers.tolist() == list(range(3, 13)) and len(trees.shares) == 10
    assert trees.sizes.sum() == len(trees.columns) == len(trees.labels)


def test_another_is_grown_after_a_part_more_rows():
    trees, rows = grown(1, *drawn(1000)), kept(*drawn(1000))
    rows.room = 5000

    def is_grown(n, grown_at=1000):
        trees.grown_at, rows.n, before = grown_at, n, trees.n_grown
        trees.grow(rows, seed=0)
        return trees.n_grown > before

    assert not is_grown(1041)
    assert is_grown(1042)  # of which 0.04 are 41.7
    assert not is_grown(100_199, grown_at=100_000)
    assert is_grown(100_200, grown_at=100_000)  # 0.04 of all that there is room for


def test_a_tree_is_grown_on_half_of_what_there_is_room_for():
    x, y = drawn(1000)
    rows, trees = kept(x, y), Trees()
    rows.room = 100
    trees.admit(2)
    trees.grow(rows, seed=0)
    mine = np.flatnonzero(_is_drawn(np.arange(1000), 0))[-50:]
    theirs = DecisionTreeRegressor(max_features="sqrt", random_state=0).fit(x[mine], np.eye(2)[y[mine]])
    assert trees.sizes.tolist() == [theirs.tree_.node_count]


def test_rows_of_which_hardly_two_have_one_label_grow_no_tree():
    x, _ = drawn(60)
    assert not len(grown(1, x, np.arange(60) // 2, n_labels=30)) and len(grown(1, x, np.arange(60) // 20, n_labels=3))


def test_after_a_beginning_only_later_rows_count():
    x, y = drawn(800)
    trees = grown(3, x, y)
    trees.begin(500)
    assert not len(trees) and not trees.answer(x[:3]).any()
    trees.grown_at = 0
    trees.grow(kept(x, np.where(np.arange(800) < 500, y, 1 - y)), seed=0)
    told = trees.answer(x[500:])[0].argmax(axis=1)
    assert (told == 1 - y[500:]).mean() > 0.95


def test_labels_get_other_numbers(forest):
    x, _ = drawn(40, seed=3)
    before = forest.answer(x)[0]
    other = Trees()
    other.load_state_dict(forest.state_dict(), d=3)
    other.relabel(np.array([2, 0, 1]))
    after = other.answer(x)[0]
    np.testing.assert_array_equal(after[:, [2, 0]], before)
    assert not after[:, 1].any()  # a label that no tree has met


def test_it_is_restored_to_the_bit(forest):
    other, x = Trees(), drawn(60, seed=4)[0]
    other.load_state_dict(forest.state_dict(), d=3)
    np.testing.assert_array_equal(other.answer(x), forest.answer(x))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("below", lambda v: v - 1),
        ("above", lambda v: v + len(v)),
        ("below", lambda v: torch.where(torch.arange(len(v)) == len(v) - 1, 1, v)),
        ("columns", lambda v: v + 3),
        ("labels", lambda v: v + 2),
        ("sizes", lambda v: v + 1),
        ("thresholds", lambda v: v * torch.nan),
        ("above", lambda v: 0 * v),
        ("above", lambda v: torch.where(v > 0, 1, v)),  # the node that is below, too
        ("above", lambda v: torch.where(torch.arange(len(v)) == 0, 0, v)),  # a root leads to itself
    ],
)
def test_a_wrong_state_is_refused(forest, name, change):
    state = forest.state_dict()
    state[name] = change(state[name])
    with pytest.raises(StateError, match=r"same tree|from 0 on|below 3|below 2|finite"):
        Trees().load_state_dict(state, d=3)


def test_sizes_whose_sum_wraps_around_are_refused(forest):
    state = forest.state_dict()
    state["sizes"][:4] += 2**62
    with pytest.raises(StateError, match="same tree"):
        Trees().load_state_dict(state, d=3)


def test_negative_shares_are_refused(forest):
    state = forest.state_dict()
    state["shares"] -= 1
    with pytest.raises(StateError, match="negative"):
        Trees().load_state_dict(state, d=3)


def test_more_trees_than_ever_stand_are_refused(forest):
    state = forest.state_dict()
    for name, value in list(state.items()):
        if isinstance(value, torch.Tensor):
            state[name] = torch.cat([value, value])
    with pytest.raises(StateError, match="10 trees at most; got 20"):
        Trees().load_state_dict(state, d=3)


def test_a_pool_tells_fields_that_thresholds_within_thresholds_tell():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(2600, 8))
    y = ((x[:, :4] > 0.5) @ [8, 4, 2, 1] * 7 % 16 % 3).astype(int)  # sixteen fields of three colours, four idle columns
    pool = ClassPool(8)
    for start in range(0, 2000, 10):
        pool.learn(x[start : start + 10], y[start : start + 10])
    assert (pool.answer(x[2000:]).argmax(axis=1) == y[2000:]).mean() > 0.9
    assert pool.shares["trees"] > 0.3


def test_a_rule_that_is_founded_has_trees_of_its_own_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 3))
    y = (x[:, 0] > 0).astype(int)
    y[500:] = 1 - y[500:]
    pool = ClassPool(3)
    for start in range(0, 900, 10):
        pool.learn(x[start : start + 10], y[start : start + 10])
    assert pool.n_rules == 2 and 490 <= pool._trees.since <= 560
    told = pool._trees.answer(pool._maps.units(x[700:]))[0].argmax(axis=1)
    assert (told == y[700:]).mean() > 0.9
