"""CN-DPM with a concentration of its own, over Gaussian and over neural experts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.features import IdentityFeatures
from cndpm.learners.cndpm import CNDPM
from cndpm.learners.settings import CNDPMSettings
from cndpm.state import load_state, save_state

GAUSSIAN = {"experts": "gaussian", "log_alpha": "auto", "memory_size": 40, "n_fourier": 16}


def make(input_shape=(8,), **changes):
    return CNDPM(CNDPMSettings(**{**GAUSSIAN, **changes}), input_shape=input_shape, seed=0)


def learned(learner, stream):
    for x, y in stream:
        learner.learn(x, y)
    return learner


def clusters(n_batches, centres, *, seed=0, n_features=8):
    """Unlabelled batches of ten, `n_batches` around each centre in turn."""
    generator = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(10, n_features, generator=generator) + centre, None)
        for centre in centres
        for _ in range(n_batches)
    ]


@given(
    st.integers(1, 25),
    st.lists(st.integers(1, 15), min_size=1, max_size=8),
    st.sampled_from(["classes", "values", "none"]),
    st.integers(1, 5),
)
def test_no_sample_is_lost_whatever_is_accepted_returned_or_dismissed(memory_size, sizes, target, n_classes):
    learner = make((3,), memory_size=memory_size, target=target)
    generator = torch.Generator().manual_seed(sum(sizes))
    for size in sizes:
        x = torch.randn(size, 3, generator=generator)
        y = torch.randint(n_classes, (size,), generator=generator)
        learner.learn(x, {"classes": y, "values": y.float().unsqueeze(1), "none": None}[target])
    assert learner.counts.sum().item() + len(learner.memory) == pytest.approx(sum(sizes))
    learner.consolidate()
    assert len(learner.memory) == 0
    assert learner.counts.sum().item() == pytest.approx(sum(sizes))


def test_a_task_that_returns_gets_no_second_expert(two_task_stream):
    learner = learned(make(), two_task_stream)
    assert learner.n_experts == 2
    learned(learner, two_task_stream * 3)
    assert learner.n_experts == 2


def test_stray_outliers_found_no_expert_of_their_own():
    learner = learned(make(target="none", features="identity"), clusters(40, [0.0]))
    assert learner.n_experts == 1
    generator = torch.Generator().manual_seed(1)
    for i, (x, _) in enumerate(clusters(100, [0.0], seed=2)):
        if i % 5 == 0:
            x[0] = 12 * torch.randn(8, generator=generator)
        learner.learn(x, None)
    assert learner.n_experts == 1


def test_what_is_new_without_labels_is_found_by_itself():
    learner = learned(make(target="none", features="identity"), clusters(30, [0.0, 6.0, -6.0]))
    assert learner.n_experts == 3
    x = torch.cat([x for x, _ in clusters(3, [6.0], seed=5)])
    assert (learner.expert_log_proba(x).argmax(1) == 1).float().mean() > 0.95


def test_more_of_the_same_is_rarely_called_new():
    learner = learned(make(target="none", features="identity", novelty_rate=0.01), clusters(100, [0.0]))
    assert learner.n_experts == 1
    assert len(learner.memory) < 0.05 * 1000


def test_the_same_rule_serves_neural_experts(small_settings, two_task_stream):
    settings = small_settings(
        log_alpha="auto", likelihood="pixel-gaussian", density_lr=2e-2, density_sleep_steps=300, min_share=0.0
    )
    learner = learned(CNDPM(settings, input_shape=(8,), n_classes=4, seed=1), two_task_stream * 2)
    assert 2 <= learner.n_experts <= 3
    x, y = two_task_stream[-1]
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.9


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
    settings = CNDPMSettings(experts="gaussian", log_alpha="auto", memory_size=50, anytime=True)
    plain, prepared = (CNDPM(settings, input_shape=(4,), n_classes=2, feature_map=Counting()) for _ in range(2))
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
    settings = {"memory_size": 60, "n_patches": 2, "anytime": True}
    first, second = make((1, 12, 12), **settings), make((1, 12, 12), **settings)
    for start in range(0, 600, 10):
        if start == 470:
            save_state(tmp_path / "state", first.state_dict(), kind="learner")
            second.load_state_dict(load_state(tmp_path / "state", kind="learner"))
            first.predict_log_proba(block[:30])
        for learner in (first, second) if start >= 470 else (first,):
            learner.learn(block[start : start + 10], y[start : start + 10])
    assert first.n_experts >= 2
    for learner in (first, second):
        save_state(tmp_path / str(id(learner)), learner.state_dict(), kind="learner")
    assert (tmp_path / str(id(first))).read_bytes() == (tmp_path / str(id(second))).read_bytes()
