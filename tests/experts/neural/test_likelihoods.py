import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.kernels import nearest_neighbour_variance
from cndpm.experts.neural.fused import sigmoid_squared_error
from cndpm.experts.neural.likelihoods import (
    Bernoulli,
    DiscretisedLogistic,
    Gaussian,
    logistic_kernel_log_prob,
    make_likelihood,
)
from cndpm.training.optimiser import Optimiser


def test_bernoulli_equals_torchs_distribution():
    output, x = torch.randn(5, 4), torch.bernoulli(torch.full((5, 4), 0.4))
    expected = torch.distributions.Bernoulli(logits=output).log_prob(x).sum(1)
    torch.testing.assert_close(Bernoulli().log_prob(x, output), expected)


@pytest.mark.parametrize("variance", [1.0, 0.3, "scalar", "feature"])
@pytest.mark.parametrize("squash", [True, False])
def test_gaussian_equals_torchs_distribution(variance, squash):
    likelihood = Gaussian(4, variance=variance, squash=squash)
    if likelihood.learned:
        torch.nn.init.normal_(likelihood.raw)
    output, x = torch.randn(3, 5, 4), torch.rand(5, 4)
    mean = torch.sigmoid(output) if squash else output
    expected = torch.distributions.Normal(mean, likelihood.variance.sqrt()).log_prob(x).sum(-1)
    torch.testing.assert_close(likelihood.log_prob(x, output), expected)


@given(st.floats(-6, 6), st.floats(-6, 1))
def test_discretised_logistic_is_a_distribution_over_256_values(output, log_scale):
    likelihood = DiscretisedLogistic(1).double()
    torch.nn.init.constant_(likelihood.log_scale, log_scale)
    values = torch.arange(256, dtype=torch.float64).unsqueeze(1) / 255
    total = likelihood.log_prob(values, torch.full((256, 1), output, dtype=torch.float64)).exp().sum()
    assert total.item() == pytest.approx(1.0, abs=1e-9)


def test_discretised_logistic_stays_finite_far_from_its_mean():
    likelihood = DiscretisedLogistic(1)
    torch.nn.init.constant_(likelihood.log_scale, -7.0)
    x = torch.tensor([[0.5]])
    output = torch.tensor([[-30.0]], requires_grad=True)
    log_prob = likelihood.log_prob(x, output)
    log_prob.sum().backward()
    assert torch.isfinite(log_prob).all()
    assert torch.isfinite(output.grad).all()


@given(st.integers(0, 1000))
def test_the_fused_error_and_its_gradient_equal_the_plain_expression(seed):
    generator = torch.Generator().manual_seed(seed)
    output = torch.randn(2, 3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    x = torch.rand(3, 4, generator=generator, dtype=torch.float64)
    weight = torch.rand(2, 3, generator=generator, dtype=torch.float64)
    plain = (torch.sigmoid(output) - x).square().sum(-1)
    (expected,) = torch.autograd.grad((plain * weight).sum(), output)
    fused = sigmoid_squared_error(output, x)
    (got,) = torch.autograd.grad((fused * weight).sum(), output)
    torch.testing.assert_close(fused, plain)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("name", ["bernoulli", "unit-gaussian", "pixel-gaussian", "logistic"])
def test_values_outside_the_unit_interval_are_refused_with_the_remedy(name):
    with pytest.raises(ValueError, match=r"needs values in \[0, 1\]; got \[0, 255\].*Divide 8-bit images by 255"):
        make_likelihood(name, 3).check(torch.tensor([[0.0, 3.0, 255.0]]))


def test_the_gaussian_of_rows_takes_any_value():
    make_likelihood("gaussian", 2).check(torch.tensor([[-1e6, 1e6]]))


@pytest.mark.parametrize("name", ["bernoulli", "unit-gaussian", "pixel-gaussian", "gaussian", "logistic"])
def test_draws_have_the_mean_that_the_likelihood_states(name):
    likelihood = make_likelihood(name, 2)
    if name == "logistic":
        torch.nn.init.constant_(likelihood.log_scale, -3.0)
    if name == "pixel-gaussian":
        torch.nn.init.constant_(likelihood.raw, math.log(1e-3))
    output = torch.tensor([[0.3, -0.2]]).expand(40_000, 2)
    draws = likelihood.sample(output, torch.Generator().manual_seed(0))
    torch.testing.assert_close(draws.mean(0), likelihood.mean(output)[0].detach(), atol=0.02, rtol=0)


@pytest.mark.parametrize("name", ["bernoulli", "unit-gaussian", "pixel-gaussian", "gaussian", "logistic"])
def test_a_kernel_is_highest_at_its_centre(name):
    centres = torch.bernoulli(torch.full((6, 16), 0.5), generator=torch.Generator().manual_seed(0))
    log_kernel = make_likelihood(name, 16).kernel_log_prob(centres, centres)
    assert log_kernel.shape == (6, 6)
    assert log_kernel.argmax(1).tolist() == list(range(6))


@pytest.mark.parametrize("name", ["pixel-gaussian", "gaussian"])
def test_a_variance_learns_as_many_times_faster_as_it_is_told(name):
    likelihood = make_likelihood(name, 3, variance_rate=7.0)
    optimiser = Optimiser(likelihood.parameters(), lr=0.01, clip=1.0, weight_decay=0.0)
    output = torch.zeros(2, 3)
    # The mean is right, so the variance can only fall; Adam's first step is the learning rate.
    optimiser.step(-likelihood.log_prob(likelihood.mean(output), output).sum(), penalise=False)
    torch.testing.assert_close(likelihood.log_variance, torch.full_like(likelihood.raw, -0.07))


@pytest.mark.parametrize("name", ["pixel-gaussian", "gaussian"])
def test_a_variance_does_not_fall_below_its_floor(name):
    likelihood = make_likelihood(name, 3, min_variance=0.25)
    torch.nn.init.constant_(likelihood.raw, -9.0)
    output, x = torch.zeros(2, 3), torch.rand(2, 3)
    expected = torch.distributions.Normal(likelihood.mean(output), 0.5).log_prob(x).sum(dim=-1)
    torch.testing.assert_close(likelihood.log_prob(x, output), expected)


def test_the_papers_gaussian_has_unit_variance():
    x, output = torch.rand(4, 3), torch.randn(4, 3)
    expected = torch.distributions.Normal(output.sigmoid(), 1.0).log_prob(x).sum(dim=1)
    torch.testing.assert_close(make_likelihood("unit-gaussian", 3).log_prob(x, output), expected)


def test_samples_scatter_by_the_root_of_a_learned_variance():
    likelihood = make_likelihood("gaussian", 2)
    with torch.no_grad():
        likelihood.raw.copy_(torch.tensor([0.04, 9.0]).log())
        drawn = likelihood.sample(torch.zeros(20_000, 2), torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn.std(dim=0), torch.tensor([0.2, 3.0]), rtol=0.03, atol=0.0)


def test_a_logistic_kernel_is_as_wide_as_centres_lie_apart():
    """The variance of the kernel, summed over all 8-bit values, is that of the nearest neighbours."""
    centres = torch.tensor([[0.45], [0.55]])
    levels = torch.arange(256.0)[:, None] / 255
    mass = logistic_kernel_log_prob(levels, centres)[:, 0].exp().double()
    mean = (mass * levels[:, 0]).sum()
    variance = (mass * (levels[:, 0] - mean).square()).sum()
    assert float(variance) == pytest.approx(float(nearest_neighbour_variance(centres)), rel=0.1)
