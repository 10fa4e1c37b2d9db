import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from cndpm.streams.ordering import batch_sizes, blur, draw_stage


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(0, 99), st.data())
def test_without_replacement_no_row_comes_twice(lengths, seed, data):
    candidates = [100 * i + np.arange(n) for i, n in enumerate(lengths)]
    n = data.draw(st.integers(1, sum(lengths)))
    rows = draw_stage(candidates, n, replacement=False, rng=np.random.default_rng(seed))
    assert len(set(rows.tolist())) == n and set(rows.tolist()) <= set(np.concatenate(candidates).tolist())


def test_too_many_without_replacement_is_an_error():
    with pytest.raises(ValueError, match=r"6 samples .* from 5"):
        draw_stage([np.arange(5)], 6, replacement=False, rng=np.random.default_rng(0))


def test_with_replacement_all_rows_are_equally_likely():
    rows = draw_stage([np.arange(3), np.arange(3, 10)], 50_000, replacement=True, rng=np.random.default_rng(0))
    shares = np.bincount(rows, minlength=10) / len(rows)
    np.testing.assert_allclose(shares, 0.1, atol=4 * np.sqrt(0.09 / len(rows)))


def test_weights_are_the_shares_of_the_subsets_whatever_their_sizes():
    candidates = [np.arange(500), np.arange(500, 510)]
    rows = draw_stage(candidates, 50_000, weights=[30, 70], replacement=True, rng=np.random.default_rng(0))
    assert (rows >= 500).mean() == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / 50_000))
    assert set(rows[rows >= 500].tolist()) == set(range(500, 510))


@given(st.integers(1, 300), st.sampled_from(["linear", "gaussian"]), st.floats(0.1, 100), st.integers(0, 99))
def test_blur_keeps_every_sample(n, kind, width, seed):
    rows = blur(np.arange(n), kind=kind, width=width, rng=np.random.default_rng(seed))
    assert sorted(rows.tolist()) == list(range(n))


def test_linear_blur_moves_no_sample_further_than_its_width():
    rows = blur(np.arange(5000), kind="linear", width=400, rng=np.random.default_rng(0))
    assert np.abs(rows - np.arange(5000)).max() <= 400


@pytest.mark.parametrize("kind", ["linear", "gaussian"])
def test_around_a_boundary_the_share_rises_like_the_distribution_function(kind):
    n, width = 200_000, 20_000
    late = blur(np.arange(n), kind=kind, width=width, rng=np.random.default_rng(0)) >= n // 2
    centres = np.arange(n // 2 - 30_000, n // 2 + 30_001, 5000)
    shares = [late[c - 500 : c + 500].mean() for c in centres]
    offset = (centres - n // 2) / width
    expected = np.clip(offset + 0.5, 0, 1) if kind == "linear" else norm.cdf(offset)
    np.testing.assert_allclose(shares, expected, atol=4 * np.sqrt(0.25 / 1000))


@given(st.lists(st.integers(1, 50), min_size=1, max_size=5), st.integers(1, 20))
def test_batches_end_with_their_stage(lengths, batch_size):
    sizes = batch_sizes(lengths, batch_size)
    assert set(np.cumsum(lengths).tolist()) <= set(np.cumsum(sizes).tolist())
    assert sizes.max() <= batch_size and sum(sizes < batch_size) <= len(lengths)
    assert len(sizes) == sum(-(-length // batch_size) for length in lengths)
