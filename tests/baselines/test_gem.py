"""Gradient projections against a general-purpose quadratic-programming solver."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from torch import Tensor

from cndpm.baselines.a_gem import project_to_reference
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


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**31), n_tasks=st.integers(1, 4))
def test_projection_agrees_with_a_quadratic_programming_solver(seed: int, n_tasks: int):
    random = np.random.default_rng(seed)
    gradient, references = random.normal(size=8), random.normal(size=(n_tasks, 8))
    projected = project(torch.from_numpy(gradient), torch.from_numpy(references)).numpy()
    np.testing.assert_allclose(projected, solve_primal(gradient, references), atol=1e-4)


def test_a_gradient_that_harms_no_task_is_left_alone():
    gradient, references = torch.tensor([1.0, 1.0]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert torch.equal(project(gradient, references, margin=0.5), gradient)


def test_margin_goes_further_towards_past_tasks():
    gradient, references = torch.tensor([-1.0, 1.0]), torch.tensor([[1.0, 0.0]])
    products = [(references @ project(gradient, references, margin=m)).item() for m in (0.0, 1.5)]
    assert products[0] == pytest.approx(0, abs=1e-5)
    assert products[1] > products[0] + 0.4


@settings(deadline=None)
@given(seed=st.integers(0, 2**31))
def test_averaged_projection_is_the_one_constraint_case(seed: int):
    generator = torch.Generator().manual_seed(seed)
    gradient, reference = torch.randn(2, 6, generator=generator, dtype=torch.float64)
    expected = project(gradient, reference[None])
    torch.testing.assert_close(project_to_reference(gradient, reference), expected, atol=1e-5, rtol=1e-5)


def test_task_memories_share_the_capacity_equally():
    memories = TaskMemories(12, torch.Generator().manual_seed(0), device=torch.device("cpu"))
    for task in range(3):
        memories.begin()
        memories.memories[-1].add(x=torch.full((30,), task))
    assert [m.rows["x"].tolist() for m in memories.memories] == [[0] * 4, [1] * 4, [2] * 4]
    assert len(memories.past) == 2


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
