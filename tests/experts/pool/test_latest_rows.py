"""The latest rows and their neighbours, against loops over all rows that came."""

import numpy as np
import pytest

from cndpm.experts.pool.latest_rows import WINDOWS, LatestRows


def filled(n=700, room=400, cut=37, seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, 2)), rng.normal(size=(n, 1))
    rows = LatestRows(2, 1, room)
    for begin in range(0, n, cut):
        part = slice(begin, begin + cut)
        rows.add(x[part], y[part], x[part])
    return rows, x, y


@pytest.mark.parametrize("cut", [1, 37, 399, 700])
def test_the_latest_rows_are_kept_in_their_order_however_they_come(cut):
    rows, x, y = filled(cut=cut)
    assert len(rows) == 400 and rows.n == 700
    assert (rows.x == x[-400:]).all() and (rows.y == y[-400:]).all()
    assert rows.serial.tolist() == list(range(300, 700))


def test_the_nearest_of_each_window_are_found_the_nearer_the_heavier():
    rows, x, _ = filled(n=1500, room=1400)
    asked = np.random.default_rng(1).normal(size=(5, 2))
    near = rows.near(asked)
    for row in range(5):
        for (window, k), (at, weights, far) in zip(WINDOWS, near, strict=True):
            distance = np.linalg.norm(x[100:] - asked[row], axis=1)  # of those kept
            distance[: 1400 - min(window, 1400)] = np.inf
            nearest = np.argsort(distance)[:k]
            order = np.argsort(far[row])
            assert at[row, order].tolist() == nearest.tolist()
            assert far[row, order] == pytest.approx(distance[nearest] ** 2, rel=1e-4)
            expected = 1 / (1e-6 + distance[nearest])
            assert weights[row, order] == pytest.approx(expected / expected.sum(), rel=1e-4)


def test_a_row_that_is_kept_is_at_no_distance_from_itself():
    rows, x, _ = filled()
    for at, weights, far in rows.near(x[-100:]):
        assert (far.min(axis=1) == 0).all() and (weights.max(axis=1) > 0.99).all()
        assert at[np.arange(100), far.argmin(axis=1)].tolist() == list(range(300, 400))


def test_a_state_goes_on_to_the_same_rows_and_numbers():
    rows, *_ = filled()
    other = LatestRows(2, 1, 400)
    other.load_state_dict(rows.state_dict())
    for each in (rows, other):
        each.add(np.ones((3, 2)), np.ones((3, 1)), np.ones((3, 2)))
    assert (rows.serial == other.serial).all() and rows.n == other.n == 703
    asked = np.zeros((2, 2))
    for mine, theirs in zip(rows.near(asked), other.near(asked), strict=True):
        assert all((a == b).all() for a, b in zip(mine, theirs, strict=True))


def test_without_room_rows_are_counted_and_none_is_near():
    rows = LatestRows(2, 1, 0)
    rows.add(np.ones((9, 2)), np.ones((9, 1)), np.ones((9, 2)))
    assert (len(rows), rows.n) == (0, 9)
    assert all(part.shape == (3, 0) for found in rows.near(np.zeros((3, 2))) for part in found)
