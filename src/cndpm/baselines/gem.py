"""A step must not raise the loss on any past task's memory (GEM), or on a sample of all of it (A-GEM)."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.components import LearnerPart, NetworkSettings, total_footprint
from cndpm.baselines.shared.composed import ClassifierLearner
from cndpm.baselines.shared.replay import ReplayLearner, ReplayMemory, ReplaySettings
from cndpm.learner import Footprint, TaskBasedLearner
from cndpm.state import State


def project(gradient: Tensor, references: Tensor, *, margin: float = 0.0) -> Tensor:
    r"""Returns the direction nearest to g that lowers (or keeps) the loss of every past task, (n_parameters,).

    .. math:: \min_z \tfrac12 \lVert z - g \rVert^2 \quad \text{so that} \quad \langle z, g_k \rangle \ge 0 \ \forall k

    `references` are the rows of G, (n_tasks, n_parameters). The dual has one variable per task, :math:`z = g + G^\top
    v` with :math:`\min_{v \ge \gamma} \tfrac12 v^\top G G^\top v + g^\top G^\top v`, a non-negative least-squares
    problem in :math:`v - \gamma`; the margin gamma favours past tasks. A gradient that violates no constraint is
    returned as it is.
    """
    from scipy.optimize import nnls  # here: it costs a third of a second that other learners need not pay

    products = (references @ gradient).double().cpu().numpy()
    if (products >= 0).all():
        return gradient
    gram = (references @ references.T).double().cpu().numpy()
    # A touch on the diagonal: references of like tasks are nearly parallel.
    root = np.linalg.cholesky(gram + 1e-6 * np.trace(gram) / len(gram) * np.eye(len(gram)))
    target = -np.linalg.solve(root, products) - root.T @ np.full(len(gram), margin)
    solution = nnls(root.T, target)[0] + margin
    return gradient + torch.as_tensor(solution, dtype=gradient.dtype, device=gradient.device) @ references


class TaskMemories(LearnerPart):
    """One reservoir per task; all together hold at most `capacity` samples, shared equally by the tasks so far."""

    def __init__(self, capacity: int, generator: torch.Generator, *, device: torch.device) -> None:
        self.capacity = capacity
        self.generator = generator
        self.device = device
        self.memories: list[ReplayMemory] = []

    @property
    def past(self) -> list[ReplayMemory]:
        """The memories of all tasks but the present one."""
        return [memory for memory in self.memories[:-1] if len(memory)]

    def begin(self) -> None:
        """Makes room for one more task."""
        share = max(1, self.capacity // (len(self.memories) + 1))
        for memory in self.memories:
            memory.shrink(share)
        self.memories.append(ReplayMemory(share, self.generator, device=self.device))

    def footprint(self) -> Footprint:
        """Counts the samples of all tasks."""
        return total_footprint(self.memories)

    def state_dict(self) -> State:
        return {"memories": [memory.state_dict() for memory in self.memories]}

    def load_state_dict(self, state: State) -> None:
        self.memories = [ReplayMemory(1, self.generator, device=self.device) for _ in state["memories"]]
        for memory, saved in zip(self.memories, state["memories"], strict=True):
            memory.load_state_dict(saved)


class GEM(ClassifierLearner, TaskBasedLearner):
    """Gradient episodic memory (Lopez-Paz and Ranzato 2017); the equation is at :func:`project`.

    Departures: a past task's reference gradient comes from `reference_batch` samples drawn from its memory at every
    step (null: all of them, as the authors do), and each task's memory is a uniform sample of it, not its last samples.
    The memory's default size is that of the comparison by Hsu et al. (2018), as many numbers as online EWC keeps.
    """

    class Settings(NetworkSettings):
        """The memory and the margin."""

        memory_size: int = Field(4400, ge=1, description="samples kept of all tasks together")
        reference_batch: int | None = Field(128, ge=1, description="samples per past task and step; null: all")
        margin: float = Field(0.5, ge=0, description="gamma, how far past tasks are favoured")
        learning_rate: float = Field(1e-3, gt=0, le=10, description="step size")

    settings: Settings

    def _make(self) -> None:
        super()._make()
        self.tasks = TaskMemories(self.settings.memory_size, self.random.generator, device=self.device)
        self.parts["tasks"] = self.tasks

    def begin_task(self, task: int) -> None:
        self.tasks.begin()

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        gradient = self._gradient(x, y)
        if self.tasks.past:
            references = torch.stack([self._reference(memory) for memory in self.tasks.past])
            gradient = project(gradient, references, margin=self.settings.margin)
        self.trainer.step_along(gradient)
        if not self.tasks.memories:
            self.tasks.begin()
        self.tasks.memories[-1].add(x=x, y=y)

    def end_task(self) -> None:
        """Does nothing: the memory is filled as the task goes."""

    def _reference(self, memory: ReplayMemory) -> Tensor:
        limit = self.settings.reference_batch
        return self._gradient(**memory.sample(len(memory) if limit is None else limit))

    def _gradient(self, x: Tensor, y: Tensor) -> Tensor:
        return self.trainer.gradient(F.cross_entropy(self.network.train()(x), y))


def project_to_reference(gradient: Tensor, reference: Tensor) -> Tensor:
    r"""Returns the nearest direction to g that does not raise the loss whose gradient is `reference`, (n_parameters,).

    .. math:: \tilde g = g - \frac{\min(0, g^\top g_{ref})}{g_{ref}^\top g_{ref}}\, g_{ref}
    """
    violation = torch.clamp_max(gradient @ reference, 0)
    return gradient - violation / (reference @ reference).clamp_min(1e-30) * reference


class AGEM(ReplayLearner):
    """Averaged gradient episodic memory (Chaudhry et al. 2019); the equation is at :func:`project_to_reference`.

    Departures: task-free. The authors' memory holds equal parts of the tasks before the present one; here it is a
    reservoir of the stream, the reference may therefore include the present distribution.
    """

    class Settings(ReplaySettings):
        """The memory and the reference batch."""

        replay_batch: int | None = Field(64, ge=1, description="samples of the reference; null: as many as the batch")

    settings: Settings

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        gradient = self._gradient(x, y)
        if len(self.memory):
            reference = self._gradient(**self.replayed(len(x)))
            gradient = project_to_reference(gradient, reference)
        self.trainer.step_along(gradient)
        self.memory.add(x=x, y=y)

    def _gradient(self, x: Tensor, y: Tensor) -> Tensor:
        return self.trainer.gradient(F.cross_entropy(self.network.train()(self.augmentation(x)), y))
