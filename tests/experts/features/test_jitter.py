"""Random changes for networks."""

from __future__ import annotations

import torch

from cndpm.experts.features.views import Jitter


def images(n: int = 64, *, lopsided: bool) -> torch.Tensor:
    x = 0.1 * torch.rand(n, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    x[:, :, 8:24, 4:12] += 1.0
    if not lopsided:
        x[:, :, 8:24, 20:28] += 1.0
    return x


def test_mirror_images_are_learned_only_where_the_first_memory_admits_them():
    symmetric, lopsided = Jitter(), Jitter()
    symmetric.fit(images(lopsided=False))
    lopsided.fit(images(lopsided=True))
    assert symmetric.mirrors
    assert not lopsided.mirrors


def test_images_move_by_at_most_a_sixteenth_and_are_left_as_they_are():
    x = torch.zeros(200, 1, 32, 32)
    x[:, :, 16, 16] = 1.0
    before = x.clone()
    changed = Jitter()(x, torch.Generator().manual_seed(0))
    assert torch.equal(x, before)
    _, _, row, column = changed.nonzero(as_tuple=True)
    assert len(row) == 200
    assert set(row.tolist()) == set(column.tolist()) == {14, 15, 16, 17, 18}


def test_small_images_stay_in_their_place():
    x = torch.rand(5, 1, 8, 8)
    assert torch.equal(Jitter()(x, torch.Generator()), x)


def test_half_of_the_images_are_mirrored_left_to_right_where_that_is_admissible_also_after_loading():
    fitted, jitter = Jitter(), Jitter()
    fitted.fit(images(lopsided=False))
    jitter.load_state_dict(fitted.state_dict())
    x = torch.rand(400, 1, 8, 8, generator=torch.Generator().manual_seed(1))  # too small to be shifted
    changed = jitter(x, torch.Generator().manual_seed(0))
    as_it_is, mirrored = ((changed == seen).flatten(1).all(dim=1) for seen in (x, x.flip(-1)))
    assert (as_it_is ^ mirrored).all()
    assert 0.4 < mirrored.float().mean() < 0.6


def test_classes_that_are_mirror_images_of_each_other_are_not_mirrored():
    x, labels, jitter = images(128, lopsided=True), torch.arange(128) % 2, Jitter()
    x[labels == 1] = x[labels == 1].flip(-1)
    jitter.fit(x)
    assert jitter.mirrors
    jitter.fit(x, labels)
    assert not jitter.mirrors
