import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.mixture import Merge, plan_merges, similarity


def test_similarity_is_the_cosine_of_log_likelihoods_relative_to_the_best_expert():
    log_joint = -torch.rand(50, 3, generator=torch.Generator().manual_seed(0)) * 100
    got = similarity(log_joint)
    relative = log_joint.double() - log_joint.double().max(dim=1, keepdim=True).values
    for i in range(3):
        for j in range(3):
            a, b = relative[:, i], relative[:, j]
            torch.testing.assert_close(got[i, j], (a @ b) / (a.norm() * b.norm()))


def test_similarity_does_not_depend_on_what_all_experts_share():
    log_joint = -torch.rand(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 100
    shared = -1000 * torch.rand(50, 1, dtype=torch.float64)
    torch.testing.assert_close(similarity(log_joint), similarity(log_joint + shared))


def test_experts_of_one_task_are_similar_and_of_different_tasks_are_not():
    known, unknown = -20.0, -820.0
    tasks = torch.arange(5).repeat_interleave(20)
    experts = torch.tensor([0, 1, 1, 2, 3, 4])
    log_joint = torch.where(tasks[:, None] == experts, known, unknown) - 720.0
    log_joint = log_joint + torch.randn(100, 6, generator=torch.Generator().manual_seed(0))
    above = (similarity(log_joint) > 0.9).nonzero().tolist()
    assert [pair for pair in above if pair[0] < pair[1]] == [[1, 2]]


def test_a_single_expert_is_similar_to_itself_alone():
    assert similarity(torch.zeros(4, 1)).tolist() == [[1.0]]


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


def test_the_most_similar_pair_is_merged_first_and_pairs_at_the_threshold_are_kept():
    """Expert 1 could go into either neighbour; the more similar one takes it, and then has the greater count."""
    similarities = torch.tensor([[1.0, 0.9375, 0.0], [0.9375, 1.0, 0.96875], [0.0, 0.96875, 1.0]])
    assert plan_merges(similarities, torch.tensor([30, 10, 20]), threshold=0.9) == [Merge(1, 2)]
    assert plan_merges(similarities, torch.tensor([30, 10, 20]), threshold=0.96875) == []
