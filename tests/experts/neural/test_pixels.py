import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.experts.neural.likelihoods import DiscretisedLogistic
from cndpm.experts.neural.pixels import BernoulliPixel, LogisticPixel

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 4))


def all_pixels(pixel: LogisticPixel) -> torch.Tensor:
    """Every value that a pixel can have, (n_levels ** n_channels, n_channels)."""
    levels = [i / (pixel.n_levels - 1) for i in range(pixel.n_levels)]
    return torch.tensor(list(itertools.product(levels, repeat=pixel.n_channels)), dtype=torch.float64)


def random_output(pixel: LogisticPixel, seed: int, *, scale: float = 2.0) -> torch.Tensor:
    return scale * torch.randn(1, pixel.n_outputs, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_the_formula(pixel: LogisticPixel, x: list[float], output: list[float]) -> float:
    """p(x | output) in plain loops, of the outputs in the order log π, m, log s, a; each component by component."""
    n, c = pixel.n_components, pixel.n_channels
    weights, means, scales = output[:n], output[n : n + n * c], output[n + n * c : n + 2 * n * c]
    slopes, pairs = output[n + 2 * n * c :], c * (c - 1) // 2
    total = sum(math.exp(w) for w in weights)
    probability = 0.0
    for k in range(n):
        mass = math.exp(weights[k]) / total
        for i in range(c):
            mean = means[k * c + i] + (k + 0.5) / n
            mean += sum(slopes[k * pairs + i * (i - 1) // 2 + j] * (x[j] - 0.5) for j in range(i))
            s = math.exp(7 * math.tanh(scales[k * c + i] / 7 - 0.3))
            above = 1.0 if x[i] == 1 else 1 / (1 + math.exp(-(x[i] + pixel.half_level - mean) / s))
            below = 0.0 if x[i] == 0 else 1 / (1 + math.exp(-(x[i] - pixel.half_level - mean) / s))
            mass *= above - below
        probability += mass
    return probability


@settings(deadline=None)
@given(SHAPES, st.integers(2, 4), st.integers(0, 10_000))
def test_the_masses_are_those_of_the_formula_and_sum_to_one(shape, n_levels, seed):
    pixel = LogisticPixel(shape[0], n_components=shape[1], n_levels=n_levels).double()
    x, output = all_pixels(pixel), random_output(pixel, seed, scale=1.0)
    mass = pixel.log_prob(x, output.expand(len(x), -1)).exp()
    assert mass.sum().item() == pytest.approx(1, abs=1e-12)
    expected = [by_the_formula(pixel, row.tolist(), output[0].tolist()) for row in x]
    assert mass.tolist() == pytest.approx(expected, abs=1e-6)  # places are kept in float32


@pytest.mark.parametrize("n_channels", [1, 2])
def test_the_masses_of_all_8_bit_values_sum_to_one(n_channels):
    pixel = LogisticPixel(n_channels)
    x = all_pixels(pixel)
    mass = pixel.double().log_prob(x, random_output(pixel, seed=1).expand(len(x), -1)).exp()
    assert mass.sum().item() == pytest.approx(1, abs=1e-12)
    assert mass.max() > 10 / len(x)


def test_one_component_is_the_discretised_logistic_of_a_vae():
    pixel, likelihood = LogisticPixel(1, n_components=1).double(), DiscretisedLogistic(1).double()
    x = all_pixels(pixel)
    output = torch.tensor(
        [[0.0, 0.2 - 0.5, 7 * (math.atanh(-3 / 7) + 0.3)]], dtype=torch.float64
    )  # mean 0.2, scale e^-3
    torch.nn.init.constant_(likelihood.log_scale, -3.0)
    expected = likelihood.log_prob(x, torch.tensor([[0.2]], dtype=torch.float64).logit())
    torch.testing.assert_close(pixel.log_prob(x, output.expand(len(x), -1)), expected)


def test_a_channels_mean_depends_on_the_channels_before_it_and_on_no_other():
    pixel = LogisticPixel(3, n_components=2)
    said = pixel._read(torch.randn(1, pixel.n_outputs))
    x = torch.rand(1, 3, requires_grad=True)
    for c in range(1, 3):
        gradient = torch.autograd.grad(said.mean(c, x).sum(), x)[0][0]
        assert (gradient[:c] != 0).all()
        assert (gradient[c:] == 0).all()


@pytest.mark.parametrize(("n_channels", "n_levels"), [(1, 256), (3, 4)])
def test_pixels_are_drawn_with_their_masses(n_channels, n_levels):
    pixel, n = LogisticPixel(n_channels, n_components=3, n_levels=n_levels), 100_000
    x, output = all_pixels(pixel).float(), random_output(pixel, seed=2, scale=1.0).float()
    mass = pixel.log_prob(x, output.expand(len(x), -1)).exp()
    drawn = pixel.sample(output.expand(n, -1), torch.Generator().manual_seed(3))
    level = (drawn * (n_levels - 1)).round()
    torch.testing.assert_close(level / (n_levels - 1), drawn, rtol=0, atol=0)
    code = (level @ (float(n_levels) ** torch.arange(n_channels - 1, -1, -1))).long()
    counts = torch.bincount(code, minlength=len(x))
    often = mass * n > 5
    chi_squared = ((counts - n * mass).square() / (n * mass))[often].sum()
    assert often.sum() > 15
    assert chi_squared < often.sum() + 5 * (2 * often.sum()).sqrt()


@settings(deadline=None)
@given(st.sampled_from([0.0, 1 / 255, 0.5 - 1 / 510, 1.0]), st.floats(-1e3, 1e3), st.floats(-1e4, 1e4))
def test_far_means_and_extreme_scales_leave_value_and_gradient_finite(value, mean, scale):
    pixel = LogisticPixel(2, n_components=2)
    output = torch.zeros(1, pixel.n_outputs)
    output[:, 2:6], output[:, 6:10] = mean, scale
    output.requires_grad_()
    log_prob = pixel.log_prob(torch.full((1, 2), value), output)
    (gradient,) = torch.autograd.grad(log_prob.sum(), output)
    assert log_prob.isfinite().all()
    assert gradient.isfinite().all()


def test_samples_stay_levels_where_scales_are_huge_or_means_far_away():
    pixel = LogisticPixel(1, n_components=1)
    output = torch.tensor([[0.0, 0.0, 1e4], [0.0, 1e6, 0.0], [0.0, -1e6, -1e4]]).repeat(50, 1)
    drawn = pixel.sample(output, torch.Generator().manual_seed(0)).view(50, 3)
    pixel.check(drawn)
    assert drawn[:, 0].unique().tolist() == [0, 1]
    assert (drawn[:, 1] == 1).all()
    assert (drawn[:, 2] == 0).all()


def test_a_network_that_says_nothing_covers_all_levels():
    pixel = LogisticPixel(1).double()
    bits = -pixel.log_prob(all_pixels(pixel), torch.zeros(256, pixel.n_outputs)) / math.log(2)
    assert bits.max() < 9.5


@pytest.mark.parametrize("n_channels", [1, 3])
def test_the_kernel_is_highest_at_its_centre_and_a_mass(n_channels):
    pixel = LogisticPixel(n_channels)
    centres = torch.randint(0, 256, (5, n_channels, 3, 3), generator=torch.Generator().manual_seed(0)) / 255
    log_kernel = pixel.kernel_log_prob(centres, centres)
    assert log_kernel.argmax(dim=1).tolist() == list(range(5))
    assert (log_kernel < 0).all()


@pytest.mark.parametrize(
    ("value", "received"),
    [(0.3, r"\[0, 0.3\], e.g. 0.3\b"), (255.0, r"\[0, 255\], e.g. 255"), (-1.0, r"\[-1, 0\], e.g. -1")],
)
def test_values_between_or_beyond_the_levels_are_refused_with_the_remedy(value, received):
    x = torch.tensor([[[[0.0, value]]]])
    with pytest.raises(ValueError, match=rf"needs values 0, 1/255, ..., 1; got values in {received}.*Divide 8-bit"):
        LogisticPixel(1).check(x)


def test_every_8_bit_value_is_accepted_in_either_precision():
    values = torch.arange(256, dtype=torch.uint8)
    LogisticPixel(1).check((values.float() / 255).view(256, 1, 1, 1))
    LogisticPixel(1).check((values.double() / 255).view(256, 1, 1, 1))
    LogisticPixel(1).check(values.float().mul(1 / 255).view(256, 1, 1, 1))
    LogisticPixel(1).check(torch.empty(0, 1, 2, 2))


def test_black_and_white_is_torchs_bernoulli():
    output, x = torch.randn(5, 1, 3, 4), torch.bernoulli(torch.full((5, 1, 3, 4), 0.4))
    expected = torch.distributions.Bernoulli(logits=output).log_prob(x)[:, 0]
    torch.testing.assert_close(BernoulliPixel().log_prob(x, output), expected)


def test_black_and_white_says_what_it_received():
    with pytest.raises(ValueError, match=r"got values in \[0, 0.5\].*likelihood='logistic'"):
        BernoulliPixel().check(torch.tensor([[0.0, 0.5]]))


@pytest.mark.parametrize("options", [{"n_components": 0}, {"n_levels": 1}])
def test_a_mixture_of_nothing_is_refused(options):
    with pytest.raises(ValueError, match="needs a component and a pixel two levels"):
        LogisticPixel(1, **options)
