import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.experts.autoregressive import AutoregressiveDensity, CausalConvolution
from cndpm.learners.cndpm import CNDPM
from cndpm.learners.settings import CNDPMSettings
from cndpm.state import load_state, save_state


def random_density(height: int, width: int, *, channels: int = 4, n_blocks: int = 2) -> AutoregressiveDensity:
    """One whose every number matters: places begin at zero, which would hide a mistake in them."""
    torch.manual_seed(0)
    density = AutoregressiveDensity((1, height, width), channels=channels, n_blocks=n_blocks)
    with torch.no_grad():
        for parameter in density.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return density


def all_images(height: int, width: int) -> torch.Tensor:
    pixels = torch.tensor(list(itertools.product([0.0, 1.0], repeat=height * width)))
    return pixels.reshape(-1, 1, height, width)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(0, 34))
def test_a_pixels_logit_depends_on_the_pixels_before_it_and_on_no_other(seed, i):
    density = random_density(5, 7)
    x = torch.rand(1, 1, 5, 7, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    gradient = torch.autograd.grad(density.outputs(x).flatten()[i], x)[0].flatten()
    assert (gradient[i:] == 0).all()
    assert i == 0 or gradient[i - 1] != 0 or i % 7 == 0


def test_every_pixel_within_reach_is_seen():
    density = random_density(4, 4, n_blocks=3)
    x = torch.rand(1, 1, 4, 4, requires_grad=True)
    gradient = torch.autograd.grad(density.outputs(x).flatten()[-1], x)[0].flatten()
    assert (gradient[:-1] != 0).all()


def test_probabilities_of_all_images_sum_to_one():
    log_prob = random_density(3, 3).double().log_prob(all_images(3, 3).double())
    assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert log_prob.std() > 0.5


def test_samples_are_drawn_with_their_probabilities():
    density, n = random_density(3, 3), 40_000
    images = all_images(3, 3)
    probability = density.log_prob(images).exp().detach()
    drawn = density.sample(n, torch.Generator().manual_seed(1))
    code = (drawn.flatten(1) @ (2.0 ** torch.arange(8, -1, -1))).long()
    assert torch.equal(images[code], drawn)
    counts = torch.bincount(code, minlength=512)
    often = probability * n > 5
    chi_squared = ((counts - n * probability).square() / (n * probability))[often].sum()
    # As many degrees of freedom as images that are expected often enough, give or take five deviations.
    assert often.sum() > 50
    assert chi_squared < often.sum() + 5 * (2 * often.sum()).sqrt()


def test_sampling_computes_the_logits_of_the_whole_image():
    density = random_density(4, 5, n_blocks=3)
    x = (torch.rand(6, 1, 4, 5) > 0.5).float()
    wanted = density.outputs(x)
    padded, seen = density.first.canvas(6, 4, 5), [block.look.canvas(6, 4, 5) for block in density.blocks]
    padded[:, :, 3:, 3:8] = x
    got = torch.stack([density._output_at(i, j, padded, seen) for i in range(4) for j in range(5)], dim=2)
    torch.testing.assert_close(got.view(6, 1, 4, 5), wanted, atol=1e-5, rtol=1e-5)


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


@pytest.mark.parametrize("shape", [(784,), (3, 28, 28)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"needs images \(1, height, width\)"):
        AutoregressiveDensity(shape)


def test_grey_values_are_refused_with_the_remedy():
    learner = CNDPM(CNDPMSettings(target="none", density="autoregressive", sharing=False), input_shape=(1, 4, 4))
    with pytest.raises(ValueError, match="Binarise x"):
        learner.learn(torch.full((10, 1, 4, 4), 0.5))


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
    return CNDPMSettings(**(given | changed))


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
