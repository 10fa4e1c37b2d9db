"""Streaming discriminants against the same thing computed from all data at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

from cndpm.baselines.shared.components import RandomSource
from cndpm.baselines.slda import SLDA, FixedFeatures


def classes_of_gaussians(n: int = 300) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(3, (n,), generator=generator)
    mixing = torch.randn(5, 5, generator=generator)
    means = 2 * torch.randn(3, 5, generator=generator)
    return means[y] + torch.randn(n, 5, generator=generator) @ mixing, y


def learned(x: Tensor, y: Tensor, batch: int, order: Tensor) -> SLDA:
    settings = SLDA.Settings(features="pixels", shrinkage=1e-9, chunk=32)
    learner = SLDA(settings, input_shape=(5,), n_classes=3)
    for rows in order.split(batch):
        learner.learn(x[rows], y[rows])
    return learner


def test_streaming_posterior_is_that_of_offline_discriminant_analysis():
    x, y = classes_of_gaussians()
    offline = LinearDiscriminantAnalysis(solver="lsqr").fit(x.numpy(), y.numpy())
    # The streaming one takes classes as equally probable, the offline one by their frequency.
    expected = log_softmax(offline.predict_log_proba(x.numpy()) - np.log(offline.priors_), axis=1)
    streamed = learned(x, y, 7, torch.arange(len(x))).predict_log_proba(x).numpy()
    np.testing.assert_allclose(streamed, expected, atol=2e-3)


def test_the_order_of_the_stream_does_not_matter():
    x, y = classes_of_gaussians()
    by_class = learned(x, y, 10, y.argsort()).predict_log_proba(x)
    shuffled = learned(x, y, 3, torch.randperm(len(x), generator=torch.Generator().manual_seed(1)))
    torch.testing.assert_close(shuffled.predict_log_proba(x), by_class, atol=1e-5, rtol=1e-5)


def test_classes_never_seen_have_no_probability():
    x, y = classes_of_gaussians()
    learner = learned(x[y < 2], y[y < 2], 10, torch.arange(int((y < 2).sum())))
    assert (learner.predict_log_proba(x)[:, 2] == float("-inf")).all()


def test_fourier_features_approximate_the_gaussian_kernel():
    features = FixedFeatures(4, 40000, random=RandomSource(0), device=torch.device("cpu"))
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
    phi = features(x, torch.tensor(0.3))
    expected = torch.exp(-0.3 * torch.cdist(x, x).square()).double()
    torch.testing.assert_close(phi @ phi.T, expected, atol=0.03, rtol=0)


@pytest.mark.parametrize("n", [1, 2, 50])
def test_kernel_width_comes_from_the_first_batchs_distances(n: int):
    x = torch.randn(n, 5, generator=torch.Generator().manual_seed(2))
    learner = SLDA(SLDA.Settings(n_features=10), input_shape=(5,), n_classes=2)
    learner.learn(x, torch.zeros(n, dtype=torch.int64))
    different = ~torch.eye(n, dtype=torch.bool)
    distance = torch.cdist(x, x).square()[different].mean().item() if n > 1 else max(1.0, x.square().sum().item())
    assert float(learner.statistics.values["gamma"]) == pytest.approx(1 / distance, rel=1e-4)
    learner.learn(10 * x, torch.zeros(n, dtype=torch.int64))
    assert float(learner.statistics.values["gamma"]) == pytest.approx(1 / distance, rel=1e-4)
    assert math.isfinite(learner.predict_log_proba(x)[0, 0].item())
