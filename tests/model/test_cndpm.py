import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.chunks import Samples
from cndpm.experts.neural.parts import Density
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import load_state, save_state


def make(settings, *, n_classes=4, seed=1, **arguments):
    return CNDPM(settings, input_shape=(8,), n_classes=n_classes, seed=seed, **arguments)


SHARP = {"likelihood": "pixel-gaussian", "density_lr": 2e-2, "density_sleep_steps": 300, "log_alpha": -100.0}
"""Densities sharp enough to choose the right expert in eight dimensions."""


def learned(learner, stream):
    for x, y in stream:
        learner.learn(x, y)
    return learner


def same(a, b):
    """Whether two states are the same bits."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_sleep_adds_exactly_one_expert_and_empties_the_memory(small_settings, two_task_stream):
    learner = make(small_settings())
    for i, (x, y) in enumerate(two_task_stream[:4]):
        assert learner.n_experts == 0
        assert len(learner.memory) == 10 * i
        learner.learn(x, y)
    assert learner.n_experts == 1
    assert len(learner.memory) == 0
    assert learner.counts.tolist() == [40]


def test_experts_are_made_for_new_classes_and_not_for_more_of_the_old(small_settings, two_task_stream):
    learner = learned(make(small_settings(log_alpha=-100)), two_task_stream)
    assert learner.n_experts == 2
    x, y = two_task_stream[-1]
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.9
    x, y = two_task_stream[0]
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.9


@pytest.mark.parametrize("log_alpha", [-600.0, -60.0, 410.0])
def test_counts_sum_to_the_samples_seen_less_those_in_memory(small_settings, two_task_stream, log_alpha):
    learner = make(small_settings(log_alpha=log_alpha))
    seen = 0
    for x, y in two_task_stream:
        learner.learn(x, y)
        seen += len(x)
        assert learner.counts.sum().item() == pytest.approx(seen - len(learner.memory), abs=1e-9)


def test_changing_a_later_expert_leaves_earlier_ones_untouched_to_the_bit(small_settings, two_task_stream):
    learner = learned(make(small_settings(log_alpha=-100)), two_task_stream[:18])
    assert learner.n_experts == 2
    x = two_task_stream[0][0]
    before = copy.deepcopy(learner.bank.experts[0].state_dict())
    later = copy.deepcopy(learner.bank.experts[1].state_dict())
    log_density, proba = (
        learner.bank.log_density(Samples(x))[:, 0].clone(),
        learner.bank.predictive(Samples(x))[:, 0].clone(),
    )
    learned(learner, two_task_stream[18:])
    assert learner.n_experts == 2
    assert not same(later, learner.bank.experts[1].state_dict())
    assert same(before, learner.bank.experts[0].state_dict())
    assert torch.equal(log_density, learner.bank.log_density(Samples(x))[:, 0])
    assert torch.equal(proba, learner.bank.predictive(Samples(x))[:, 0])


def test_adding_an_expert_leaves_earlier_ones_untouched(small_settings, two_task_stream):
    learner = learned(make(small_settings(log_alpha=-100)), two_task_stream[:12])
    x = two_task_stream[0][0]
    before = copy.deepcopy(learner.bank.experts[0].state_dict())
    log_density, proba = (
        learner.bank.log_density(Samples(x))[:, 0].clone(),
        learner.bank.predictive(Samples(x))[:, 0].clone(),
    )
    learned(learner, two_task_stream[12:])
    assert learner.n_experts == 2
    assert same(before, learner.bank.experts[0].state_dict())
    # The products that all experts share have become larger, so answers agree to their rounding.
    torch.testing.assert_close(log_density, learner.bank.log_density(Samples(x))[:, 0])
    torch.testing.assert_close(proba, learner.bank.predictive(Samples(x))[:, 0])


def test_a_stream_stopped_and_resumed_gives_the_same_bits(small_settings, two_task_stream, tmp_path):
    straight = learned(make(small_settings()), two_task_stream)
    stopped, position = make(small_settings()), 0
    for stop in (3, 4, 9, 17):
        learned(stopped, two_task_stream[position:stop])
        save_state(tmp_path / "s", stopped.state_dict(), kind="test")
        stopped, position = make(small_settings(), seed=99), stop
        stopped.load_state_dict(load_state(tmp_path / "s", kind="test"))
    learned(stopped, two_task_stream[position:])
    assert same(straight.state_dict(), stopped.state_dict())
    x = two_task_stream[0][0]
    assert torch.equal(straight.predict_log_proba(x), stopped.predict_log_proba(x))


class Interruption(Exception):
    pass


@pytest.mark.parametrize("until", ["steps", "converged"])
def test_a_sleep_interrupted_and_resumed_gives_the_same_bits(small_settings, two_task_stream, tmp_path, until):
    settings = small_settings(
        memory_size=33, density_sleep_steps=250, predictor_sleep_steps=150, sleep_until=until, sleep_check_every=30
    )
    two_task_stream = two_task_stream[:8]
    straight = learned(make(settings), two_task_stream).state_dict()
    for after in (1, 2, 3):  # reports of the sleep
        learner, position = interrupted(make(settings), two_task_stream, after)
        save_state(tmp_path / "s", learner.state_dict(), kind="test")
        resumed = make(settings, seed=99)
        resumed.load_state_dict(load_state(tmp_path / "s", kind="test"))
        assert same(straight, learned(resumed, two_task_stream[position:]).state_dict())
    assert same(straight, learned(learner, two_task_stream[position:]).state_dict())


def interrupted(learner, stream, after):
    """Teaches a learner until its sleep has reported `after` times; returns it and the batches it was given."""
    reports = []

    def stop(phase, fraction):
        reports.append(fraction)
        if len(reports) == after:
            raise Interruption

    learner.on_progress = stop
    position = 0
    with pytest.raises(Interruption):
        for x, y in stream:
            position += 1
            learner.learn(x, y)
    learner.on_progress = None
    return learner, position


def test_a_consolidation_interrupted_and_resumed_gives_the_same_bits(small_settings, two_task_stream):
    settings = small_settings(density_sleep_steps=250, predictor_sleep_steps=150)
    straight, learner, resumed = (make(settings) for _ in range(3))
    for each in (straight, learner):
        learned(each, two_task_stream[:2])
    straight.consolidate()

    def stop(phase, fraction):
        raise Interruption

    learner.on_progress = stop
    with pytest.raises(Interruption):
        learner.consolidate()
    resumed.load_state_dict(learner.state_dict())
    for each in (straight, resumed):
        learned(each, two_task_stream[2:6])
    assert resumed.n_experts == straight.n_experts == 1
    assert same(straight.state_dict(), resumed.state_dict())


def test_answers_have_no_effect_on_the_learner(small_settings, two_task_stream):
    learner = learned(make(small_settings(anytime=True)), two_task_stream[:7])
    before = copy.deepcopy(learner.state_dict())
    x, y = two_task_stream[2]
    random_state = torch.get_rng_state()
    learner.predict_log_proba(x)
    learner.log_prob(x)
    learner.expert_log_proba(x)
    learner.sample(5)
    learner.similarity(x, y)
    assert same(before, learner.state_dict())
    assert torch.equal(random_state, torch.get_rng_state())


def test_inputs_are_neither_changed_nor_kept_by_reference(small_settings, two_task_stream):
    learner = make(small_settings())
    x, y = two_task_stream[0]
    x, y = x.clone(), y.clone()
    learner.learn(x, y)
    assert torch.equal(x, two_task_stream[0][0])
    x.zero_()
    y.zero_()
    stored, stored_y = learner.memory.batch()
    assert torch.equal(stored.x, two_task_stream[0][0])
    assert torch.equal(stored_y, two_task_stream[0][1])


def test_the_same_seed_repeats_and_another_differs(small_settings, two_task_stream):
    a, b, c = (learned(make(small_settings(), seed=s), two_task_stream[:8]) for s in (0, 0, 1))
    assert same(a.state_dict(), b.state_dict())
    assert not same(a.state_dict(), c.state_dict())


def test_a_memory_smaller_than_a_batch_works(small_settings, two_task_stream):
    learner = learned(make(small_settings(memory_size=3, density_sleep_steps=5)), two_task_stream[:3])
    assert learner.n_experts >= 1
    assert learner.counts.sum().item() + len(learner.memory) == pytest.approx(30)


def test_open_labels_grow_and_a_class_never_seen_by_an_expert_is_improbable_under_it(small_settings, two_task_stream):
    learner = learned(make(small_settings(log_alpha=-100, unseen_probability=1e-3), n_classes=None), two_task_stream)
    assert learner.n_experts == 2
    x, y = two_task_stream[-1]
    by_expert = learner.expert_predict_log_proba(x).exp()
    assert by_expert.shape == (10, 2, 4)
    torch.testing.assert_close(by_expert[:, 0, 2:], torch.full((10, 2), 0.0005))
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.9


def test_an_expert_that_must_take_a_new_label_learns_it(small_settings, two_task_stream):
    learner = learned(make(small_settings(log_alpha=-1e6, predictor_lr=3e-2), n_classes=None), two_task_stream * 6)
    assert learner.n_experts == 1
    x, y = two_task_stream[-1]
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.8


@pytest.mark.parametrize("sharing", [True, False])
def test_pruning_merges_a_redundant_expert_and_keeps_its_count(small_settings, two_task_stream, sharing):
    learner = learned(make(small_settings(**{**SHARP, "log_alpha": 410.0}, sharing=sharing)), two_task_stream)
    n, total = learner.n_experts, learner.counts.sum().item()
    x, y = (torch.cat(parts) for parts in zip(*two_task_stream, strict=True))
    accuracy = (learner.predict_log_proba(x).argmax(1) == y).float().mean()
    merges = learner.prune(x, y, threshold=0.9)
    kept = [k for k in range(n) if k not in {merge.removed for merge in merges}]
    assert merges
    assert learner.n_experts == len(kept) == n - len(merges)
    assert learner.counts.sum().item() == pytest.approx(total)
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() > accuracy - 0.1


def test_pruning_that_merges_nothing_changes_nothing(small_settings, two_task_stream):
    learner = learned(make(small_settings(**SHARP)), two_task_stream)
    x, y = (torch.cat(parts) for parts in zip(*two_task_stream, strict=True))
    before = learner.predict_log_proba(x)
    assert learner.prune(x, y, threshold=1.0) == []
    assert torch.equal(learner.predict_log_proba(x), before)


def test_a_pruned_learner_saves_loads_and_learns_on(small_settings, two_task_stream, tmp_path):
    learner = learned(make(small_settings(log_alpha=410.0)), two_task_stream)
    x, y = (torch.cat(parts) for parts in zip(*two_task_stream, strict=True))
    n_parameters = learner.footprint().n_parameters
    assert learner.prune(x, y)
    assert learner.footprint().n_parameters < n_parameters
    save_state(tmp_path / "s", learner.state_dict(), kind="test")
    loaded = make(small_settings(log_alpha=410.0))
    loaded.load_state_dict(load_state(tmp_path / "s", kind="test"))
    learned(learner, two_task_stream[:6])
    learned(loaded, two_task_stream[:6])
    assert same(learner.state_dict(), loaded.state_dict())


def test_samples_come_from_every_expert_with_a_label_of_its_own(small_settings, two_task_stream):
    settings = small_settings(**SHARP)
    learner = learned(make(settings), two_task_stream)
    x, y, experts = learner.sample(400, seed=3)
    assert x.shape == (400, 8)
    assert set(experts.tolist()) == {0, 1}
    assert ((y // 2) == experts).float().mean() > 0.9
    share = learner.counts[0] / learner.counts.sum()
    assert (experts == 0).double().mean().item() == pytest.approx(share.item(), abs=0.08)
    assert torch.equal(x, learner.sample(400, seed=3)[0])
    only, _, chosen = learner.sample(5, expert=1)
    assert chosen.tolist() == [1] * 5
    assert len(only) == 5


def test_what_waits_in_the_memory_is_known_at_once(small_settings, two_task_stream):
    learner = make(small_settings(**SHARP, anytime=True), n_classes=None)
    x, y = two_task_stream[0]
    learner.learn(x, y)
    assert learner.n_experts == 0
    assert torch.equal(learner.predict_log_proba(x).argmax(1), y)
    learned(learner, two_task_stream[1:13])
    assert learner.n_experts == 1
    assert len(learner.memory) == 10
    x, y = two_task_stream[13]
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.9
    x, y = two_task_stream[3]
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.9


def test_in_paper_mode_only_experts_answer(small_settings, two_task_stream):
    learner = make(small_settings(anytime=False))
    x, y = two_task_stream[0]
    learner.learn(x, y)
    torch.testing.assert_close(learner.predict_log_proba(x).exp(), torch.full((10, 4), 0.25, dtype=torch.float64))


def test_consolidate_sleeps_on_what_is_there(small_settings, two_task_stream):
    learner = learned(make(small_settings()), two_task_stream[:2])
    learner.consolidate()
    assert learner.n_experts == 1
    assert learner.counts.tolist() == [20]
    learner.consolidate()
    assert learner.n_experts == 1


def test_task_labels_give_one_expert_per_task_and_prediction_needs_none(small_settings, two_task_stream):
    told = {name: value for name, value in SHARP.items() if name != "log_alpha"}
    learner = make(small_settings(**told).changed(novelty="tasks"))
    listener = learner.task_listener
    for task in range(2):
        listener.begin_task(task)
        learned(learner, two_task_stream[12 * task : 12 * task + 12])
        listener.end_task()
    assert learner.n_experts == 2
    assert learner.counts.tolist() == [120, 120]
    listener.begin_task(0)
    learned(learner, two_task_stream[:12])
    listener.end_task()
    assert learner.counts.tolist() == [240, 120]
    x, y = two_task_stream[-1]
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.9


def test_without_labels_the_density_rises_and_bits_fall(small_settings, two_task_stream):
    settings = small_settings(**{**SHARP, "log_alpha": 0.0}, target="none")
    learner = CNDPM(settings, input_shape=(8,), seed=0)
    for x, _ in two_task_stream:
        learner.learn(x, None)
    assert learner.n_experts >= 2
    x = two_task_stream[0][0]
    noise = torch.rand(200, 8, generator=torch.Generator().manual_seed(0))
    assert learner.log_prob(x).mean() > learner.log_prob(noise).mean()
    with pytest.raises(ValueError, match="made for unlabelled data"):
        learner.learn(x, torch.zeros(10, dtype=torch.int64))


def test_regression_learns_two_regimes(small_settings):
    generator = torch.Generator().manual_seed(0)
    settings = small_settings(
        target="values", log_alpha=0.0, temperature=1.0, likelihood="gaussian", standardise=True,
        predictor_sleep_steps=400, density_sleep_steps=400,
    )  # fmt: skip
    learner = CNDPM(settings, input_shape=(2,), seed=0)
    for regime in (0, 1):
        for _ in range(12):
            x = torch.randn(10, 2, generator=generator) * 0.3 + 6 * regime
            learner.learn(x, (x.sum(1, keepdim=True) * (1 if regime == 0 else -1)) * 100)
    x = torch.tensor([[0.2, 0.1], [6.1, 5.9]])
    mean = learner.predict_moments(x)[:, 0, 0]
    assert mean[0].item() == pytest.approx(30, abs=40)
    assert mean[1].item() == pytest.approx(-1200, abs=80)


class Histogram(Density):
    """A user's density without gradients: independent histograms."""

    def __init__(self, input_shape, *, lateral_widths=()):
        super().__init__()
        self.n_bins = 10
        self.logits = torch.nn.Parameter(torch.zeros(input_shape[0], self.n_bins))

    def log_prob(self, x, lateral=()):
        bins = (x * self.n_bins).long().clamp(0, self.n_bins - 1)
        log_proba = torch.log_softmax(self.logits, dim=1)
        return log_proba[torch.arange(x.shape[1]), bins].sum(1) + x.shape[1] * torch.tensor(10.0).log()


