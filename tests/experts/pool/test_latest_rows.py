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


def test_means_are_those_of_the_nearest_of_each_window_the_nearer_the_heavier():
    rows, x, y = filled(n=1500, room=1400)
    asked = np.random.default_rng(1).normal(size=(5, 2))
    near = rows.near(asked)
    means = [(weights * rows.y[at, 0]).sum(axis=1) for at, weights, _ in near]
    for row in range(5):
        for i, (window, k) in enumerate(WINDOWS):
            latest = slice(1500 - min(window, 1400), 1500)
            distance = np.linalg.norm(x[latest].astype(np.float32) - asked[row].astype(np.float32), axis=1)
            nearest = np.argsort(distance)[:k]
            weights = 1 / (1e-6 + distance[nearest])
            assert means[i][row] == pytest.approx(np.average(y[latest][nearest, 0], weights=weights), rel=1e-4)
            assert near[i][2][row].mean() == pytest.approx((distance[nearest] ** 2).mean(), rel=1e-4)


def test_a_state_goes_on_to_the_same_rows_and_numbers():
    rows, *_ = filled()
    other = LatestRows(2, 1, 400)
    other.load_state_dict(rows.state_dict())
    for each in (rows, other):
        each.add(np.ones((3, 2)), np.ones((3, 1)), np.ones((3, 2)))
    assert (rows.serial == other.serial).all() and rows.n == other.n == 703
    asked = np.zeros((2, 2))
    for here, there in zip(rows.near(asked), other.near(asked), strict=True):
        assert all((a == b).all() for a, b in zip(here, there, strict=True))


def test_without_room_rows_are_counted_and_none_is_near():
    rows = LatestRows(2, 1, 0)
    rows.add(np.ones((9, 2)), np.ones((9, 1)))
    assert (len(rows), rows.n) == (0, 9)
    assert all(at.shape == (3, 0) for at, _, _ in rows.near(np.zeros((3, 2))))
