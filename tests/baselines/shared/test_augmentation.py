"""Shifts and mirror images."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.baselines.shared.replay import Augmentation
from cndpm.experts.features.views import shift_and_mirror


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


@pytest.mark.parametrize(("name", "mirrors"), [("shift", False), ("crop-flip", True)])
def test_every_shift_up_to_an_eighth_of_the_width_occurs_and_half_of_the_images_are_mirrored(name: str, mirrors: bool):
    """A lit pixel beside the middle shows where its image went; a second one, whether it was mirrored."""
    augmentation = Augmentation(name, (1, 16, 16), torch.Generator().manual_seed(0))
    x = torch.zeros(2000, 1, 16, 16)
    x[:, 0, 8, 5], x[:, 0, 8, 6] = 1.0, 0.5
    changed = augmentation(x)
    rows, columns = (changed[:, 0] == 1.0).nonzero()[:, 1:].T
    dim = (changed[:, 0] == 0.5).nonzero()[:, 2]
    is_mirrored = dim < columns
    assert is_mirrored.float().mean().item() == pytest.approx(0.5 if mirrors else 0.0, abs=0.05)
    columns = torch.where(is_mirrored, 15 - columns, columns)
    for found, middle in ((rows, 8), (columns, 5)):
        shares = torch.bincount(found - middle + 2, minlength=5) / len(x)
        assert shares.tolist() == pytest.approx([0.2] * 5, abs=0.05)


def test_small_images_move_by_one_pixel():
    augmentation = Augmentation("shift", (1, 5, 5), torch.Generator().manual_seed(0))
    x = torch.zeros(500, 1, 5, 5)
    x[:, 0, 2, 2] = 1.0
    rows, columns = augmentation(x)[:, 0].nonzero()[:, 1:].T
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (1, 3, 1, 3)


def test_changes_are_drawn_anew_at_every_use_and_none_leaves_x_as_it_is():
    x = torch.rand(8, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    augmentation = Augmentation("crop-flip", (3, 16, 16), torch.Generator().manual_seed(1))
    assert not torch.equal(augmentation(x), augmentation(x))
    assert Augmentation("none", (3, 16, 16), torch.Generator())(x) is x
