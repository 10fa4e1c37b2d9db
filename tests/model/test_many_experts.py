"""Many experts: components that are far away are not asked, and what is learned and answered is as if they had been."""

import pytest
import torch

from cndpm.experts.gaussian import classes, shared_covariance
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings


def blobs(n_groups: int, *, n: int = 90, d: int = 6, seed: int = 0):
    """Groups of two classes that come one after the other, and then all mixed."""
    generator = torch.Generator().manual_seed(seed)
    centres = 4 * torch.randn(2 * n_groups, d, generator=generator)
    order = torch.cat([2 * group + torch.randint(2, (n,), generator=generator) for group in range(n_groups)])
    y = torch.cat([order, torch.randint(2 * n_groups, (300,), generator=generator)])
    return centres[y] + torch.randn(len(y), d, generator=generator), y


def grown(x, y, learner=None):
    learner = learner or CNDPM(
        CNDPMSettings(memory_size=40, n_fourier=24, representations="one"), input_shape=tuple(x.shape[1:])
    )
    learner.learn_block(x, y, 10)
    return learner


@pytest.fixture
def everything_is_many(monkeypatch):
    monkeypatch.setattr(shared_covariance, "_FEW", 0)
    monkeypatch.setattr(classes, "_FEW_ANSWERS", 0)


def test_many_components_are_routed_and_learned_as_few_are(request):
    x, y = blobs(8)
    plain = grown(x, y)
    request.getfixturevalue("everything_is_many")
    sparse = grown(x, y)
    assert sparse.bank._gaussians._index is not None
    assert plain.n_experts == sparse.n_experts == 8
    torch.testing.assert_close(sparse.counts, plain.counts, rtol=1e-6, atol=1e-6)
    for exact in (False, True):
        few, many = (learner.predict_log_proba(x[-300:], exact=exact).exp() for learner in (plain, sparse))
        torch.testing.assert_close(many, few, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("everything_is_many")
def test_with_many_components_a_saved_model_goes_on_to_the_same_bits():
    x, y = blobs(8)
    whole = grown(x, y)
    begun = grown(x[:500], y[:500])
    resumed = CNDPM(begun.settings, input_shape=begun.input_shape)
    resumed.load_state_dict(begun.state_dict())
    for learner in (begun, resumed):
        learner.predict_log_proba(x[:20])
        grown(x[500:], y[500:], learner)
    answers = [learner.predict_log_proba(x[:200]) for learner in (begun, resumed, whole)]
    assert torch.equal(answers[0], answers[1])
    torch.testing.assert_close(answers[2], answers[1])


def test_classes_beyond_the_nearest_have_the_least_probability(monkeypatch):
    monkeypatch.setattr(shared_covariance, "_FEW", 8)
    x, y = blobs(20)
    learner = grown(x, y)
    assert learner.n_experts * 40 <= classes._FEW_ANSWERS
    exact = learner.predict_log_proba(x[-300:])
    monkeypatch.setattr(classes, "_FEW_ANSWERS", 0)
    near = learner.predict_log_proba(x[-300:])
    assert (near.argmax(1) == exact.argmax(1)).all()
    torch.testing.assert_close(near.exp(), exact.exp(), rtol=1e-4, atol=1e-4)
    assert (near.exp() > 1e-20).sum(dim=1).max() <= 25  # the nearest, and the memory
