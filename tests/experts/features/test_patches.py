import pytest
import torch
from torch.nn import functional

from cndpm.experts.features import PatchFeatures
from cndpm.experts.features.patches import PatchFilters


def images(n: int, channels: int = 3, edge: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(edge)
    coarse = torch.rand(n, channels, edge // 4, edge // 4, generator=generator)
    return functional.interpolate(coarse, edge) * 0.8 + 0.2 * torch.rand(n, channels, edge, edge, generator=generator)


def fitted(x: torch.Tensor, **options) -> PatchFeatures:
    features = PatchFeatures(options.pop("n_patches", 8), **options)
    features.fit(x, generator=torch.Generator().manual_seed(0))
    return features


def test_responses_are_filters_times_contrast_normalised_patches():
    x = images(3)
    filters: PatchFilters = fitted(images(50))._filters[0]
    patches = functional.unfold(x, 4).double()
    centred = patches - patches.mean(dim=1, keepdim=True)
    normalised = centred / (patches.var(dim=1, correction=0, keepdim=True) + 10 / 255**2).sqrt()
    expected = torch.einsum("pk,bkl->bpl", filters.weight.flatten(1).double(), normalised) - filters.bias[:, None]
    torch.testing.assert_close(filters.responses(x).flatten(2).double(), expected, atol=1e-4, rtol=1e-4)


def test_features_are_rectified_moments_of_four_cells_averaged_over_views():
    x = images(2)
    features = fitted(images(50), sizes=(5,), views=("", "mirror"))
    expected = []
    for seen in (x, x.flip(-1)):
        responses = features._filters[0].responses(seen)
        sides = [(responses - 0.25).clamp_min(0), (-responses - 0.25).clamp_min(0)]
        cells = [[side[..., i : i + 6, j : j + 6] for i in (0, 6) for j in (0, 6)] for side in sides]
        parts = []
        for quarter in cells:
            parts.append(torch.stack([cell.mean(dim=(2, 3)) for cell in quarter], dim=2))
            parts.append(torch.stack([cell.std(dim=(2, 3), correction=0) for cell in quarter], dim=2))
        expected.append(torch.cat(parts, dim=1).flatten(1))
    torch.testing.assert_close(features(x), sum(expected) / 2, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(("channels", "edge"), [(1, 8), (1, 28), (3, 32)])
def test_images_of_any_size_give_sixteen_features_per_filter(channels, edge):
    features = fitted(images(40, channels, edge))
    assert features(images(3, channels, edge)).shape == (3, 16 * 8 * 3)
    assert features.n_features == 16 * 8 * 3


def test_chunks_do_not_change_features():
    x = images(20)
    small, large = fitted(x, chunk_size=3), fitted(x, chunk_size=64)
    torch.testing.assert_close(small(x), large(x))


def test_a_restored_map_gives_the_same_bits():
    x = images(40)
    features, restored = fitted(x), PatchFeatures(8)
    restored.load_state_dict(features.state_dict())
    assert restored.views == features.views
    assert torch.equal(features(x), restored(x))
    assert features.n_numbers_kept == 8 * 3 * (16 + 36 + 64) + 3 * 8


def test_vectors_are_refused():
    with pytest.raises(ValueError, match=r"images \(B, C, H, W\)"):
        fitted(torch.zeros(5, 3))


def test_an_unfitted_map_says_so():
    with pytest.raises(RuntimeError, match="first memory"):
        PatchFeatures(8)(images(1))


def test_a_constant_memory_makes_finite_features():
    features = fitted(torch.full((40, 1, 8, 8), 0.5))
    assert torch.isfinite(features(images(2, 1, 8))).all()
