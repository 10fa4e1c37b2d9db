import math

import pytest
import torch
from torch import nn

from cndpm.experts.features import FourierFeatures, IdentityFeatures, ModuleFeatures


def rows(n: int = 300) -> torch.Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(0)) * torch.arange(5) + 3


def fitted(features, x):
    features.fit(x, generator=torch.Generator().manual_seed(0))
    return features


def test_identity_standardises_and_can_be_undone():
    features = fitted(IdentityFeatures(), rows())
    z = features(rows())
    torch.testing.assert_close(z.mean(dim=0), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(z.std(dim=0, correction=0)[1:], torch.ones(4))
    torch.testing.assert_close(features.inverse(z), rows())


def test_the_volume_is_that_of_a_unit_cube_of_features_among_the_rows():
    features = fitted(IdentityFeatures(), rows())
    corner, *edges = features.inverse(torch.cat([torch.zeros(1, 5), torch.eye(5)])).double()
    volume = torch.stack([edge - corner for edge in edges]).det().abs()
    assert features.log_volume == pytest.approx(float(volume.log()), rel=1e-5)


def test_identity_keeps_the_shape_of_images():
    x = torch.rand(10, 2, 3, 3, generator=torch.Generator().manual_seed(0))
    features = fitted(IdentityFeatures(), x)
    torch.testing.assert_close(features.inverse(features(x)), x)


def test_fourier_features_approximate_the_gaussian_kernel():
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(1))
    features = fitted(FourierFeatures(20_000), x)
    standard = fitted(IdentityFeatures(), x)(x)
    z = features(x)[:, 3:]  # the waves, behind the sample itself
    scale = torch.pdist(standard).median()
    kernel = torch.exp(-torch.cdist(standard, standard).square() / (2 * scale**2))
    assert float((z @ z.T / 20_000 - kernel).abs().max()) < 0.06


def test_module_features_are_the_modules_output_standardised():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 7), nn.Dropout(0.5), nn.Tanh())
    features = fitted(ModuleFeatures(module), rows())
    output = module(rows())
    expected = (output - output.mean(dim=0)) / output.std(dim=0, correction=0)
    torch.testing.assert_close(features(rows()), expected, atol=1e-4, rtol=1e-4)
    assert features.n_numbers_kept == 5 * 7 + 7 + 2 * 7
    assert not any(parameter.requires_grad for parameter in module.parameters())


@pytest.mark.parametrize(
    "make", [IdentityFeatures, lambda: FourierFeatures(8), lambda: ModuleFeatures(nn.Linear(5, 3))]
)
def test_a_restored_map_gives_the_same_bits(make):
    features, restored = fitted(make(), rows()), make()
    restored.load_state_dict(features.state_dict())
    assert torch.equal(features(rows()), restored(rows()))


def test_fourier_features_are_bounded_by_their_amplitude():
    assert float(fitted(FourierFeatures(8), rows())(100 * rows())[:, -8:].abs().max()) <= math.sqrt(2) + 1e-6


def test_nonsense_sizes_are_refused():
    with pytest.raises(ValueError, match="positive"):
        FourierFeatures(0)


def test_features_that_were_not_fitted_are_restored_as_such():
    features = FourierFeatures(8)
    features.load_state_dict(FourierFeatures(8).state_dict())
    assert not features.fitted
