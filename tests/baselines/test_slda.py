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


@pytest.mark.parametrize("shrinkage", [0.3, 1.0])
def test_discriminants_are_those_of_the_shrunk_covariance(shrinkage: float):
    x, y = classes_of_gaussians()
    x, y = x.double(), y
    means = torch.stack([x[y == label].mean(0) for label in range(3)])
    within = (x - means[y]).T @ (x - means[y]) / len(x)
    shrunk = (1 - shrinkage) * within + shrinkage * within.diagonal().mean() * torch.eye(5, dtype=torch.float64)
    distance = ((x[:, None] - means) @ torch.linalg.inv(shrunk) * (x[:, None] - means)).sum(2)
    learner = SLDA(SLDA.Settings(features="pixels", shrinkage=shrinkage, chunk=32), input_shape=(5,), n_classes=3)
    for rows in torch.arange(len(x)).split(50):
        learner.learn(x[rows].float(), y[rows])
        learner.predict_log_proba(x[:2].float())  # what was solved for then does not answer later
    expected = torch.log_softmax(-0.5 * distance, dim=1)
    torch.testing.assert_close(learner.predict_log_proba(x.float()).double(), expected, atol=1e-4, rtol=1e-4)


def test_fourier_features_are_scaled_cosines_of_random_projections():
    features = FixedFeatures(3, 7, random=RandomSource(5), device=torch.device("cpu"))
    generator = torch.Generator().manual_seed(5)
    directions = torch.randn(3, 7, generator=generator)
    phase = 2 * math.pi * torch.rand(7, generator=generator)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    expected = math.sqrt(2 / 7) * torch.cos(math.sqrt(2 * 0.4) * x @ directions + phase)
    torch.testing.assert_close(features(x, torch.tensor(0.4)), expected.double(), atol=1e-5, rtol=1e-5)


def test_a_kernel_width_that_was_given_is_kept_and_enters_the_features():
    x, y = classes_of_gaussians(60)
    learner = SLDA(SLDA.Settings(n_features=10, gamma=0.02), input_shape=(5,), n_classes=3)
    learner.learn(x, y)
    assert float(learner.statistics.values["gamma"]) == pytest.approx(0.02)
    expected = torch.stack([learner.map(x[y == label], torch.tensor(0.02)).sum(0) for label in range(3)])
    torch.testing.assert_close(learner.statistics.values["sums"], expected)


def test_classes_are_equally_probable_before_the_first_batch():
    learner = SLDA(SLDA.Settings(n_features=4), input_shape=(5,), n_classes=4)
    answers = learner.predict_log_proba(torch.rand(2, 5))
    assert answers.flatten().tolist() == pytest.approx([-math.log(4)] * 8)


def test_features_wait_until_a_chunk_is_full():
    x, y = classes_of_gaussians(60)
    learner = SLDA(SLDA.Settings(features="pixels", chunk=30), input_shape=(5,), n_classes=3)
    waiting = []
    for rows in torch.arange(60).split(10):
        learner.learn(x[rows], y[rows])
        waiting.append(len(learner.statistics.values["waiting"]))
    assert waiting == [10, 20, 0, 10, 20, 0]
    torch.testing.assert_close(learner.statistics.values["products"], x.double().T @ x.double())


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
