import math

import pytest
import torch

from cndpm.experts.neural.fused import reparametrise
from cndpm.experts.neural.vae import VAE, evaluation_noise


@pytest.fixture
def exact():
    torch.manual_seed(0)
    vae = VAE((3,), hidden=[4], decoder_hidden=[], latent_dim=2, likelihood="gaussian", n_samples=4000).double()
    vae.noise = evaluation_noise(4000, 2).double()
    decoder = vae.decoder[0]
    covariance = decoder.weight @ decoder.weight.T + torch.eye(3, dtype=torch.float64)
    marginal = torch.distributions.MultivariateNormal(decoder.bias, covariance)
    return vae, marginal


def test_the_bound_lies_below_the_exact_density(exact):
    vae, marginal = exact
    x = torch.randn(6, 3, dtype=torch.float64)
    log_p = marginal.log_prob(x)
    assert (vae.log_prob(x) <= log_p + 0.02).all()


def test_the_elbo_equals_the_exact_density_when_the_encoder_is_the_exact_posterior():
    torch.manual_seed(0)
    vae = VAE((3,), hidden=[6], decoder_hidden=[], latent_dim=2, likelihood="gaussian", n_samples=20_000).double()
    vae.noise = evaluation_noise(20_000, 2).double()
    weight, bias = vae.decoder[0].weight, vae.decoder[0].bias
    precision = weight.T @ weight + torch.eye(2, dtype=torch.float64)
    # A diagonal encoder is exact only if the posterior is diagonal: make the decoder's columns orthogonal.
    with torch.no_grad():
        weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], dtype=torch.float64))
        precision = weight.T @ weight + torch.eye(2, dtype=torch.float64)
        # ReLU units h = (relu(x), relu(-x)) let a linear head represent any affine function of x.
        vae.encoder.layers[0].weight.copy_(torch.cat([torch.eye(3), -torch.eye(3)]).double())
        vae.encoder.layers[0].bias.zero_()
        gain = torch.linalg.solve(precision, weight.T)
        vae.code.weight.zero_()
        vae.code.weight[:2] = torch.cat([gain, -gain], dim=1)
        vae.code.bias[:2] = -gain @ bias
        vae.code.bias[2:] = -precision.diagonal().log()
    x = torch.randn(5, 3, dtype=torch.float64)
    covariance = weight @ weight.T + torch.eye(3, dtype=torch.float64)
    log_p = torch.distributions.MultivariateNormal(bias, covariance).log_prob(x)
    torch.testing.assert_close(vae.log_prob(x), log_p, atol=0.05, rtol=0)


def test_the_density_is_deterministic_and_independent_of_the_rest_of_the_batch():
    torch.manual_seed(0)
    vae = VAE((5,))
    x = torch.rand(7, 5)
    together = vae.log_prob(x)
    assert torch.equal(together, vae.log_prob(x))
    torch.testing.assert_close(torch.cat([vae.log_prob(row.unsqueeze(0)) for row in x]), together)


def test_the_training_loss_estimates_the_negative_density_without_bias():
    torch.manual_seed(0)
    vae = VAE((5,), n_samples=2000, n_train_samples=2000)
    x = torch.rand(3, 5)
    loss = vae.loss(x, (), torch.Generator().manual_seed(1))
    torch.testing.assert_close(-loss, vae.log_prob(x), atol=0.02, rtol=0.01)


def test_evaluation_noise_is_antithetic_and_fixed():
    noise = evaluation_noise(16, 3)
    assert torch.equal(noise, evaluation_noise(16, 3))
    torch.testing.assert_close(noise.sum(0), torch.zeros(3))
    assert evaluation_noise(5, 2).shape == (5, 2)


def test_the_papers_vae_has_as_many_parameters_as_the_paper_says():
    vae = VAE((784,))
    assert sum(p.numel() for p in vae.parameters()) == 112_688


def test_training_raises_the_density_of_the_data():
    torch.manual_seed(0)
    vae = VAE((4,), hidden=[16], decoder_hidden=[16], latent_dim=2, likelihood="pixel-gaussian", n_train_samples=1)
    x = 0.5 + 0.1 * torch.randn(200, 1).expand(200, 4)
    optimiser = torch.optim.Adam(vae.parameters(), lr=5e-3)
    generator = torch.Generator().manual_seed(0)
    before = vae.log_prob(x).mean().item()
    for _ in range(300):
        optimiser.zero_grad()
        vae.loss(x, (), generator).mean().backward()
        optimiser.step()
    assert vae.log_prob(x).mean().item() > before + 4 * math.log(2)


def test_what_the_elbo_lacks_is_the_divergence_from_the_prior():
    mean, log_variance = torch.randn(5, 3), torch.randn(5, 3)
    code = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    prior = torch.distributions.Normal(torch.zeros(3), torch.ones(3))
    divergence = torch.distributions.kl_divergence(code, prior).sum(dim=1)
    _, kl = reparametrise(torch.cat([mean, log_variance], dim=1), torch.randn(4, 1, 3))
    torch.testing.assert_close(kl, divergence)
