"""The fast path against the plain loops of the oracle, on the same stream with the same seed."""

import pytest
import torch

from cndpm.experts.chunks import Samples
from cndpm.model.cndpm import CNDPM
from oracles.networks import Oracle


@pytest.fixture(scope="module", params=[True, False], ids=["sharing", "no sharing"])
def pair(request, small_settings, two_task_stream):
    settings = small_settings(sharing=request.param, density_wake_lr_factor=0.5)
    learner = CNDPM(settings, input_shape=(8,), n_classes=4, seed=5)
    oracle = Oracle(settings, input_shape=(8,), n_classes=4, seed=5)
    for x, y in two_task_stream:
        learner.learn(x, y)
        oracle.learn(x, y)
    return learner, oracle


def test_the_stream_makes_more_than_one_expert_and_some_are_updated_awake(pair):
    learner, _ = pair
    assert learner.n_experts >= 2
    assert (learner.counts > learner.settings.memory_size).any()


def test_counts_and_memory_agree(pair):
    learner, oracle = pair
    torch.testing.assert_close(learner.counts, torch.tensor(oracle.counts, dtype=torch.float64), atol=1e-5, rtol=1e-5)
    assert len(learner.memory) == len(oracle.memory)


def test_parameters_agree(pair):
    learner, oracle = pair
    for fast, plain in zip(learner.bank.experts, oracle.experts, strict=True):
        for name, expected in plain.density.state_dict().items():
            torch.testing.assert_close(fast.density.state_dict()[name], expected, atol=1e-5, rtol=1e-5)
        for name, expected in plain.predictor.state_dict().items():
            torch.testing.assert_close(fast.predictor.state_dict()[name], expected, atol=1e-5, rtol=1e-5)


def test_responsibilities_agree(pair, two_task_stream):
    learner, oracle = pair
    for x, y in two_task_stream[::5]:
        rho, is_new = oracle.responsibilities(x, y)
        routing = learner.novelty.route(learner.bank.evidence(Samples(x), y), y)
        assert routing.is_new.tolist() == is_new
        torch.testing.assert_close(routing.responsibilities, rho, atol=1e-5, rtol=1e-5)


def test_predictions_agree(pair, two_task_stream):
    learner, oracle = pair
    x = torch.cat([x for x, _ in two_task_stream[::6]])
    torch.testing.assert_close(
        learner.predict_log_proba(x).exp(), oracle.predict_log_proba(x).exp(), atol=1e-5, rtol=1e-4
    )


def test_the_oracle_refuses_settings_that_it_does_not_implement(small_settings):
    with pytest.raises(ValueError, match="unit-gaussian"):
        Oracle(small_settings(likelihood="bernoulli"), input_shape=(8,), n_classes=4)
