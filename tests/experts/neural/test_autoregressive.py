import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.experts.neural.autoregressive import AutoregressiveDensity, CausalConvolution
from cndpm.experts.neural.pixels import LogisticPixel, Pixel
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import load_state, save_state


def random_density(
    height: int, width: int, *, pixel: Pixel | None = None, channels: int = 4, n_blocks: int = 2
) -> AutoregressiveDensity:
    """One whose every number matters: places begin at zero, which would hide a mistake in them."""
    torch.manual_seed(0)
    shape = (1 if pixel is None else pixel.n_channels, height, width)
    density = AutoregressiveDensity(shape, pixel=pixel, channels=channels, n_blocks=n_blocks)
    with torch.no_grad():
        for parameter in density.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return density


def all_images(height: int, width: int, *, n_channels: int = 1, n_levels: int = 2) -> torch.Tensor:
    levels = [i / (n_levels - 1) for i in range(n_levels)]
    values = torch.tensor(list(itertools.product(levels, repeat=n_channels * height * width)))
    return values.reshape(-1, n_channels, height, width)


def few_levels(n_channels: int = 2, n_levels: int = 3) -> LogisticPixel:
    """Few enough values for all images to be counted."""
    return LogisticPixel(n_channels, n_components=2, n_levels=n_levels)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(0, 34))
def test_a_pixels_logit_depends_on_the_pixels_before_it_and_on_no_other(seed, i):
    density = random_density(5, 7)
    x = torch.rand(1, 1, 5, 7, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    gradient = torch.autograd.grad(density.outputs(x).flatten()[i], x)[0].flatten()
    assert (gradient[i:] == 0).all()
    assert i == 0 or gradient[i - 1] != 0 or i % 7 == 0


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(0, 11))
def test_what_is_said_of_a_colour_pixel_depends_on_all_channels_of_those_before_it_and_on_no_other(seed, i):
    density = random_density(3, 4, pixel=few_levels(n_channels=3))
    x = torch.rand(1, 3, 3, 4, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    gradient = torch.autograd.grad(density.outputs(x).flatten(2)[0, :, i].sum(), x)[0].flatten(2)[0]
    assert (gradient[:, i:] == 0).all()
    assert i == 0 or (gradient[:, i - 1] != 0).all() or i % 4 == 0


def test_every_pixel_within_reach_is_seen():
    density = random_density(4, 4, n_blocks=3)
    x = torch.rand(1, 1, 4, 4, requires_grad=True)
    gradient = torch.autograd.grad(density.outputs(x).flatten()[-1], x)[0].flatten()
    assert (gradient[:-1] != 0).all()


def test_probabilities_of_all_images_sum_to_one():
    log_prob = random_density(3, 3).double().log_prob(all_images(3, 3).double())
    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert log_prob.std() > 0.5


@pytest.mark.parametrize(("n_channels", "n_levels", "width"), [(1, 4, 4), (2, 3, 3), (3, 2, 3)])
def test_probabilities_of_all_images_of_few_levels_sum_to_one(n_channels, n_levels, width):
    density = random_density(1, width, pixel=few_levels(n_channels, n_levels)).double()
    log_prob = density.log_prob(all_images(1, width, n_channels=n_channels, n_levels=n_levels).double())
    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-6)  # a third is no number of float32
    assert log_prob.std() > 0.5


@pytest.mark.parametrize(
    ("pixel", "shape", "n_levels"),
    [(None, (1, 3, 3), 2), (few_levels(1, 4), (1, 2, 2), 4), (few_levels(2, 4), (2, 2, 1), 4)],
)
def test_samples_are_drawn_with_their_probabilities(pixel, shape, n_levels):
    density, n = random_density(*shape[1:], pixel=pixel), 40_000
    images = all_images(*shape[1:], n_channels=shape[0], n_levels=n_levels)
    probability = density.log_prob(images).exp().detach()
    drawn = density.sample(n, torch.Generator().manual_seed(1))
    level = (drawn * (n_levels - 1)).flatten(1).round()
    code = (level @ (float(n_levels) ** torch.arange(level.shape[1] - 1, -1, -1))).long()
    assert torch.equal(images[code], drawn)
    counts = torch.bincount(code, minlength=len(images))
    often = probability * n > 5
    chi_squared = ((counts - n * probability).square() / (n * probability))[often].sum()
    # As many degrees of freedom as images that are expected often enough, give or take five deviations.
    assert often.sum() > 30
    assert chi_squared < often.sum() + 5 * (2 * often.sum()).sqrt()


