"""CN-DPM over Gaussian experts: what is computed ahead or once changes no answer and no bit."""

import pytest
import torch

from cndpm.experts.features import IdentityFeatures
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import load_state, save_state


def make(input_shape, *, feature_map=None, **changes):
    settings = CNDPMSettings(**changes)
    return CNDPM(settings, input_shape=input_shape, n_classes=4, feature_map=feature_map)


class Counting(IdentityFeatures):
    """Says of how many samples it computed features."""

    n_samples = 0

    def __call__(self, x):
        self.n_samples += len(x)
        return super().__call__(x)


def two_classes(n, d=4, seed=3):
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 2
    return torch.randn(n, d, generator=generator) + 4 * y[:, None], y


def test_features_of_a_prepared_test_set_are_computed_once_and_answers_stay_the_same():
    x, y = two_classes(400)
    plain, prepared = (make((4,), feature_map=Counting(), memory_size=50) for _ in range(2))
    test = two_classes(300, seed=5)[0]
    asked = prepared.prepare(test)
    for learner in (plain, prepared):
        learner.learn_block(x, y, 10)
    before = prepared.bank.feature_map.n_samples
    for exact in (False, True, False):
        expected = plain.predict_log_proba(test, exact=exact), plain.expert_log_proba(test)
        answers = prepared.predict_log_proba(asked, exact=exact), prepared.expert_log_proba(asked)
        assert all(map(torch.equal, answers, expected))
    assert prepared.bank.feature_map.n_samples - before == 300
    assert plain.bank.feature_map.n_samples - before == 6 * 300


@pytest.mark.parametrize("d", [4, 30, 32])
def test_features_of_a_block_are_computed_once_whatever_its_columns(d):
    x, y = two_classes(2000, d)
    learner = make((d,), feature_map=Counting(), memory_size=50)
    learner.learn_block(x, y, 10)
    assert learner.n_experts == 1
    assert learner.bank.feature_map.n_samples <= 1.1 * 2000


def test_between_renewals_answers_factorise_nothing_and_are_nearly_exact():
    x, y = two_classes(1500, 30)
    learner = make((30,), memory_size=100)
    learner.learn_block(x[:600], y[:600], 10)
    before = learner.bank.ready().n_factorisations
    for start in range(600, 800, 10):
        learner.predict_log_proba(x[start : start + 10])
        learner.learn(x[start : start + 10], y[start : start + 10])
    assert learner.bank.ready().n_factorisations - before <= 1  # 286 features: renewed after as many samples
    test = two_classes(500, 30, seed=9)[0]
    lagging, exact = learner.predict_log_proba(test), learner.predict_log_proba(test, exact=True)
    assert (lagging.argmax(1) == exact.argmax(1)).double().mean() > 0.998
    learner.finish()
    assert torch.equal(learner.predict_log_proba(test), exact)
    learner.learn(x[800:810], y[800:810])
    assert not learner.state_dict()["is_exact"]


def test_a_batch_that_is_prepared_is_predicted_and_learned_with_features_computed_once():
    x, y = two_classes(600)
    plain, prepared = (make((4,), feature_map=Counting(), memory_size=50) for _ in range(2))
    for start in range(0, 600, 10):
        part, labels = x[start : start + 10], y[start : start + 10]
        asked = prepared.prepare(part)
        torch.testing.assert_close(prepared.predict_log_proba(asked), plain.predict_log_proba(part))
        plain.learn(part, labels)
        prepared.learn(asked, labels)
    assert prepared.counts.tolist() == plain.counts.tolist()
    assert prepared.bank.feature_map.n_samples <= 1.1 * 600
    assert plain.bank.feature_map.n_samples > 1.7 * 600