def test_a_density_of_the_users_own_works(small_settings, two_task_stream):
    settings = small_settings(density_lr=0.05, log_alpha=-100, anytime=True)
    learner = learned(make(settings, density=Histogram), two_task_stream)
    assert learner.n_experts == 2
    x, y = two_task_stream[0]
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.9
    with pytest.raises(NotImplementedError, match="Histogram cannot be sampled from"):
        learner.sample(1)


X, Y = torch.rand(4, 8), torch.tensor([0, 1, 0, 1])
BAD = {
    "nan": (torch.full((4, 8), float("nan")), Y, ValueError, "NaN or infinity"),
    "infinity": (torch.full((4, 8), float("inf")), Y, ValueError, "NaN or infinity"),
    "width": (torch.rand(4, 7), Y, ValueError, r"shape \(batch, 8\); got \(4, 7\)"),
    "scalar": (torch.tensor(1.0), Y, ValueError, "shape"),
    "empty": (torch.rand(0, 8), Y[:0], ValueError, "at least one"),
    "rows": (X, Y[:3], ValueError, "got 4 and 3"),
    "complex": (X.to(torch.complex64), Y, TypeError, "real numbers"),
    "array": (X.numpy(), Y, TypeError, "torch tensor; got ndarray"),
    "no labels": (X, None, ValueError, "needs y"),
    "float labels": (X, Y.float(), ValueError, "integer class index"),
    "negative label": (X, Y - 1, ValueError, "from 0 to 3; got -1 to 0"),
    "label beyond": (X, Y + 5, ValueError, "from 0 to 3; got 5 to 6"),
    "scale": (X * 255, Y, ValueError, "Divide 8-bit images by 255"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_before_anything_changes(small_settings, two_task_stream, case):
    x, y, error, message = BAD[case]
    learner = learned(make(small_settings()), two_task_stream[:5])
    before = copy.deepcopy(learner.state_dict())
    with pytest.raises(error, match=message):
        learner.learn(x, y)
    assert same(before, learner.state_dict())


@given(
    st.integers(1, 7),
    st.integers(1, 30),
    st.lists(st.integers(1, 12), min_size=1, max_size=6),
    st.floats(-600, 410),
    st.booleans(),
)
def test_any_sequence_of_batches_is_learned_and_counted(memory_size, n_classes, sizes, log_alpha, open_labels):
    settings = CNDPMSettings.paper(
        memory_size=memory_size, log_alpha=log_alpha, hidden=4, hidden_growth=2, latent_dim=2, n_latent_samples=2,
        density_sleep_steps=2, predictor_sleep_steps=2, sleep_batch_size=4, anytime=True,
    )  # fmt: skip
    learner = CNDPM(settings, input_shape=(3,), n_classes=None if open_labels else n_classes)
    generator = torch.Generator().manual_seed(0)
    for size in sizes:
        x = torch.rand(size, 3, generator=generator)
        learner.learn(x, torch.randint(n_classes, (size,), generator=generator))
        proba = learner.predict_log_proba(x).exp()
        torch.testing.assert_close(proba.sum(1), torch.ones(size, dtype=torch.float64))
    assert learner.counts.sum().item() + len(learner.memory) == pytest.approx(sum(sizes))
    assert len(learner.memory) < memory_size


@pytest.mark.parametrize(("sharing", "total"), [(True, 524_130), (False, 838_690)])
def test_five_experts_have_as_many_parameters_as_the_paper_says(sharing, total):
    settings = CNDPMSettings.paper(density_sleep_steps=0, predictor_sleep_steps=0, memory_size=1, sharing=sharing)
    learner = CNDPM(settings, input_shape=(1, 28, 28), n_classes=10)
    for _ in range(5):
        learner.bank.found(Samples(torch.rand(1, 1, 28, 28)), torch.tensor([0]))
        assert learner.bank.train(1) == 1
    assert learner.footprint().n_parameters == total
