import pytest
import torch
from torch.nn import functional

from cndpm.experts.features import PatchFeatures
from cndpm.experts.features.responses import fold_filters
from cndpm.experts.features.views import apply_view


def images(n: int, channels: int = 3, edge: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(edge)
    coarse = torch.rand(n, channels, edge // 4, edge // 4, generator=generator)
    return functional.interpolate(coarse, edge) * 0.8 + 0.2 * torch.rand(n, channels, edge, edge, generator=generator)


def fitted(x: torch.Tensor, **options) -> PatchFeatures:
    features = PatchFeatures(options.pop("n_patches", 8), **options)
    features.fit(x, generator=torch.Generator().manual_seed(0))
    return features


@pytest.mark.parametrize("views", [("", "mirror"), ("turn+8,mirror", "", "turn-8"), ("mirror",)])
def test_features_are_averages_over_views(views):
    x, memory = images(5), images(50)
    plain, averaged = fitted(memory, views=("",)), fitted(memory, views=views)
    expected = sum(plain(apply_view(x, view)) for view in views) / len(views)
    torch.testing.assert_close(averaged(x), expected, atol=1e-4, rtol=1e-4)


def test_sizes_follow_one_another():
    x, features = images(3), fitted(images(50), sizes=(3, 6), views=("",))
    parts = [fold_filters(f.weight, f.bias, 0.25).pooled(x, (1,), 2).flatten(1) for f in features._filters]
    torch.testing.assert_close(features(x), torch.cat(parts, dim=1))


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
