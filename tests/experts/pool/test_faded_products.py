"""Faded products against sums written out."""

import numpy as np
import pytest
import torch

from cndpm.experts.pool.faded_products import FadedProducts
from cndpm.state import StateError


def rows(n, w=3, seed=0):
    return torch.randn(n, w, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def brute_force(x, keep):
    weights = keep ** torch.arange(len(x) - 1, -1, -1, dtype=torch.float64)
    return sum(w * torch.outer(row, row) for w, row in zip(weights, x, strict=True))


@pytest.mark.parametrize("size", [1, 7, 250])
def test_sums_are_those_of_all_rows_however_they_come(size):
    x, sums = rows(260), FadedProducts(3, (0.9, 1.0))
    for start in range(0, 260, size):
        sums.add(x[start : start + size], (0, 1))
        if start % 3 == 0:
            sums.of(1)
    for m, keep in enumerate((0.9, 1.0)):
        torch.testing.assert_close(sums.of(m), brute_force(x, keep))


def test_members_learn_only_what_is_theirs():
    x, sums = rows(90), FadedProducts(3, (0.9, 0.99))
    sums.add(x[:30], (0,))
    sums.add(x[30:60], (1,))
    sums.add(x[60:], (0,))
    torch.testing.assert_close(sums.of(0), brute_force(torch.cat([x[:30], x[60:]]), 0.9))
    torch.testing.assert_close(sums.of(1), brute_force(x[30:60], 0.99))


def test_room_for_more_values_leaves_the_sums_as_they_are():
    x, sums = rows(20), FadedProducts(3, (0.9,))
    sums.add(x[:10], (0,))
    sums.widen(2)
    sums.add(torch.nn.functional.pad(x[10:], (0, 2)), (0,))
    torch.testing.assert_close(sums.of(0), torch.nn.functional.pad(brute_force(x, 0.9), (0, 2, 0, 2)))


def test_rows_that_wait_are_part_of_the_state():
    x, whole, resumed = rows(50), FadedProducts(3, (0.9, 1.0)), FadedProducts(3, (0.9, 1.0))
    whole.add(x[:20], (0, 1))
    whole.of(0)
    resumed.load_state_dict(whole.state_dict())
    for sums in (whole, resumed):
        sums.add(x[20:], (0, 1))
    assert all(torch.equal(whole.of(m), resumed.of(m)) for m in range(2))


@pytest.mark.parametrize(
    "change",
    [
        {"products": [torch.zeros(3, 3, dtype=torch.float64)]},
        {"products": [torch.zeros(3, 3)] * 2},
        {"waiting": torch.full((2, 3), np.inf, dtype=torch.float64)},
        {"since": [0, 9]},
        {"since": [0, "a"]},
    ],
)
def test_a_state_of_another_form_is_refused(change):
    sums = FadedProducts(3, (0.9, 1.0))
    sums.add(rows(5), (0, 1))
    with pytest.raises(StateError):
        FadedProducts(3, (0.9, 1.0)).load_state_dict({**sums.state_dict(), **change})
