"""Which rows are kept against a plain list, and what neighbours say against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from cndpm.experts.pool.kept_rows import N_NEIGHBOUR_MEMBERS, KeptRows, neighbours
from cndpm.state import StateError

N_LABELS = 4
histories = st.lists(st.lists(st.integers(0, N_LABELS - 1), min_size=1, max_size=12), min_size=1, max_size=6)


def kept(batches, room, d=2, seed=0):
    rows, rng = KeptRows(d, room), np.random.default_rng(seed)
    rows.admit(N_LABELS)
    shown = []
    for labels in batches:
        x = rng.normal(size=(len(labels), d))
        rows.add(x, rows.place(x), np.array(labels))
        shown += list(zip(x.tolist(), labels, strict=True))
    return rows, shown


def plainly_kept(shown, room):
    """The same by a list of (row, label, serial)."""
    held = []
    for serial, (x, label) in enumerate(shown):
        if len(held) == room:
            counts = [sum(one[1] == y for one in held) for y in range(N_LABELS)]
            held.remove(next(one for one in held if one[1] == int(np.argmax(counts))))
        held.append((x, label, serial))
    return held


def listed(rows):
    """Rows, labels and numbers in the order of the stream."""
    order = np.argsort(rows.serial)
    return list(zip(rows.x[order].tolist(), rows.y[order].tolist(), rows.serial[order].tolist(), strict=True))


@given(histories, st.integers(1, 15))
def test_the_label_that_has_most_rows_gives_up_its_oldest(batches, room):
    rows, shown = kept(batches, room)
    assert listed(rows) == plainly_kept(shown, room)
    assert rows.n == len(shown) and rows.is_whole == (len(shown) <= room)
    for label in range(N_LABELS):
        n = sum(one[1] == label for one in shown)
        mine = np.sort(rows.nth[rows.y == label])
        assert rows.counts[label] == n
        assert mine.tolist() == list(range(n - len(mine), n))  # its latest


def test_rows_of_a_label_that_stays_away_are_not_displaced():
    rows, _ = kept([[0] * 4, [1] * 50], room=10)
    assert np.bincount(rows.y).tolist() == [4, 6]


@given(histories, st.integers(1, 20))
def test_the_latest_of_every_label_are_as_many_as_fit(batches, room):
    rows, _ = kept(batches, 40)
    at = rows.latest(room)
    if len(rows) <= room:
        assert at.tolist() == list(range(len(rows)))
        return
    n = np.bincount(rows.y, minlength=N_LABELS)

    def total(depth):
        return int(np.minimum(n, depth).sum())

    depth = max([1, *(h for h in range(1, n.max() + 1) if total(h) <= room)])
    expected = [i for i in range(len(rows)) if rows.counts[rows.y[i]] - rows.nth[i] <= depth]
    assert at.tolist() == expected


@given(histories, st.integers(3, 30), st.data())
def test_dropped_rows_are_as_if_they_had_never_come(batches, room, data):
    rows, shown = kept(batches, room)
    size = len(rows)
    is_gone = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=bool)
    gone = set(rows.serial[is_gone].tolist())
    rows.drop(is_gone)
    left = [one for serial, one in enumerate(shown) if serial not in gone]
    assert rows.n == len(left)
    assert [shown[0] for shown in listed(rows)] == [
        x for serial, (x, _) in enumerate(shown) if serial not in gone and x in rows.x.tolist()
    ]
    assert all(left[serial] == (x, label) for x, label, serial in listed(rows))
    assert rows.counts.tolist() == [sum(one[1] == label for one in left) for label in range(N_LABELS)]
    more = np.random.default_rng(1).normal(size=(5, 2))
    rows.add(more, rows.place(more), np.arange(5) % N_LABELS)  # and the stream goes on behind them
    assert len(set(rows.serial.tolist())) == len(rows)
    assert [one[0] for one in listed(rows)][-1] == more[-1].tolist()


@given(histories, st.permutations(range(N_LABELS)))
def test_relabelling_gives_rows_other_labels_and_nothing_else(batches, places):
    rows, shown = kept(batches, 12)
    other, _ = kept([[places[label] for label in labels] for labels in batches], 60)
    rows.relabel(np.array(places))
    assert all(shown[serial] == (x, places.index(label)) for x, label, serial in listed(rows))
    assert rows.counts.tolist() == other.counts.tolist()


def test_distances_are_those_of_scikit_learn_plain_and_whitened():
    rows, _ = kept([[0, 1, 2] * 20], 100, d=3)
    z = np.random.default_rng(5).normal(size=(7, 3))
    covariance = np.cov(np.random.default_rng(6).normal(size=(3, 30)))
    rows.measure(rows.x.copy(), np.linalg.cholesky(np.linalg.inv(covariance)))
    placed = rows.place(z)
    plain, whitened = rows.squares(placed) + placed[..., -1].T[..., None]
    for squares, asked, others in ((plain, z, rows.x), (whitened, z @ rows.metric, rows.x @ rows.metric)):
        reference = NearestNeighbors(n_neighbors=60).fit(others)
        distances, at = reference.kneighbors(asked)
        np.testing.assert_allclose(np.sqrt(np.take_along_axis(squares, at, axis=1)), distances, atol=1e-3)
    away = z[0] - rows.x[4]
    assert whitened[0, 4] == pytest.approx(away @ np.linalg.inv(covariance) @ away, rel=1e-3)  # Mahalanobis


def plain_votes(z, x, y, k, n_labels=N_LABELS):
    """Log votes less log shares, by a loop over scikit-learn's neighbours."""
    distances, at = NearestNeighbors(n_neighbors=k).fit(x).kneighbors(z)
    votes = np.zeros((len(z), n_labels))
    for i in range(len(z)):
        weights = 1 / (1e-6 + distances[i])
        for weight, label in zip(k * weights / weights.sum(), y[at[i]], strict=True):
            votes[i, label] += weight
    return np.log(votes + 0.1) - np.log(np.bincount(y, minlength=n_labels) / len(y) + 0.1)


