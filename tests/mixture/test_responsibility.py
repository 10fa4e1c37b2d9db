import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.mixture import is_new, log_responsibilities, route

finite = st.floats(-2000, 2000)


@given(
    st.integers(0, 5).flatmap(lambda k: st.lists(st.lists(finite, min_size=k, max_size=k), min_size=1, max_size=4)),
    finite,
    st.floats(-600, 410),
)
def test_responsibilities_are_a_distribution_whatever_the_scale(rows, log_new, log_alpha):
    log_joint = torch.tensor(rows).reshape(len(rows), -1)
    counts = torch.arange(1, log_joint.shape[1] + 1)
    log_resp = log_responsibilities(log_joint + counts.log(), torch.full((len(rows),), log_new), log_alpha)
    assert log_resp.shape == (len(rows), log_joint.shape[1] + 1)
    assert not log_resp.isnan().any()
    torch.testing.assert_close(log_resp.exp().sum(1), torch.ones(len(rows), dtype=torch.float64))


def test_responsibilities_equal_the_papers_formula_where_it_can_be_evaluated_directly():
    likelihood, new, counts, alpha = [[0.2, 0.05], [0.5, 0.7]], [0.1, 0.01], [3.0, 8.0], 2.5
    log_known = torch.tensor(likelihood).log() + torch.tensor(counts).log()
    got = log_responsibilities(log_known, torch.tensor(new).log(), math.log(alpha)).exp()
    for n in range(2):
        terms = [counts[k] * likelihood[n][k] for k in range(2)] + [alpha * new[n]]
        assert got[n].tolist() == pytest.approx([term / sum(terms) for term in terms], rel=1e-6)


@pytest.mark.parametrize("log_alpha", [-600.0, 410.0, 1e6, -1e6])
def test_extreme_concentrations_decide_without_overflow(log_alpha):
    log_resp = log_responsibilities(torch.zeros(3, 2), torch.zeros(3), log_alpha)
    assert is_new(log_resp).tolist() == [log_alpha > 0] * 3


@given(st.lists(st.lists(finite, min_size=4, max_size=4), min_size=1, max_size=6))
def test_known_rows_sum_to_one_over_existing_experts_and_new_rows_to_zero(rows):
    log_resp = torch.log_softmax(torch.tensor(rows, dtype=torch.float64), dim=1)
    routing = route(log_resp[:, :-1], is_new(log_resp))
    sums = routing.responsibilities.sum(1)
    torch.testing.assert_close(sums, (~routing.is_new).double())


def test_a_sample_is_new_only_where_new_is_the_best_hypothesis():
    log_resp = torch.tensor([[0.5, 0.1, 0.4], [0.3, 0.3, 0.4], [0.2, 0.5, 0.3]], dtype=torch.float64).log()
    assert is_new(log_resp).tolist() == [False, True, False]


def test_everything_is_new_to_an_empty_mixture():
    log_resp = log_responsibilities(torch.zeros(2, 0), torch.zeros(2), -600.0)
    assert is_new(log_resp).all()
    assert route(log_resp[:, :-1], is_new(log_resp)).responsibilities.shape == (2, 0)
