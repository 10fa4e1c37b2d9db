"""Sample selection against brute force on a tiny memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from plain_steps import PLAIN, after_step, weights_of
from scipy.stats import binomtest
from torch import Tensor

from cndpm.baselines.gss import GSS, choose_place


def make_learner(memory_size: int, references: int) -> GSS:
    settings = GSS.Settings(hidden=5, memory_size=memory_size, references=references)
    return GSS(settings, input_shape=(4,), n_classes=3, seed=1)


def brute_force_gradient(learner: GSS, x: Tensor, y: Tensor) -> Tensor:
    loss = F.cross_entropy(learner.network(x[None]), y[None])
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss, list(learner.network.parameters()))])


def batch(n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 4, generator=generator), torch.randint(3, (n,), generator=generator)


def test_scores_are_one_plus_the_largest_cosine_with_the_whole_tiny_memory():
    learner = make_learner(memory_size=4, references=4)
    stored, new = batch(4, seed=0), batch(6, seed=1)
    learner._offer(*stored, torch.full((4,), 0.1))
    past = [brute_force_gradient(learner, *one) for one in zip(*stored, strict=True)]
    expected = [
        1 + max(F.cosine_similarity(brute_force_gradient(learner, *one), g, dim=0).item() for g in past)
        for one in zip(*new, strict=True)
    ]
    torch.testing.assert_close(learner._scores(*new), torch.tensor(expected), atol=1e-5, rtol=1e-5)


def test_selection_follows_the_algorithm_written_as_a_plain_loop():
    learner = make_learner(memory_size=3, references=3)
    draws = torch.Generator().manual_seed(0)
    memory: list[tuple[float, float]] = []  # (first input value, score)
    for seed in range(30):
        x, y = batch(2, seed)
        scores = torch.rand(2, generator=torch.Generator().manual_seed(100 + seed)) * 1.4
        draws.set_state(learner.random.generator.get_state())
        for value, score in zip(x[:, 0].tolist(), scores.tolist(), strict=True):
            if len(memory) < 3:
                memory.append((value, score))
            elif score < 1:
                weights = torch.tensor([stored for _, stored in memory])
                i = int(torch.multinomial(weights, 1, generator=draws))
                if float(torch.rand((), generator=draws)) < memory[i][1] / (memory[i][1] + score):
                    memory[i] = (value, score)
        learner._offer(x, y, scores)
    rows = learner.memory.rows
    torch.testing.assert_close(rows["x"][:, 0], torch.tensor([value for value, _ in memory]))
    torch.testing.assert_close(rows["score"], torch.tensor([score for _, score in memory]))


def test_a_step_is_that_of_experience_replay():
    """Batch and memory count by their samples."""
    learner = GSS(GSS.Settings(memory_size=4, references=2, **PLAIN), input_shape=(4,), n_classes=3)
    first, second = batch(4, seed=0), batch(6, seed=1)
    expected = after_step(learner.network, F.cross_entropy(learner.network(first[0]), first[1]))
    learner.learn(*first)
    torch.testing.assert_close(weights_of(learner.network), expected)
    torch.testing.assert_close(learner.memory.rows["score"], torch.full((4,), 0.1))
    inputs, labels = (torch.cat(parts) for parts in zip(second, first, strict=True))
    expected = after_step(learner.network, F.cross_entropy(learner.network(inputs), labels))
    learner.learn(*second)
    torch.testing.assert_close(weights_of(learner.network), expected)


def test_scores_are_taken_before_the_step_and_stored_with_the_sample():
    learner = GSS(GSS.Settings(memory_size=8, references=8, **PLAIN), input_shape=(4,), n_classes=3)
    learner.learn(*batch(4, seed=0))
    past = [brute_force_gradient(learner, *one) for one in zip(*batch(4, seed=0), strict=True)]
    expected = [
        1 + max(F.cosine_similarity(brute_force_gradient(learner, *one), g, dim=0).item() for g in past)
        for one in zip(*batch(4, seed=1), strict=True)
    ]
    learner.learn(*batch(4, seed=1))
    torch.testing.assert_close(learner.memory.rows["score"][4:], torch.tensor(expected), atol=1e-4, rtol=1e-4)


def test_a_sample_is_compared_with_as_many_as_asked_for():
    learner = make_learner(memory_size=40, references=1)
    learner._offer(*batch(40, seed=0), torch.full((40,), 0.1))
    x, y = batch(1, seed=1)
    scores = {round(float(learner._scores(x, y)), 5) for _ in range(40)}
    assert len(scores) > 10  # the largest of all forty would be the same every time


def test_a_redundant_sample_is_turned_away():
    generator = torch.Generator().manual_seed(0)
    assert all(choose_place(torch.tensor([1.9, 1.9]), 1.0, generator) is None for _ in range(50))


def test_replacement_probability_is_the_products_of_the_two_draws():
    """Place 0 is drawn with 1.5 / 2 and replaced with 1.5 / (1.5 + 0.5): 0.5625 in all."""
    generator = torch.Generator().manual_seed(0)
    n = 3000
    hits = sum(choose_place(torch.tensor([1.5, 0.5]), 0.5, generator) == 0 for _ in range(n))
    assert binomtest(hits, n, 0.75 * 0.75).pvalue > 1e-3
