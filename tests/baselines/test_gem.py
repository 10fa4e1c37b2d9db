"""Gradient projections against a general-purpose quadratic-programming solver."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_steps import PLAIN, RATE, batch, gradient_of, weights_of
from scipy.optimize import minimize
from torch import Tensor

from cndpm.baselines.finetune import FineTune
from cndpm.baselines.gem import GEM, TaskMemories, project


def solve_primal(gradient: np.ndarray, references: np.ndarray) -> np.ndarray:
    """min |z - g|^2 / 2 so that <z, g_k> >= 0, by sequential quadratic programming."""
    result = minimize(
        lambda z: 0.5 * np.sum((z - gradient) ** 2),
        gradient,
        jac=lambda z: z - gradient,
        constraints={"type": "ineq", "fun": lambda z: references @ z, "jac": lambda _: references},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    # 8: no step improves any more, at the precision asked for.
    assert result.status in (0, 8), result.message
    return result.x


@settings(max_examples=40)
@given(seed=st.integers(0, 2**31), n_tasks=st.integers(1, 4))
def test_projection_agrees_with_a_quadratic_programming_solver(seed: int, n_tasks: int):
    random = np.random.default_rng(seed)
    gradient, references = random.normal(size=8), random.normal(size=(n_tasks, 8))
    projected = project(torch.from_numpy(gradient), torch.from_numpy(references)).numpy()
    np.testing.assert_allclose(projected, solve_primal(gradient, references), atol=1e-4)


def dual_by_enumeration(gradient: np.ndarray, references: np.ndarray, margin: float) -> np.ndarray:
    """argmin over v >= margin of |G^T v + g|^2 / 2, by trying every set of variables that lie on the bound."""
    gram, products = references @ references.T, references @ gradient
    best = (math.inf, np.full(len(products), margin))
    for is_free in itertools.product((False, True), repeat=len(products)):
        free = np.array(is_free)
        v = np.full(len(products), margin)
        if free.any():
            v[free] = np.linalg.solve(gram[np.ix_(free, free)], -(products + gram[:, ~free] @ v[~free])[free])
        if (v >= margin - 1e-12).all():
            best = min(best, (0.5 * v @ gram @ v + products @ v, v), key=lambda pair: pair[0])
    return best[1]


@pytest.mark.parametrize("margin", [0.0, 0.3, 1.0])
def test_projection_solves_the_dual_with_its_margin(margin: float):
    random = np.random.default_rng(0)
    for _ in range(10):
        gradient, references = random.normal(size=8), random.normal(size=(3, 8))
        if (references @ gradient >= 0).all():
            continue
        expected = gradient + dual_by_enumeration(gradient, references, margin) @ references
        projected = project(torch.from_numpy(gradient), torch.from_numpy(references), margin=margin)
        np.testing.assert_allclose(projected.numpy(), expected, atol=1e-4)


def test_gem_steps_along_the_gradient_projected_on_all_past_tasks():
    """With whole memories as references; the tasks contradict each other."""
    settings = GEM.Settings(memory_size=100, reference_batch=None, margin=2.0, **PLAIN)
    learner = GEM(settings, input_shape=(5,), n_classes=4)
    network, tasks = learner.network, []
    for task in range(2):
        x, y = batch(8, 0)
        tasks.append((x, (y + task) % 4))
        learner.begin_task(task)
        for _ in range(3):
            learner.learn(*tasks[-1])
        learner.end_task()
    learner.begin_task(2)
    x, y = tasks[0][0], (tasks[0][1] + 2) % 4
    gradient, first, second = (
        gradient_of(F.cross_entropy(network(inputs), labels), network).double().numpy()
        for inputs, labels in ((x, y), *tasks)
    )
    references = np.stack([first, second])
    assert (references @ gradient).min() < -1e-3
    projected = gradient + dual_by_enumeration(gradient, references, 2.0) @ references
    expected = weights_of(network) - RATE * torch.from_numpy(projected).float()
    learner.learn(x, y)
    torch.testing.assert_close(weights_of(network), expected, atol=1e-4, rtol=1e-4)
    assert [memory.n_seen for memory in learner.tasks.memories] == [24, 24, 8]


def test_a_reference_is_made_of_as_many_samples_as_asked_for():
    learner = GEM(GEM.Settings(memory_size=100, reference_batch=3, **PLAIN), input_shape=(5,), n_classes=4)
    learner.begin_task(0)
    learner.learn(*batch(8, 0))
    sizes = []
    learner._gradient = lambda x, y: sizes.append(len(x)) or torch.zeros_like(weights_of(learner.network))
    learner.begin_task(1)
    learner.learn(*batch(6, 1))
    assert sizes == [6, 3]


def test_the_first_batch_needs_no_task_to_have_begun():
    learner = GEM(GEM.Settings(**PLAIN), input_shape=(5,), n_classes=4)
    learner.learn(*batch(6, 0))
    assert [len(memory) for memory in learner.tasks.memories] == [6]


def test_a_gradient_that_harms_no_task_is_left_alone():
    gradient, references = torch.tensor([1.0, 1.0]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert torch.equal(project(gradient, references, margin=0.5), gradient)


def test_margin_goes_further_towards_past_tasks():
    gradient, references = torch.tensor([-1.0, 1.0]), torch.tensor([[1.0, 0.0]])
    products = [(references @ project(gradient, references, margin=m)).item() for m in (0.0, 1.5)]
    assert products[0] == pytest.approx(0, abs=1e-5)
    assert products[1] > products[0] + 0.4


def test_task_memories_share_the_capacity_equally():
    memories = TaskMemories(12, torch.Generator().manual_seed(0), device=torch.device("cpu"))
    for task in range(3):
        memories.begin()
        memories.memories[-1].add(x=torch.full((30,), task))
    assert [m.rows["x"].tolist() for m in memories.memories] == [[0] * 4, [1] * 4, [2] * 4]
    assert len(memories.past) == 2


def test_a_task_keeps_at_least_one_sample_however_many_tasks_there_are():
    memories = TaskMemories(2, torch.Generator().manual_seed(0), device=torch.device("cpu"))
    for task in range(3):
        memories.begin()
        memories.memories[-1].add(x=torch.full((5,), task))
    assert [m.rows["x"].tolist() for m in memories.memories] == [[0], [1], [2]]


def test_tasks_with_the_same_gradient_are_one_constraint():
    gradient, reference = torch.tensor([-1.0, 1.0]), torch.tensor([[1.0, 0.0]])
    torch.testing.assert_close(
        project(gradient, reference.expand(3, 2)), project(gradient, reference), atol=1e-4, rtol=1e-4
    )


def past_loss(learner: GEM | FineTune, past: dict[str, Tensor]) -> float:
    return -learner.predict_log_proba(past["x"]).gather(1, past["y"][:, None]).mean().item()


def test_a_contradicting_task_raises_the_past_tasks_loss_far_less_than_plain_steps():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 5, generator=generator)
    labels = (x[:, 0] > 0).long()
    plain = {"hidden": 8, "optimizer": "sgd", "learning_rate": 0.5, "weight_decay": 0.0, "clip_value": None}
    learner = GEM(
        GEM.Settings(memory_size=100, reference_batch=None, margin=0.0, **plain), input_shape=(5,), n_classes=2
    )
    learner.begin_task(0)
    for _ in range(100):
        learner.learn(x, labels)
    learner.end_task()
    learner.begin_task(1)
    unguarded = FineTune(FineTune.Settings(**plain), input_shape=(5,), n_classes=2)
    unguarded.trainer.load_state_dict(learner.trainer.state_dict())
    past = learner.tasks.memories[0].rows
    before = past_loss(learner, past)
    for each in (learner, unguarded):
        each.trainer.set_learning_rate(0.005)
        for _ in range(50):
            each.learn(x, 1 - labels)
    assert past_loss(learner, past) - before < 0.05 * (past_loss(unguarded, past) - before)
