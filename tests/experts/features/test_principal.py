import torch

from cndpm.experts.features import IdentityFeatures, PrincipalFeatures


def rows(n: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, 3, generator=generator) @ torch.randn(3, 10, generator=generator) + 2


def test_projections_are_uncorrelated_at_unit_variance_and_no_more_than_there_are():
    features = PrincipalFeatures(IdentityFeatures(), 8)
    features.fit(rows(200), generator=torch.Generator())
    assert features.n_features == 3
    torch.testing.assert_close(torch.cov(features(rows(200)).T), torch.eye(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(features(rows(200)).mean(dim=0), torch.zeros(3), atol=1e-4, rtol=0)


def test_a_restored_map_gives_the_same_bits():
    features, restored = (PrincipalFeatures(IdentityFeatures(), 2) for _ in range(2))
    features.fit(rows(50), generator=torch.Generator())
    restored.load_state_dict(features.state_dict())
    assert torch.equal(features(rows(20)), restored(rows(20)))
    assert features.n_numbers_kept == 2 * 10 + 10 + 10 * 2
