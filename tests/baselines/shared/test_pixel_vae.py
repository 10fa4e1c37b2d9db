"""The VAE's bound and samples against their definitions."""

from __future__ import annotations

import pytest
import torch

from cndpm.baselines.shared.networks import build_vae


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_elbo_agrees_with_a_numerical_integral_of_its_definition():
    """E_q[log p(x | z) + log p(z) - log q(z | x)] in one latent dimension, on a grid instead of in closed form."""
    vae = build_vae((3,), seeded(), hidden=5, latent=1).double()
    x = torch.tensor([[0.0, 1.0, 1.0]], dtype=torch.float64)
    mean, log_variance = vae.posterior(vae.encoder(x)).chunk(2, dim=-1)
    posterior = torch.distributions.Normal(mean, torch.exp(0.5 * log_variance))
    noise = torch.linspace(-7, 7, 20001, dtype=torch.float64)[:, None]
    z = mean + posterior.stddev * noise
    log_likelihood = torch.distributions.Bernoulli(logits=vae.decoder(z)).log_prob(x).sum(1, keepdim=True)
    integrand = log_likelihood + torch.distributions.Normal(0, 1).log_prob(z) - posterior.log_prob(z)
    expected = torch.trapezoid((posterior.log_prob(z).exp() * integrand)[:, 0], z[:, 0])
    # The bound with latent samples at the quantiles of the normal distribution is a quadrature of the same integral.
    quantiles = torch.special.ndtri((torch.arange(4000, dtype=torch.float64) + 0.5) / 4000)
    bound = vae.elbo(x, quantiles[:, None, None])
    assert bound.item() == pytest.approx(expected.item(), abs=1e-4)


def test_vae_without_classes_says_how_to_get_them():
    with pytest.raises(ValueError, match="pass n_classes"):
        build_vae((3,), seeded(), hidden=4).classify(torch.rand(1, 3))


@pytest.mark.parametrize("class_priors", [True, False])
def test_one_pass_gives_what_classifying_and_bounding_give(class_priors: bool):
    vae = build_vae((2, 3), seeded(), hidden=5, latent=2, n_classes=4, class_priors=class_priors)
    x, noise = torch.rand(6, 2, 3, generator=seeded()), torch.randn(3, 6, 2, generator=seeded())
    y = torch.arange(6) % 4 if class_priors else None
    logits, bounds = vae.classify_and_bound(x, noise, y)
    torch.testing.assert_close(logits, vae.classify(x))
    torch.testing.assert_close(bounds, vae.elbo(x, noise, y))


def test_a_bound_with_class_priors_measures_the_distance_to_the_prior_of_the_label():
    """The bounds of two labels of one input differ by the difference of the two divergences."""
    vae = build_vae((3,), seeded(), hidden=5, latent=2, n_classes=4, class_priors=True).double()
    assert vae.priors is not None
    with torch.no_grad():
        vae.priors.log_variance.normal_(generator=seeded(1))
        x, noise = torch.rand(1, 3, generator=seeded()).double(), torch.randn(1, 1, 2, generator=seeded()).double()
        bounds = torch.cat([vae.elbo(x, noise, torch.tensor([y])) for y in range(4)])
        mean, log_variance = vae.posterior(vae.encoder(x)).chunk(2, dim=-1)
        posterior = torch.distributions.Normal(mean, torch.exp(0.5 * log_variance))
        priors = torch.distributions.Normal(vae.priors.mean, torch.exp(0.5 * vae.priors.log_variance))
        kl = torch.distributions.kl_divergence(posterior, priors).sum(1)
    torch.testing.assert_close(bounds[1:] - bounds[:-1], kl[:-1] - kl[1:])


def test_samples_of_a_class_come_from_its_own_prior():
    vae = build_vae((3,), seeded(), hidden=5, latent=2, n_classes=2, class_priors=True)
    assert vae.priors is not None
    with torch.no_grad():
        vae.priors.log_variance.normal_(generator=seeded(1))
        y = torch.tensor([0, 1, 1, 0])
        drawn = vae.sample(4, seeded(), y)
        deviation = vae.priors.log_variance.exp().sqrt()
        z = vae.priors.mean[y] + deviation[y] * torch.randn(4, 2, generator=seeded())
        expected = torch.sigmoid(vae.decoder(z))
    torch.testing.assert_close(drawn, expected)
    with pytest.raises(ValueError, match="both or neither"):
        vae.sample(4, seeded())
    with pytest.raises(ValueError, match="n_classes=None"):
        build_vae((3,), seeded(), class_priors=True)


def test_samples_are_pixel_probabilities_of_standard_normal_places():
    vae = build_vae((2, 2), seeded(), hidden=5, latent=3)
    with torch.no_grad():
        expected = torch.sigmoid(vae.decoder(torch.randn(6, 3, generator=seeded(4)))).reshape(6, 2, 2)
        torch.testing.assert_close(vae.sample(6, seeded(4)), expected)


def test_class_priors_begin_at_different_places_with_variance_one():
    vae = build_vae((3,), seeded(), hidden=5, latent=200, n_classes=4, class_priors=True)
    assert vae.priors is not None
    assert vae.priors.mean.std().item() == pytest.approx(1, abs=0.1)
    assert not vae.priors.log_variance.any()
