"""Shifts and mirror images."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.baselines.shared.augmentation import Augmentation
from cndpm.experts.features.jitter import shift_and_mirror


@settings(deadline=None)
@given(row=st.integers(0, 4), column=st.integers(0, 4), mirror=st.booleans())
def test_each_image_is_the_crop_of_its_padded_self_then_mirrored(row: int, column: int, mirror: bool):
    x = torch.arange(1.0, 1 + 2 * 3 * 5 * 6).reshape(2, 3, 5, 6)
    shifts = torch.tensor([[2, row], [2, column]])
    changed = shift_and_mirror(x, shifts, torch.tensor([False, mirror]), reach=2)
    assert torch.equal(changed[0], x[0])
    expected = torch.nn.functional.pad(x[1], (2, 2, 2, 2))[:, row : row + 5, column : column + 6]
    assert torch.equal(changed[1], expected.flip(-1) if mirror else expected)


def test_auto_mirrors_colour_images_only():
    generator = torch.Generator()
    chosen = [Augmentation("auto", shape, generator).name for shape in ((3, 32, 32), (1, 28, 28), (7,))]
    assert chosen == ["crop-flip", "shift", "none"]


def test_vectors_cannot_be_shifted():
    with pytest.raises(ValueError, match="takes images"):
        Augmentation("shift", (7,), torch.Generator())
