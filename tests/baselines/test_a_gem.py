"""Averaged GEM: the projection as its formula and as a quadratic program, and the step along it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from plain_steps import PLAIN, RATE, after_step, batch, gradient_of, weights_of

from cndpm.baselines.gem import AGEM, project, project_to_reference


@given(seed=st.integers(0, 2**31))
def test_averaged_projection_is_the_one_constraint_case_of_gem(seed: int):
    generator = torch.Generator().manual_seed(seed)
    gradient, reference = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    expected = project(gradient, reference[None])
    torch.testing.assert_close(project_to_reference(gradient, reference), expected, atol=1e-5, rtol=1e-5)


def test_a_contradicting_batch_moves_the_weights_along_the_projected_gradient():
    learner = AGEM(AGEM.Settings(memory_size=6, replay_batch=6, **PLAIN), input_shape=(5,), n_classes=4)
    x, y = batch(6, 0)
    learner.learn(x, y)
    contradiction = (y + 1) % 4
    gradient = gradient_of(F.cross_entropy(learner.network(x), contradiction), learner.network)
    reference = gradient_of(F.cross_entropy(learner.network(x), y), learner.network)
    product = gradient @ reference
    assert product < -1e-3
    expected = weights_of(learner.network) - RATE * (gradient - product / (reference @ reference) * reference)
    learner.learn(x, contradiction)
    torch.testing.assert_close(weights_of(learner.network), expected)
    assert learner.memory.n_seen == 12


def test_a_batch_that_agrees_with_the_memory_is_learned_plainly():
    learner = AGEM(AGEM.Settings(memory_size=6, **PLAIN), input_shape=(5,), n_classes=4)
    x, y = batch(6, 0)
    for _ in range(2):
        expected = after_step(learner.network, F.cross_entropy(learner.network(x), y))
        learner.learn(x, y)
        torch.testing.assert_close(weights_of(learner.network), expected)
