"""Rows kept as examples: which, how many, and that it does not matter how the stream was cut."""

import numpy as np
import pytest
import torch

from cndpm.model.watch.exemplars import Exemplars


def numbered(n, d=2):
    return torch.arange(float(n))[:, None].expand(n, d).contiguous()


def kept(n, *, capacity=100, seed=0, cut=None):
    exemplars = Exemplars(2, capacity=capacity, seed=seed)
    for part in torch.split(numbered(n), cut or n):
        exemplars.see(part)
    exemplars.join()
    return exemplars.rows[:, 0].astype(int)


def test_half_of_the_rows_are_the_latest():
    rows = kept(5000)
    assert len(rows) == 100
    assert rows[-50:].tolist() == list(range(4950, 5000))


def test_the_others_are_a_uniform_choice_of_all_before():
    older = np.concatenate([kept(5000, seed=seed)[:50] for seed in range(40)])
    shares = np.histogram(older, bins=5, range=(0, 4950))[0] / len(older)
    np.testing.assert_allclose(shares, 0.2, atol=0.04)
    assert len(set(kept(5000, seed=0)[:50]) & set(kept(5000, seed=1)[:50])) < 10


def test_everything_is_kept_while_there_is_room():
    assert kept(80).tolist() == list(range(80))


def test_the_choice_does_not_depend_on_how_the_stream_is_cut():
    for cut in (1, 7, 333):
        assert (kept(1000, cut=cut) == kept(1000)).all()


def test_rows_are_copies():
    x = numbered(20)
    exemplars = Exemplars(2, capacity=100, seed=0)
    exemplars.see(x)
    x.zero_()
    exemplars.join()
    assert exemplars.rows[:, 0].tolist() == list(range(20))


def test_a_state_goes_on_where_it_was():
    whole, half = Exemplars(2, capacity=50, seed=3), Exemplars(2, capacity=50, seed=3)
    whole.see(numbered(1000))
    half.see(numbered(1000)[:555])
    loaded = Exemplars(2, capacity=50, seed=3)
    loaded.load_state_dict(half.state_dict())
    loaded.see(numbered(1000)[555:])
    assert (loaded.rows == whole.rows).all() and loaded.n_seen == whole.n_seen == 1000
    assert loaded.state_dict()["coming"].equal(whole.state_dict()["coming"])


def test_long_rows_are_fewer():
    assert Exemplars(3 * 224 * 224, capacity=1000, seed=0).capacity < 20
    assert Exemplars(784, capacity=1000, seed=0).capacity == 1000


def test_kept_rows_are_in_the_order_they_came_and_join_as_often_however_the_stream_is_cut():
    assert (np.diff(kept(5000)) > 0).all()
    for cut in (1, 7, 333):
        parts, whole = (Exemplars(2, capacity=100, seed=0) for _ in range(2))
        whole.see(numbered(1000))
        for part in torch.split(numbered(1000), cut):
            parts.see(part)
        assert (parts.rows == whole.rows).all()


def test_rows_that_wait_do_not_follow_the_caller():
    for n in range(20, 60):
        x, exemplars = numbered(n), Exemplars(2, capacity=100, seed=0)
        exemplars.see(x)
        x.zero_()
        exemplars.join()
        assert exemplars.rows[:, 0].tolist() == list(range(n))


def test_rows_that_were_restored_join_those_of_another_device():
    exemplars = Exemplars(3, capacity=100, seed=0)
    exemplars._coming = [torch.ones(2, 3), torch.ones(1, 3, device="meta")]  # a device that every machine has
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):  # they are together there
        exemplars.state_dict()