def test_rows_one_by_one_are_learned_as_batches_of_one():
    x, y = two_classes(300)
    by_row, by_block = (make((4,), memory_size=50) for _ in range(2))
    for i in range(300):
        by_row.learn(x[i : i + 1], y[i : i + 1])
    by_block.learn_block(x, y, 1)
    assert by_row.counts.tolist() == by_block.counts.tolist()
    torch.testing.assert_close(by_row.predict_log_proba(x), by_block.predict_log_proba(x), rtol=1e-5, atol=1e-6)
    assert (by_row.predict_log_proba(x).argmax(1) == y).double().mean() > 0.99


def test_a_learner_restored_in_the_middle_of_a_block_goes_on_with_the_same_bits(tmp_path):
    generator = torch.Generator().manual_seed(4)
    y = torch.arange(600) % 2 + 2 * (torch.arange(600) >= 300)
    block = torch.rand(600, 1, 12, 12, generator=generator) * (1 + y[:, None, None, None])
    first, second = (make((1, 12, 12), memory_size=60, features="patches", n_patches=2) for _ in range(2))

    def after_batch(n_learned):
        if n_learned == 470:
            save_state(tmp_path / "state", first.state_dict(), kind="learner")
            first.predict_log_proba(block[:30])

    first.learn_block(block, y, 10, after_batch=after_batch)
    second.load_state_dict(load_state(tmp_path / "state", kind="learner"))
    second.learn_block(block, y, 10, start=470)
    assert first.n_experts >= 2
    for name, learner in (("first", first), ("second", second)):
        save_state(tmp_path / name, learner.state_dict(), kind="learner")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


@pytest.mark.parametrize("seed", range(4))
def test_consolidating_an_iid_stream_founds_no_expert_on_its_strays(seed):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(3, (800,), generator=generator)
    x = torch.randn(800, 5, generator=generator) * (1 + torch.rand(800, 1, generator=generator)) + 2 * y[:, None]
    learner = make((5,), memory_size=100)
    learner.learn_block(x, y, 10)
    learner.consolidate()
    assert learner.n_experts == 1
    assert learner.counts.sum().item() == pytest.approx(800)


def test_consolidating_a_handful_of_a_new_class_founds_an_expert():
    x, y = two_classes(300)
    learner = make((4,), memory_size=100)
    learner.learn_block(x, y, 10)
    learner.learn(x[:6] - 20, torch.full((6,), 3))
    learner.consolidate()
    assert learner.counts.round().tolist() == [300, 6]
    assert (learner.predict_log_proba(x[:6] - 20).argmax(1) == 3).all()


def test_a_domain_with_known_labels_gets_one_expert_however_late_the_covariance_follows():
    """The shared covariance is renewed long after the domain has come, and margins fall: that is not news."""
    generator, deviations = torch.Generator().manual_seed(5), torch.logspace(-2, 0, 300)
    y = torch.arange(6000) % 2
    x = (torch.randn(6000, 300, generator=generator) + 0.5 * y[:, None]) * deviations
    x[4000:] = 2 * x[4000:].flip(1) + torch.linspace(-3, 3, 300)
    learner = make((300,), feature_map=IdentityFeatures(), memory_size=60)
    learner.learn_block(x, y, 10)
    assert learner.counts.round().tolist() == [4000, 2000]


def numbers(state):
    """Counts the numbers of a state, random states apart."""
    if isinstance(state, torch.Tensor):
        return 0 if state.dtype == torch.uint8 else state.numel()
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else []
    return sum(map(numbers, parts))


def test_numbers_kept_are_those_of_the_state_but_for_what_only_resuming_needs():
    x, y = two_classes(700)
    learner = make((4,), memory_size=50, representations="one")
    learner.learn_block(x, y, 10)
    state = learner.state_dict()
    gaussians = state["bank"]["gaussians"]
    left_out = [gaussians["routing"], gaussians["ledger"], gaussians["statistics"]["pending"]]
    left_out += [state["novelty"], state["events"]]
    assert all(map(numbers, left_out))
    assert learner.footprint().n_numbers_kept == numbers(state) - sum(map(numbers, left_out)) - numbers(state["memory"])
