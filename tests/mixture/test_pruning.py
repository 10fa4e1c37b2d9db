import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.mixture import plan_merges, similarity


def test_similarity_is_the_cosine_of_log_likelihood_vectors():
    log_joint = -torch.rand(50, 3, generator=torch.Generator().manual_seed(0)) * 100
    got = similarity(log_joint)
    for i in range(3):
        for j in range(3):
            a, b = log_joint[:, i].double(), log_joint[:, j].double()
            torch.testing.assert_close(got[i, j], (a @ b) / (a.norm() * b.norm()))


@given(st.integers(1, 6), st.floats(-1, 1), st.integers(0, 1000))
def test_after_the_merges_no_two_experts_are_similar_and_no_count_is_lost(n, threshold, seed):
    generator = torch.Generator().manual_seed(seed)
    similarities = torch.rand(n, n, generator=generator) * 2 - 1
    similarities = (similarities + similarities.T) / 2
    counts = torch.rand(n, generator=generator) * 10
    merges = plan_merges(similarities, counts, threshold)
    weight = counts.double().tolist()
    remaining = set(range(n))
    for removed, into in merges:
        assert removed in remaining
        assert into in remaining
        assert weight[removed] <= weight[into]
        weight[into] += weight[removed]
        remaining.remove(removed)
    assert remaining
    assert all(similarities[i, j] <= threshold for i in remaining for j in remaining if i < j)
    torch.testing.assert_close(sum(weight[k] for k in remaining), counts.double().sum().item())


def test_of_a_similar_pair_the_expert_with_fewer_samples_goes():
    similarities = torch.tensor([[1.0, 0.2, 0.95], [0.2, 1.0, 0.1], [0.95, 0.1, 1.0]])
    assert plan_merges(similarities, torch.tensor([5.0, 9.0, 7.0]), 0.9) == [(0, 2)]
