import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.streams.transforms import binarise, permute_pixels, resize, rotate, set_channels


def random_images(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8))


def test_resizing_keeps_a_constant_image_constant():
    assert (resize(torch.full((3, 1, 28, 28), 77, dtype=torch.uint8), 32) == 77).all()


def test_resizing_to_the_same_size_changes_nothing():
    x = random_images(2, 3, 8, 8)
    assert torch.equal(resize(x, 8), x)


def test_halving_averages_neighbourhoods():
    ramp = torch.arange(0, 64, 4, dtype=torch.uint8).expand(1, 1, 16, 16)
    small = resize(ramp, 8)[0, 0, 0].float()
    torch.testing.assert_close(small[1:-1], ramp[0, 0, 0].float().view(8, 2).mean(1)[1:-1], atol=1, rtol=0)


def test_grey_repeats_and_colours_average():
    x = random_images(2, 1, 4, 4)
    assert torch.equal(set_channels(x, 3), torch.cat([x, x, x], 1))
    colours = torch.tensor([10, 20, 60], dtype=torch.uint8).view(1, 3, 1, 1).expand(1, 3, 4, 4)
    assert (set_channels(colours, 1) == 30).all()
    with pytest.raises(ValueError, match="got 2"):
        set_channels(random_images(1, 2, 4, 4), 3)


@pytest.mark.parametrize(("degrees", "turns"), [(90, 1), (180, 2), (270, 3), (-90, 3), (360, 0), (0, 0)])
@pytest.mark.parametrize("shape", [(2, 3, 9, 9), (2, 1, 8, 8)])
def test_quarter_turns_are_exact_and_counter_clockwise(degrees, turns, shape):
    x = random_images(*shape)
    difference = rotate(x, degrees).int() - torch.rot90(x, turns, dims=(2, 3)).int()
    assert difference.abs().max() <= 1


def test_turning_there_and_back_keeps_the_middle_of_a_smooth_image():
    grid = torch.linspace(-1, 1, 28)
    x = (255 * torch.exp(-2 * (grid[:, None] ** 2 + (grid[None] - 0.2) ** 2))).to(torch.uint8).expand(1, 1, 28, 28)
    back = rotate(rotate(x, 20), -20)
    assert (back.int() - x.int())[..., 8:20, 8:20].abs().max() <= 6


@given(st.integers(0, 99), st.sampled_from([(4, 3, 5, 5), (4, 7)]))
def test_a_permutation_keeps_values_and_is_the_same_for_all_samples_and_channels(seed, shape):
    positions = torch.arange(shape[-1] * (shape[-2] if len(shape) == 4 else 1))
    x = positions.view(1, 1, 5, 5).expand(shape) if len(shape) == 4 else positions.expand(shape)
    permuted = permute_pixels(x, seed)
    assert permuted.shape == x.shape
    rows = permuted.reshape(-1, len(positions))
    assert (rows == rows[0]).all() and torch.equal(rows[0].sort().values, positions)


def test_binarising_draws_each_pixel_with_its_intensity():
    n = 40_000
    values = torch.tensor([0, 1, 64, 128, 200, 254, 255], dtype=torch.uint8)
    drawn = binarise(values.expand(n, -1), torch.Generator().manual_seed(0))
    assert drawn.dtype == torch.float32 and set(drawn.unique().tolist()) == {0.0, 1.0}
    p = values.double() / 255
    deviation = (drawn.double().mean(0) - p).abs()
    assert (deviation <= 4.5 * (p * (1 - p) / n).sqrt()).all()  # black and white are exact


def test_neighbouring_pixels_are_drawn_independently():
    drawn = binarise(torch.full((20_000, 9), 128, dtype=torch.uint8), torch.Generator().manual_seed(1))
    correlation = np.corrcoef(drawn.numpy().T)
    assert np.abs(correlation - np.eye(9)).max() < 4.5 / np.sqrt(20_000)
