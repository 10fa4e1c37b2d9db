"""CN-DPM with a concentration of its own, over Gaussian and over neural experts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.chunks import Samples
from cndpm.model.cndpm import CNDPM
from cndpm.model.memory import SampleBatch
from cndpm.model.settings import CNDPMSettings

GAUSSIAN = {"experts": "gaussian", "log_alpha": "auto", "memory_size": 40, "n_fourier": 16}


def make(input_shape=(8,), **changes):
    return CNDPM(CNDPMSettings(**GAUSSIAN).changed(**changes), input_shape=input_shape, seed=0)


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
    n_waiting = learner.arrivals.n_waiting
    assert learner.counts.sum().item() + len(learner.memory) + n_waiting == pytest.approx(sum(sizes))
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


NEURAL = {
    "log_alpha": "auto",
    "likelihood": "pixel-gaussian",
    "density_lr": 2e-2,
    "density_sleep_steps": 300,
    "predictor_sleep_steps": 150,
    "density_wake_lr_factor": 0.1,
    "predictor_wake_lr_factor": 0.1,
    "min_share": 0.0,
}
"""A density that keeps on learning as fast as in sleep loses what it knew within fifty batches of this stream."""


@pytest.fixture
def neural(small_settings):
    def make_neural(seed=0):
        return CNDPM(small_settings(**NEURAL), input_shape=(8,), n_classes=4, seed=seed)

    return make_neural


def fuzzy(stream, share, seed=0):
    """Batches of the first task in which a share of the samples is the second task's."""
    generator = torch.Generator().manual_seed(seed)
    old, new = stream[: len(stream) // 2], stream[len(stream) // 2 :]
    mixed = []
    for (x, y), (x_new, y_new) in zip(old, new, strict=True):
        comes = torch.rand(len(y), generator=generator) < share
        mixed.append((torch.where(comes[:, None], x_new, x), torch.where(comes, y_new, y)))
    return mixed


@pytest.mark.parametrize("seed", range(2))
def test_neural_experts_are_made_for_new_classes_and_for_nothing_else(neural, two_task_stream, seed):
    learner = learned(neural(seed), two_task_stream * 2)
    assert learner.n_experts == 2
    assert learner.counts.tolist() == pytest.approx([240, 240], abs=len(learner.memory) + 1)
    for x, y in two_task_stream[::12]:
        assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() >= 0.9


def test_neural_experts_tell_classes_that_come_mixed(neural, two_task_stream):
    learner = learned(neural(), two_task_stream[:12] + fuzzy(two_task_stream, 0.2) + fuzzy(two_task_stream, 0.5, 1))
    assert learner.n_experts == 2
    routed = learner.log_joint(*two_task_stream[0]).argmax(1), learner.log_joint(*two_task_stream[-1]).argmax(1)
    assert (routed[0] == 0).all()
    assert (routed[1] == 1).all()


def test_a_dismissed_network_gives_its_samples_back(neural, two_task_stream):
    learner = learned(neural(), two_task_stream[:12])
    assert learner.n_experts == 1
    before = learner.bank.experts[0].state_dict()
    n_known = learner.counts.sum().item()
    for x, y in two_task_stream[2:5]:
        learner.memory.add(SampleBatch(Samples(x), y))
    n_waiting = len(learner.memory)
    learner.consolidate()
    assert learner.n_experts == 1
    assert len(learner.memory) == 0
    assert learner.counts.sum().item() == pytest.approx(n_known + n_waiting)
    after = learner.bank.experts[0].state_dict()
    assert any(not torch.equal(a, b) for a, b in zip(tensors(before), tensors(after), strict=True))


def test_strays_go_back_while_what_is_known_comes_and_new_labels_stay(neural, two_task_stream):
    """So that a change finds no strays in the memory, even one that brings no new label."""
    learner = learned(neural(), two_task_stream[:10])
    x, y = two_task_stream[2]
    learner.memory.add(SampleBatch(Samples(x), y))
    x_new, y_new = two_task_stream[-1]
    learner.learn(x_new[:4], y_new[:4])
    assert len(learner.memory) == 14
    learned(learner, two_task_stream[10:12])
    assert sorted(learner.memory.batch().y.tolist()) == sorted(y_new[:4].tolist())
    assert learner.counts.sum().item() == pytest.approx(130)


def tensors(state):
    """The tensors of a state, in order."""
    if isinstance(state, torch.Tensor):
        return [state]
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else []
    return [tensor for part in parts for tensor in tensors(part)]


def test_a_stream_that_was_stopped_goes_on_to_the_bit(neural, two_task_stream):
    whole, resumed = neural(), neural()
    learned(whole, two_task_stream[:20])
    for start, stop in ((0, 2), (2, 13), (13, 17), (17, 20)):
        stopped, resumed = resumed, neural()
        resumed.load_state_dict(stopped.state_dict())
        learned(resumed, two_task_stream[start:stop])
    ours, theirs = tensors(resumed.state_dict()), tensors(whole.state_dict())
    assert len(ours) == len(theirs)
    assert all(torch.equal(a.nan_to_num(0.5), b.nan_to_num(0.5)) for a, b in zip(ours, theirs, strict=True))


@given(st.integers(4, 25), st.lists(st.integers(1, 15), min_size=1, max_size=6), st.integers(1, 3))
def test_no_sample_of_neural_experts_is_lost(memory_size, sizes, n_classes):
    settings = CNDPMSettings.paper(
        log_alpha="auto", memory_size=memory_size, hidden=4, hidden_growth=2, latent_dim=2, n_latent_samples=2,
        density_sleep_steps=3, predictor_sleep_steps=3, sleep_batch_size=4,
    )  # fmt: skip
    learner = CNDPM(settings, input_shape=(3,), seed=0)
    generator = torch.Generator().manual_seed(sum(sizes))
    for size in sizes:
        learner.learn(torch.rand(size, 3, generator=generator), torch.randint(n_classes, (size,), generator=generator))
    learner.consolidate()
    assert len(learner.memory) == 0
    assert learner.counts.sum().item() == pytest.approx(sum(sizes))
