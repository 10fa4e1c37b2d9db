import pytest
import torch
from torch.nn import functional

from cndpm.experts.features import PatchFeatures
from cndpm.experts.features.responses import fold_filters
from cndpm.experts.features.views import apply_view
from cndpm.state import StateError


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


def test_chunks_do_not_change_features(monkeypatch):
    x = images(20)
    features = fitted(x)
    large = features(x)
    monkeypatch.setattr("cndpm.experts.features.patches._CPU_IMAGES", 3)
    torch.testing.assert_close(features(x), large)


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


def plain_filters(x: torch.Tensor, size: int, n: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Filters and their biases, written out: patches one by one, their covariance as a sum."""
    n_drawn = max(20_000, 4 * n)
    places = zip(
        torch.randint(len(x), (n_drawn,), generator=generator).tolist(),
        torch.randint(x.shape[2] - size + 1, (n_drawn,), generator=generator).tolist(),
        torch.randint(x.shape[3] - size + 1, (n_drawn,), generator=generator).tolist(),
        strict=True,
    )
    patches = torch.stack([x[i, :, a : a + size, b : b + size].flatten() for i, a, b in places]).double()
    centred = patches - patches.mean(dim=1, keepdim=True)
    variances = centred.square().mean(dim=1)
    kept = variances >= 0.1 * variances.mean()
    normalised = (centred / (variances + 10 / 255**2).sqrt()[:, None])[kept]
    mean = normalised.mean(dim=0)
    covariance = (normalised - mean).T @ (normalised - mean) / len(normalised)
    values, vectors = torch.linalg.eigh(covariance)
    whitening = vectors @ torch.diag((values + 0.1) ** -0.5) @ vectors.T
    chosen = normalised[torch.randperm(len(normalised), generator=generator)[:n]]
    atoms = (chosen - mean) @ whitening
    weight = (atoms / atoms.norm(dim=1, keepdim=True)) @ whitening
    return weight - weight.mean(dim=1, keepdim=True), weight @ mean


def test_filters_are_whitened_patches_with_contrast_of_all_images_and_places():
    x = images(30, 2, 8)
    x[::3] = 0.5  # nothing to see: neither a filter nor a part of the covariance
    generator = torch.Generator().manual_seed(0)
    weight, bias = plain_filters(x, 3, 16, generator)
    (found,) = fitted(x, n_patches=16, sizes=(3,), views=("",))._filters
    torch.testing.assert_close(found.weight.flatten(1).double(), weight, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.bias.double(), bias, atol=1e-4, rtol=1e-4)


def test_states_are_copies_and_filters_of_larger_patches_are_refused():
    features = fitted(images(40), sizes=(4,))
    features.state_dict()["filters"][0]["weight"].zero_()
    assert features.state_dict()["filters"][0]["weight"].any()
    with pytest.raises(StateError, match="edge 3 or less"):
        PatchFeatures(8, sizes=(3,)).load_state_dict(features.state_dict())
