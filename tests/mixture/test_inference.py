import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.mixture import log_gate, log_mixture_density, mix_gaussians, mix_log_proba


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 10_000), st.booleans())
def test_mixed_class_probabilities_equal_the_sum_over_experts(n_experts, n_classes, seed, by_tensors):
    generator = torch.Generator().manual_seed(seed)
    log_density = torch.randn(3, n_experts, generator=generator, dtype=torch.float64)
    counts = torch.rand(n_experts, generator=generator, dtype=torch.float64) + 0.1
    proba = torch.rand(3, n_experts, n_classes, generator=generator, dtype=torch.float64) + 0.01
    proba /= proba.sum(2, keepdim=True)
    weight = log_density.exp() * counts
    expected = ((weight / weight.sum(1, keepdim=True)).unsqueeze(2) * proba).sum(1)
    # Gradients, as a GPU, ask for tensors; arrays serve the rest.
    got = mix_log_proba(log_gate(log_density.requires_grad_(by_tensors), counts), proba.log()).exp()
    torch.testing.assert_close(got.detach(), expected.detach())


def test_the_mixture_density_weighs_experts_by_their_counts():
    log_density = torch.tensor([[0.5, 0.25]], dtype=torch.float64).log()
    got = log_mixture_density(log_density, torch.tensor([30.0, 10.0])).exp()
    assert got.item() == pytest.approx(0.75 * 0.5 + 0.25 * 0.25)


def test_the_gate_survives_densities_that_would_underflow():
    gate = log_gate(torch.tensor([[-5000.0, -5001.0]]), torch.tensor([1.0, 1.0])).exp()
    assert gate[0].tolist() == pytest.approx([0.7310585786, 0.2689414214])


def test_mixed_moments_equal_those_of_draws_from_the_mixture():
    generator = torch.Generator().manual_seed(0)
    log_weight = torch.tensor([[0.3, 0.7]]).log()
    moments = torch.tensor([[[[1.0], [0.5]], [[-2.0], [2.0]]]])
    choice = torch.rand(400_000, generator=generator) < 0.3
    noise = torch.randn(400_000, generator=generator)
    draws = torch.where(choice, 1.0 + 0.5**0.5 * noise, -2.0 + 2.0**0.5 * noise)
    mean, variance = mix_gaussians(log_weight, moments)[0, :, 0].tolist()
    assert mean == pytest.approx(draws.mean().item(), abs=0.02)
    assert variance == pytest.approx(draws.var().item(), rel=0.02)