def test_members_vote_by_the_nearest_of_the_latest_200_and_of_all():
    batches = np.random.default_rng(0).integers(N_LABELS, size=(13, 100)).tolist()
    rows, _ = kept(batches, 5000)
    z = np.random.default_rng(1).normal(size=(9, 2))
    told = neighbours(rows, rows.place(z))
    assert len(told) == N_NEIGHBOUR_MEMBERS
    for member, (room, k) in enumerate([(200, 5), (5000, 5), (5000, 5)]):
        at = rows.latest(room)
        np.testing.assert_allclose(told[member], plain_votes(z, rows.x[at], rows.y[at], k), atol=1e-4)


def test_windows_that_hold_all_rows_say_the_same():
    rows, _ = kept([[0, 1, 2] * 30], 100)
    told = neighbours(rows, rows.place(np.zeros((2, 2))))
    np.testing.assert_array_equal(told[0], told[1])


def test_a_row_does_not_vote_for_itself():
    rng = np.random.default_rng(2)
    rows = KeptRows(2, 100)
    rows.admit(N_LABELS)
    x, y = rng.normal(size=(60, 2)), rng.integers(2, size=60)
    rows.add(x, rows.place(x), y)
    told = neighbours(rows, rows.place(x[:1]), without_itself=True)[0]
    others = plain_votes(x[:1], x[1:], y[1:], 5)
    shares = [np.bincount(one, minlength=N_LABELS) / len(one) for one in (y, y[1:])]  # which are those of all rows
    np.testing.assert_allclose(told + np.log(shares[0] + 0.1), others + np.log(shares[1] + 0.1), atol=1e-5)


@given(histories)
def test_what_neighbours_say_does_not_depend_on_what_else_is_asked(batches):
    rows, _ = kept(batches, 30)
    asked = np.concatenate([rows.x, rows.x + 3])
    together = neighbours(rows, rows.place(asked))
    for i in range(len(asked)):
        np.testing.assert_allclose(
            neighbours(rows, rows.place(asked[i : i + 1]))[:, 0], together[:, i], rtol=1e-9, atol=1e-9
        )


@pytest.mark.parametrize("n", [8, 12])
def test_where_all_rows_are_the_same_none_votes_for_itself(n):
    rows = KeptRows(2, 100)
    rows.admit(2)
    rows.add(np.ones((n, 2)), rows.place(np.ones((n, 2))), np.arange(n) % 2)
    told = neighbours(rows, rows.place(np.ones((1, 2))), without_itself=True)
    np.testing.assert_allclose(told, np.log(0.1) - np.log(0.6))


def test_few_rows_say_nothing():
    rows, _ = kept([[0, 1, 0, 1, 0]], 100)
    assert not neighbours(rows, rows.place(np.zeros((3, 2)))).any()


def test_no_room_keeps_no_row_and_counts_them():
    rows, _ = kept([[0, 1], [2]], 0)
    assert (len(rows), rows.n, rows.n_bytes) == (0, 3, 0)


@given(histories, st.integers(1, 12))
def test_state_resumes_to_the_bit(batches, room):
    rows, _ = kept(batches, room)
    resumed = KeptRows(2, room)
    resumed.load_state_dict(rows.state_dict())
    resumed.measure(resumed.x, resumed.metric)
    more = np.random.default_rng(3).normal(size=(8, 2))
    for one in (rows, resumed):
        one.add(more, one.place(more), np.arange(8) % N_LABELS)
    np.testing.assert_array_equal(rows.x, resumed.x)
    np.testing.assert_array_equal(neighbours(rows, rows.place(more)), neighbours(resumed, resumed.place(more)))


@pytest.mark.parametrize(("name", "changed"), [("y", lambda y: y + N_LABELS), ("nth", lambda nth: nth[:-1]), ("n", -1)])
def test_a_wrong_state_is_refused(name, changed):
    rows, _ = kept([[0, 1, 2]], 5)
    state = rows.state_dict()
    state[name] = changed(state[name]) if callable(changed) else changed
    with pytest.raises(StateError, match=name):
        KeptRows(2, 5).load_state_dict(state)
