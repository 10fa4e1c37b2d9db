"""Hand-written gradients against automatic differentiation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from cndpm.experts.neural.fused import linear_bernoulli_log_prob, linear_sigmoid_squared_error, reparametrise


def plain_squared_error(hidden, weight, bias, x):
    return (torch.sigmoid(functional.linear(hidden, weight, bias)) - x).square().sum(dim=-1)


def plain_bernoulli(hidden, weight, bias, x):
    logits = functional.linear(hidden, weight, bias)
    return -functional.binary_cross_entropy_with_logits(logits, x.expand_as(logits), reduction="none").sum(dim=-1)


PAIRS = [(linear_sigmoid_squared_error, plain_squared_error), (linear_bernoulli_log_prob, plain_bernoulli)]


def arguments(seed, n_samples, n_rows, n_hidden, n_features):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(n_samples, n_rows, n_hidden, generator=generator, dtype=torch.float64)
    weight = torch.randn(n_features, n_hidden, generator=generator, dtype=torch.float64)
    bias = torch.randn(n_features, generator=generator, dtype=torch.float64)
    x = torch.rand(n_rows, n_features, generator=generator, dtype=torch.float64)
    return [t.requires_grad_() for t in (hidden, weight, bias)], x


@pytest.mark.parametrize(("fused", "plain"), PAIRS)
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5), st.integers(1, 6), st.integers(1, 9))
def test_value_and_gradients_equal_those_of_automatic_differentiation(fused, plain, seed, s, b, h, d):
    inputs, x = arguments(seed, s, b, h, d)
    value, expected = fused(*inputs, x), plain(*inputs, x)
    torch.testing.assert_close(value, expected)
    arriving = torch.randn(value.shape, dtype=value.dtype, generator=torch.Generator().manual_seed(seed + 1))
    torch.testing.assert_close(
        torch.autograd.grad(value, inputs, arriving), torch.autograd.grad(expected, inputs, arriving)
    )


@pytest.mark.parametrize(("fused", "plain"), PAIRS)
def test_two_evaluations_before_a_gradient_do_not_disturb_each_other(fused, plain):
    one, x_one = arguments(1, 3, 4, 5, 6)
    two, x_two = arguments(2, 3, 4, 5, 6)
    first = fused(*one, x_one).sum()
    fused(*two, x_two).sum().backward()
    first.backward()
    expected = torch.autograd.grad(plain(*one, x_one).sum(), one)
    torch.testing.assert_close(tuple(t.grad for t in one), expected)


@pytest.mark.parametrize(("fused", "plain"), PAIRS)
def test_value_without_gradient_is_the_same_in_pieces(fused, plain):
    inputs, x = arguments(3, 37, 20, 3, 8)
    with torch.no_grad():
        torch.testing.assert_close(fused(*inputs, x), plain(*inputs, x))


def test_a_second_differentiation_is_refused_rather_than_wrong():
    inputs, x = arguments(4, 2, 3, 4, 5)
    value = linear_sigmoid_squared_error(*inputs, x).sum()
    value.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once only"):
        value.backward()


def test_reparametrisation_and_divergence_equal_those_of_automatic_differentiation():
    generator = torch.Generator().manual_seed(5)
    code = torch.randn(4, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    noise = torch.randn(3, 4, 3, generator=generator, dtype=torch.float64)
    mean, log_variance = code.chunk(2, dim=1)
    expected = (
        mean + (0.5 * log_variance).exp() * noise,
        0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(dim=1),
    )
    drawn = reparametrise(code, noise)
    torch.testing.assert_close(drawn, expected)
    arriving = [torch.randn(t.shape, generator=generator, dtype=t.dtype) for t in expected]
    torch.testing.assert_close(
        torch.autograd.grad(drawn, code, arriving), torch.autograd.grad(expected, code, arriving)
    )
