"""Places and labels: where the present may answer, and where the experts do."""

import torch

from cndpm.mixture import currency, mix_log_proba, present_log_proba, present_moments


def parts(seed=0, n=7, k=3, c=4):
    generator = torch.Generator().manual_seed(seed)
    gate = torch.randn(n, k, generator=generator, dtype=torch.float64).log_softmax(1)
    experts = torch.randn(n, k, c, generator=generator, dtype=torch.float64).log_softmax(2)
    present = torch.randn(n, c, generator=generator, dtype=torch.float64).log_softmax(1)
    current, recent = torch.rand(k, generator=generator), torch.rand(c, generator=generator)
    return gate, experts, present, current.double(), recent.double()


def test_answers_are_the_formula():
    gate, experts, present, current, recent = parts()
    g, p, c = gate.exp(), experts.exp(), present.exp()
    expected = torch.zeros(7, 4, dtype=torch.float64)
    for b in range(7):
        shared = (c[b] * recent) / (c[b] * recent).sum()
        for k in range(3):
            now = p[b, k] * (1 - recent) + (p[b, k] * recent).sum() * shared
            expected[b] += g[b, k] * ((1 - current[k]) * p[b, k] + current[k] * now)
    torch.testing.assert_close(present_log_proba(gate, experts, present, current, recent).exp(), expected)


def test_where_all_is_present_only_the_present_answers():
    gate, experts, present, current, recent = parts()
    answer = present_log_proba(gate, experts, present, torch.ones_like(current), torch.ones_like(recent))
    torch.testing.assert_close(answer, present)


def test_where_no_place_is_current_the_experts_answer():
    gate, experts, present, current, recent = parts()
    answer = present_log_proba(gate, experts, present, torch.zeros_like(current), recent)
    torch.testing.assert_close(answer, mix_log_proba(gate, experts))


def test_where_no_label_is_recent_the_experts_answer():
    gate, experts, present, current, recent = parts()
    answer = present_log_proba(gate, experts, present, current, torch.zeros_like(recent))
    torch.testing.assert_close(answer, mix_log_proba(gate, experts))


def test_a_label_that_is_not_recent_keeps_its_probability():
    gate, experts, present, current, recent = parts()
    recent[2] = 0
    answer = present_log_proba(gate, experts, present, current, recent)
    torch.testing.assert_close(answer[:, 2], mix_log_proba(gate, experts)[:, 2])


def test_experts_of_one_place_are_as_current_as_their_shares_say():
    shares = torch.tensor([0.75, 0.25])
    assert currency(shares, shares).tolist() == [1.0, 1.0]
    assert currency(torch.tensor([0.02, 0.98]), shares).tolist() == [0.0, 1.0]


def test_a_rare_label_is_recent_until_there_is_evidence():
    assert float(currency(torch.tensor([0.0]), torch.tensor([0.5]), pseudo=1.0)) == 1.0
    assert float(currency(torch.tensor([0.0]), torch.tensor([20.0]), pseudo=1.0)) == 0.0


def test_moments_are_those_of_the_mixture():
    gate, experts, present = torch.tensor([[0.25, 0.75]]).log(), torch.tensor([[[[1.0], [2.0]], [[3.0], [0.5]]]]), None
    present = torch.tensor([[[5.0], [1.0]]])
    mean, variance = present_moments(gate, experts, present, torch.tensor([0.0, 1.0]))[0, :, 0]
    expected = 0.25 * 1 + 0.75 * 5
    torch.testing.assert_close(mean, torch.tensor(expected))
    spread = 0.25 * (2 + (1 - expected) ** 2) + 0.75 * (1 + (5 - expected) ** 2)
    torch.testing.assert_close(variance, torch.tensor(spread))
