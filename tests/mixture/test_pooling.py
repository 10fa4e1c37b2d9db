"""Pooling of predictors by evidence, against plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.mixture.pooling import add_evidence, exponent_grid, mean_exponents, pool_log_proba, score_exponents


def log_proba(*shape: int, seed: int = 0, sharpness: float = 3.0) -> torch.Tensor:
    return (sharpness * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))).log_softmax(-1).double()


def test_a_pool_is_the_normalised_product_of_powers():
    each, beta = log_proba(4, 3, 2, 5), torch.rand(3, 2).double()
    pooled = pool_log_proba(each, beta)
    for b in range(4):
        for k in range(3):
            product = [
                math.prod(float(each[b, k, m, c].exp()) ** float(beta[k, m]) for m in range(2)) for c in range(5)
            ]
            expected = torch.tensor(product, dtype=torch.float64) / sum(product)
            torch.testing.assert_close(pooled[b, k].exp(), expected)


def test_exponent_one_of_one_predictor_is_that_predictor_alone():
    each = log_proba(6, 1, 2, 4)
    torch.testing.assert_close(pool_log_proba(each, torch.tensor([[1.0, 0.0]])), each[:, :, 0])
    torch.testing.assert_close(pool_log_proba(each, torch.tensor([[0.0, 1.0]])), each[:, :, 1])


def test_scores_are_those_of_every_exponent_in_the_grid():
    each, y, grid = log_proba(5, 2, 2, 3), torch.tensor([0, 2, 1, 1, 0]), exponent_grid(2)
    scores = score_exponents(each, y, grid)
    assert scores.shape == (5, 2, len(grid))
    for h in (0, 7, 30, 63):
        alone = pool_log_proba(each, grid[h].expand(2, 2))
        torch.testing.assert_close(scores[..., h], alone[torch.arange(5), :, y])


@given(
    st.integers(1, 12),
    st.integers(1, 3),
    st.floats(1.5, 1e4),
    st.integers(0, 10_000),
)
def test_evidence_of_a_batch_is_that_of_its_samples_one_by_one(n, n_experts, horizon, seed):
    generator = torch.Generator().manual_seed(seed)
    evidence = torch.randn(n_experts, 4, generator=generator).double()
    scores = -torch.rand(n, n_experts, 4, generator=generator).double()
    responsibilities = torch.rand(n, n_experts, generator=generator).double()
    responsibilities *= torch.rand(n, n_experts, generator=generator) > 0.3
    together = add_evidence(evidence, scores, responsibilities, horizon=horizon)
    for k in range(n_experts):
        for h in range(4):
            alone = float(evidence[k, h])
            for t in range(n):
                r = float(responsibilities[t, k])
                alone = (1 - 1 / horizon) ** r * alone + r * float(scores[t, k, h])
            assert float(together[k, h]) == pytest.approx(alone, rel=1e-9, abs=1e-9)


def test_an_expert_without_a_part_in_a_batch_keeps_its_evidence_to_the_bit():
    evidence = torch.randn(2, 4, dtype=torch.float64)
    responsibilities = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    after = add_evidence(evidence, -torch.rand(2, 2, 4).double(), responsibilities, horizon=50.0)
    assert torch.equal(after[1], evidence[1])
    assert not torch.equal(after[0], evidence[0])


def test_without_evidence_every_exponent_is_as_probable():
    grid = exponent_grid(2)
    torch.testing.assert_close(mean_exponents(torch.zeros(1, len(grid)).double(), grid), grid.mean(0, keepdim=True))


def test_a_predictor_that_becomes_good_late_wins():
    """2,000 samples on which the second predictor guesses, then 1,600 on which only it is right."""
    grid, horizon = exponent_grid(2), 200.0
    right, guess = torch.tensor([0.9, 0.05, 0.05]).log(), torch.full((3,), 1 / 3).log()
    wrong = torch.tensor([0.05, 0.9, 0.05]).log()
    evidence = torch.zeros(1, len(grid), dtype=torch.float64)

    def learn(first: torch.Tensor, second: torch.Tensor, n: int) -> torch.Tensor:
        each = torch.stack([first, second]).expand(n, 1, 2, 3)
        scores = score_exponents(each, torch.zeros(n, dtype=torch.long), grid)
        return add_evidence(evidence, scores, torch.ones(n, 1), horizon=horizon)

    evidence = learn(right, guess, 2000)
    early = mean_exponents(evidence, grid)[0]
    evidence = learn(wrong, right, 1600)
    late = mean_exponents(evidence, grid)[0]
    assert early[0] > 0.9
    assert late[1] > 0.9 > 0.2 > late[0]


@given(st.integers(0, 10_000))
def test_the_mean_exponents_lose_no_more_than_the_posterior_does_on_average(seed):
    grid = exponent_grid(2)
    generator = torch.Generator().manual_seed(seed)
    each, y = log_proba(8, 1, 2, 4, seed=seed), torch.randint(4, (8,), generator=generator)
    evidence = 3 * torch.randn(1, len(grid), generator=generator).double()
    scores = score_exponents(each, y, grid)[:, 0]
    of_mean = score_exponents(each, y, mean_exponents(evidence, grid))[:, 0, 0]
    assert float(of_mean.sum()) >= float((scores @ evidence[0].softmax(0)).sum()) - 1e-9


def test_exponents_are_powers_of_two_from_a_thirty_second_to_two_and_nothing():
    grid = exponent_grid(1)
    assert grid[:, 0].tolist() == [0.0, *(2.0**power for power in range(-5, 2))]