@pytest.mark.parametrize("pixel", [None, LogisticPixel(1), LogisticPixel(3)])
def test_sampling_computes_the_outputs_of_the_whole_image(pixel):
    density = random_density(4, 5, pixel=pixel, n_blocks=3)
    n_channels, n_outputs = density.pixel.n_channels, density.pixel.n_outputs
    x = (torch.rand(6, n_channels, 4, 5) > 0.5).float()
    wanted = density.outputs(x)
    padded, seen = density.first.canvas(6, 4, 5), [block.look.canvas(6, 4, 5) for block in density.blocks]
    padded[:, :, 3:, 3:8] = x
    got = torch.stack([density._output_at(i, j, padded, seen) for i in range(4) for j in range(5)], dim=2)
    torch.testing.assert_close(got.view(6, n_outputs, 4, 5), wanted, atol=1e-5, rtol=1e-5)


def test_dropout_is_for_training_alone_and_follows_the_generator():
    density = random_density(4, 4)
    x = (torch.rand(8, 1, 4, 4) > 0.5).float()
    assert torch.equal(density.log_prob(x), density.log_prob(x))
    losses = [density.loss(x, (), torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(losses[0], losses[1])
    assert not torch.equal(losses[0], losses[2])
    density.dropout = 0.0
    assert torch.equal(-density.loss(x, (), torch.Generator()), density.log_prob(x))


def test_only_numbers_that_are_used_are_kept():
    convolution = CausalConvolution(2, 3, reach=1, own=True)
    assert sum(p.numel() for p in convolution.parameters()) == 2 * 3 * 5 + 3
    # 7 x 7 without what comes after, two times 28 places, blocks of five taps and a gate, one logit.
    density = AutoregressiveDensity((1, 28, 28), channels=32, n_blocks=7)
    block = 5 * 32 * 64 + 64 + 32 * 32 + 32
    assert sum(p.numel() for p in density.parameters()) == 25 * 32 + 56 * 32 + 7 * block + 33


def test_what_a_pixel_is_adds_no_state():
    """Saved models of black and white images stay readable."""
    names = {"first.taps", "first.bias", "rows", "columns", "last.weight", "last.bias"}
    for pixel in (None, LogisticPixel(1)):
        assert set(AutoregressiveDensity((1, 4, 4), pixel=pixel, n_blocks=0).state_dict()) == names


@pytest.mark.parametrize("shape", [(784,), (1, 28, 28)])
def test_shapes_that_the_pixel_does_not_have_are_refused(shape):
    with pytest.raises(ValueError, match=rf"LogisticPixel needs images \(3, height, width\); got \({shape[0]},"):
        AutoregressiveDensity(shape, pixel=LogisticPixel(3))


@pytest.mark.parametrize("shape", [(784,), (3, 28, 28)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"needs images \(1, height, width\)"):
        AutoregressiveDensity(shape)


def test_grey_values_are_refused_with_the_remedy():
    learner = CNDPM(CNDPMSettings.paper(target="none", density="autoregressive", sharing=False), input_shape=(1, 4, 4))
    with pytest.raises(ValueError, match=r"got values in \[0.5, 0.5\]. Binarise x"):
        learner.learn(torch.full((10, 1, 4, 4), 0.5))


@pytest.mark.parametrize("likelihood", ["gaussian", "pixel-gaussian"])
def test_likelihoods_of_values_that_are_not_counted_are_refused(likelihood):
    with pytest.raises(ValueError, match=rf"'bernoulli' or 'logistic'.*'{likelihood}'"):
        small_settings(likelihood=likelihood)


def stripes(n: int, seed: int) -> torch.Tensor:
    """Images of rows that are black or white."""
    rows = torch.rand(n, 1, 6, 1, generator=torch.Generator().manual_seed(seed)) > 0.5
    return rows.float().expand(n, 1, 6, 6).contiguous()


def small_settings(**changed) -> CNDPMSettings:
    given = {
        "target": "none",
        "density": "autoregressive",
        "density_channels": 8,
        "density_blocks": 1,
        "density_lr": 1e-2,
        "density_lr_slowdown": 100,
        "density_sleep_steps": 150,
        "sharing": False,
        "memory_size": 100,
        "log_alpha": -1000.0,
        "clip": 100.0,
    }
    return CNDPMSettings.paper(**(given | changed))


def test_learning_comes_close_to_the_entropy_of_the_data():
    learner = CNDPM(small_settings(), input_shape=(1, 6, 6))
    for i in range(40):
        learner.learn(stripes(10, seed=i))
    bits = -learner.log_prob(stripes(200, seed=1000)).mean() / torch.tensor(2.0).log()
    assert 6 - 0.1 < bits < 6.6  # six stripes, one bit each


def test_a_learner_stopped_in_its_sleep_resumes_to_the_bit(tmp_path):
    def learner() -> CNDPM:
        return CNDPM(small_settings(inherit=True, log_alpha=1e6), input_shape=(1, 6, 6), seed=3)

    class Stop(Exception):
        pass

    def stop(phase: str, fraction: float) -> None:
        raise Stop

    batches = [stripes(10, seed=i) for i in range(25)]
    whole, stopped = learner(), learner()
    for x in batches:
        whole.learn(x)
    stopped.on_progress = stop
    i = 0
    with pytest.raises(Stop):
        for x in batches:
            i += 1
            stopped.learn(x)
    save_state(tmp_path / "state", stopped.state_dict(), kind="learner")
    resumed = learner()
    resumed.load_state_dict(load_state(tmp_path / "state", kind="learner"))
    for x in batches[i:]:
        resumed.learn(x)
    resumed.settle()
    assert whole.n_experts == 2
    x = stripes(50, seed=99)
    assert torch.equal(resumed.log_prob(x), whole.log_prob(x))


def shades(n: int, seed: int, n_channels: int) -> torch.Tensor:
    """8-bit images of rows of one shade; the channels after the first are darker versions of it."""
    shade = 20 * torch.randint(0, 12, (n, 1, 5, 1), generator=torch.Generator().manual_seed(seed))
    factors = torch.tensor([1.0, 0.5, 0.25])[:n_channels].view(1, -1, 1, 1)
    return ((shade * factors).expand(n, n_channels, 5, 5) / 255).contiguous()


def eight_bit_learner(n_channels: int, **changed) -> CNDPM:
    # Densities of few shades are sharp: long steps would ruin what sleep has found.
    given = {"likelihood": "logistic", "density_sleep_steps": 400, "density_wake_lr_factor": 0.03}
    return CNDPM(small_settings(**(given | changed)), input_shape=(n_channels, 5, 5))


@pytest.mark.parametrize("n_channels", [1, 3])
def test_8_bit_images_are_learned_and_drawn(n_channels):
    learner = eight_bit_learner(n_channels)
    for i in range(30):
        learner.learn(shades(10, i, n_channels))
    x = shades(200, 1000, n_channels)
    bits = -learner.log_prob(x).mean() / (x[0].numel() * math.log(2))
    # The truth is log2 12 / 5 bits in each row of the first channel, and nothing in the others.
    assert math.log2(12) / 5 / n_channels < bits < 4
    drawn, _, _ = learner.sample(50, seed=0)
    learner.bank.open(drawn)  # refuses what is no 8-bit image
    assert len((255 * drawn).round().unique()) > 10
    assert abs(drawn.mean() - x.mean()) < 0.1


def test_8_bit_images_are_described_before_there_is_an_expert():
    learner = eight_bit_learner(1, anytime=True)
    learner.learn(shades(50, 0, 1))
    assert learner.n_experts == 0
    near, far = shades(50, 0, 1), torch.randint(0, 256, (50, 1, 5, 5)) / 255
    log_prob = learner.log_prob(near)
    assert log_prob.isfinite().all()
    assert (log_prob < 0).all()  # masses, not densities
    assert log_prob.min() > learner.log_prob(far).max()


def test_gaussians_select_the_experts_of_8_bit_images(tmp_path):
    def learner() -> CNDPM:
        settings = {"selection": "gaussian", "features": "identity", "log_alpha": "auto", "density_sleep_steps": 20}
        return eight_bit_learner(3, **settings)

    def batch(i: int) -> torch.Tensor:
        return shades(10, i, 3) if i < 30 else 1 - shades(10, i, 3).flip(3).flip(2)

    whole, stopped = learner(), learner()
    for i in range(60):
        whole.learn(batch(i))
        if i < 33:
            stopped.learn(batch(i))
    save_state(tmp_path / "state", stopped.state_dict(), kind="learner")
    resumed = learner()
    resumed.load_state_dict(load_state(tmp_path / "state", kind="learner"))
    for i in range(33, 60):
        resumed.learn(batch(i))
    assert whole.n_experts == 2
    x = torch.cat([batch(7), batch(50)])
    assert torch.equal(resumed.log_prob(x), whole.log_prob(x))
    assert torch.equal(resumed.sample(5, seed=0)[0], whole.sample(5, seed=0)[0])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("n_channels", [1, 3])
def test_recorded_steps_on_a_gpu_learn_8_bit_images(n_channels):
    settings = small_settings(likelihood="logistic", density_wake_lr_factor=0.03)
    learner = CNDPM(settings, input_shape=(n_channels, 5, 5), device="cuda")
    for i in range(30):
        learner.learn(shades(10, i, n_channels).cuda())
    assert learner.bank._recorder.enabled
    x = shades(200, 1000, n_channels).cuda()
    assert -learner.log_prob(x).mean() / (x[0].numel() * math.log(2)) < 6
    learner.bank.open(learner.sample(20, seed=0)[0])  # refuses what is no 8-bit image
