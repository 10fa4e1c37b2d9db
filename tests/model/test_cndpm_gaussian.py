"""CN-DPM over Gaussian experts: what is computed ahead or once changes no answer and no bit."""

import torch

from cndpm.experts.features import IdentityFeatures
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import load_state, save_state


def make(input_shape, *, feature_map=None, **changes):
    settings = CNDPMSettings(**{"experts": "gaussian", "log_alpha": "auto", "anytime": True, **changes})
    return CNDPM(settings, input_shape=input_shape, n_classes=4, feature_map=feature_map)


class Counting(IdentityFeatures):
    """Says of how many samples it computed features."""

    n_samples = 0

    def __call__(self, x):
        self.n_samples += len(x)
        return super().__call__(x)


def test_features_of_a_prepared_test_set_are_computed_once_and_answers_stay_the_same():
    generator = torch.Generator().manual_seed(3)
    y = torch.arange(400) % 2
    x = torch.randn(400, 4, generator=generator) + 4 * y[:, None]
    plain, prepared = (make((4,), feature_map=Counting(), memory_size=50) for _ in range(2))
    test = torch.randn(300, 4, generator=generator)
    prepared.prepare(test)
    for learner in (plain, prepared):
        for start in range(0, 400, 10):
            learner.learn(x[start : start + 10], y[start : start + 10])
    before = prepared.bank.feature_map.n_samples
    for part in (test[:100], test[100:], test):
        expected = plain.predict_log_proba(part), plain.expert_log_proba(part)
        torch.testing.assert_close((prepared.predict_log_proba(part), prepared.expert_log_proba(part)), expected)
    assert prepared.bank.feature_map.n_samples - before <= 300 + len(prepared.memory)
    assert plain.bank.feature_map.n_samples - before > 600


def test_a_learner_restored_in_the_middle_of_a_block_goes_on_with_the_same_bits(tmp_path):
    generator = torch.Generator().manual_seed(4)
    y = torch.arange(600) % 2 + 2 * (torch.arange(600) >= 300)
    block = torch.rand(600, 1, 12, 12, generator=generator) * (1 + y[:, None, None, None])
    first, second = (make((1, 12, 12), memory_size=60, n_patches=2) for _ in range(2))
    for start in range(0, 600, 10):
        if start == 470:
            save_state(tmp_path / "state", first.state_dict(), kind="learner")
            second.load_state_dict(load_state(tmp_path / "state", kind="learner"))
            first.predict_log_proba(block[:30])
        for learner in (first, second) if start >= 470 else (first,):
            learner.learn(block[start : start + 10], y[start : start + 10])
    assert first.n_experts >= 2
    for name, learner in (("first", first), ("second", second)):
        save_state(tmp_path / name, learner.state_dict(), kind="learner")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_domain_with_known_labels_gets_one_expert_however_late_the_covariance_follows():
    """The shared covariance is renewed long after the domain has come, and margins fall: that is not news."""
    generator, deviations = torch.Generator().manual_seed(5), torch.logspace(-2, 0, 300)
    y = torch.arange(6000) % 2
    x = (torch.randn(6000, 300, generator=generator) + 0.5 * y[:, None]) * deviations
    x[4000:] = 2 * x[4000:].flip(1) + torch.linspace(-3, 3, 300)
    learner = make((300,), feature_map=IdentityFeatures(), memory_size=60)
    for start in range(0, 6000, 10):
        learner.learn(x[start : start + 10], y[start : start + 10])
    assert learner.counts.round().tolist() == [4000, 2000]
