"""The asymmetric cross entropy of ER-ACE."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, batch, weights_of

from cndpm.baselines.er_ace import ERACE, among_present


def test_logits_of_absent_classes_are_hidden():
    hidden = among_present(torch.zeros(2, 4), torch.tensor([3, 1]))
    assert torch.isneginf(hidden).tolist() == [[True, False, True, False]] * 2


def test_er_ace_compares_incoming_samples_among_their_own_classes_and_replayed_ones_among_all():
    learner = ERACE(ERACE.Settings(memory_size=4, **PLAIN), input_shape=(5,), n_classes=4)
    first, second = batch(4, 0, (0, 2)), batch(6, 1, (2, 4))
    alone = after_step(learner.network, F.cross_entropy(learner.network(first[0])[:, :2], first[1]))
    learner.learn(*first)
    torch.testing.assert_close(weights_of(learner.network), alone)
    incoming = F.cross_entropy(learner.network(second[0])[:, 2:], second[1] - 2)
    replayed = F.cross_entropy(learner.network(first[0]), first[1])
    expected = after_step(learner.network, incoming + replayed)
    assert torch.equal(learner.memory.rows["y"], first[1])
    learner.learn(*second)
    torch.testing.assert_close(weights_of(learner.network), expected)
    assert learner.memory.n_seen == 10
