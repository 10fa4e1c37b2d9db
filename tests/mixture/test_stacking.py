"""Newton steps of the log-linear pool against derivatives."""

import numpy as np
import torch

from cndpm.mixture.stacking import newton_step, stack


def example(seed=0):
    generator = np.random.default_rng(seed)
    members = torch.tensor(generator.normal(size=(3, 6, 4))).log_softmax(2).numpy()
    return members, generator.integers(4, size=6), generator.normal(size=3)


def test_a_step_is_newtons_with_the_exact_gradient_and_curvature():
    members, y, exponents = example()

    def loss(beta):
        pooled = torch.log_softmax(torch.tensordot(beta, torch.tensor(members), dims=1), dim=1)
        return -pooled[torch.arange(6), torch.tensor(y)].sum()

    beta = torch.tensor(exponents, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(beta), beta)
    curvature = torch.autograd.functional.hessian(loss, beta.detach())
    before, left = np.eye(3) * 2, 0.9**6
    kept = left * before + curvature.numpy() + (1 - left) * 5 * np.eye(3)
    after, found = newton_step(exponents, before, members, y, keep=0.9, ridge=5.0)
    np.testing.assert_allclose(found, kept)
    np.testing.assert_allclose(after, exponents - np.linalg.solve(kept, gradient.numpy()))


def test_the_better_member_wins():
    generator = np.random.default_rng(0)
    exponents, curvature = np.array([0.5, 0.5]), np.eye(2) * 20.0
    for _ in range(60):
        y = generator.integers(2, size=10)
        right = np.where(np.arange(2) == y[:, None], 0.9, 0.1)
        members = np.log(np.stack([right, generator.uniform(0.1, 0.9, size=(10, 2))]))
        exponents, curvature = newton_step(exponents, curvature, members, y, keep=0.99, ridge=20.0)
    assert exponents[0] > 0.8 > 0.4 > abs(exponents[1])


def test_pools_are_distributions():
    members, _, exponents = example()
    np.testing.assert_allclose(np.exp(stack(members, exponents)).sum(axis=1), 1)
