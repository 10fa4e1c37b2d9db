"""Transformations of images, pixel by pixel."""

from __future__ import annotations

import numpy as np
import torch

from cndpm.streams.transforms import binarise, permute_pixels, resize, rotate, set_channels


def test_shrinking_averages_what_lies_between_the_samples():
    stripes = torch.tensor([255, 0, 0, 0] * 8, dtype=torch.uint8).expand(1, 1, 32, 32)
    small = resize(stripes, 8)[0, 0, :, 1:-1].float()
    assert (small - 255 / 4).abs().max() < 8  # interpolation alone would see the black between the stripes


def test_averages_are_rounded_to_the_nearest_byte():
    colours = torch.tensor([10, 20, 62], dtype=torch.uint8).view(1, 3, 1, 1)
    assert set_channels(colours, 1).item() == 31


def test_a_quarter_turn_of_an_image_that_is_not_square_keeps_distances():
    x = torch.zeros(1, 1, 9, 5, dtype=torch.uint8)
    x[0, 0, 4, 3] = 255  # right of the centre (4, 2)
    assert (rotate(x, 90) == 255).nonzero().tolist() == [[0, 0, 3, 2]]


def test_what_a_turn_brings_in_is_black():
    turned = rotate(torch.full((1, 1, 9, 9), 255, dtype=torch.uint8), 45)
    assert turned[0, 0, 0, 0] == 0
    assert turned[0, 0, 4, 4] == 255


def test_a_permutation_is_numpys_of_its_seed():
    x = torch.arange(12.0).reshape(1, 12)
    for seed in (0, 1):
        expected = torch.from_numpy(np.random.default_rng(seed).permutation(12)).float()
        assert torch.equal(permute_pixels(x, seed)[0], expected)


def test_black_and_white_are_certain():
    """Of two million pixels some thirty would draw the lowest of 65,536 numbers."""
    black, white = (torch.full((2_000_000,), value, dtype=torch.uint8) for value in (0, 255))
    assert binarise(black, torch.Generator().manual_seed(0)).sum() == 0
    assert binarise(white, torch.Generator().manual_seed(0)).sum() == 2_000_000
