"""A learner to check, the small stream to check it on, and how states are compared."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cndpm.learner import Inputs, Learner
from cndpm.state import State, load_state, save_state

__all__ = ["ContractError", "LearnerCase"]

Batch = tuple[Tensor, Tensor | None]
"""Inputs (B, *input_shape) and labels (B,), which may be missing."""


class ContractError(AssertionError):
    """A learner breaks the contract; the message says which promise and how."""


@dataclass(frozen=True)
class LearnerCase:
    """A learner to check and the small stream to check it on.

    Attributes:
        learner_class: The class.
        settings: Its settings; small ones make the checks fast.
        input_shape: Shape of one sample.
        n_classes: Classes of the stream, an even number; None for a stream without labels.
        memory_bound: The most samples it may store; None where nothing is promised.
        batch_size: Samples per batch.
        n_batches: Batches in each of the two tasks.
    """

    learner_class: type[Learner]
    settings: Any
    input_shape: tuple[int, ...] = (1, 8, 8)
    n_classes: int | None = 4
    memory_bound: int | None = None
    batch_size: int = 5
    n_batches: int = 6

    def make(self, seed: int = 0) -> Learner:
        """Makes a fresh learner."""
        return self.learner_class(self.settings, input_shape=self.input_shape, n_classes=self.n_classes, seed=seed)

    def tasks(self) -> list[list[Batch]]:
        """Makes two tasks of batches, each with its half of the classes: noisy copies of one pattern per class."""
        generator = torch.Generator().manual_seed(1234)
        n_classes = self.n_classes or 4
        patterns = torch.randn(n_classes, *self.input_shape, generator=generator)
        return [[self._batch(patterns, task, generator) for _ in range(self.n_batches)] for task in range(2)]

    def _batch(self, patterns: Tensor, task: int, generator: torch.Generator) -> Batch:
        half = len(patterns) // 2
        y = torch.randint(task * half, (task + 1) * half, (self.batch_size,), generator=generator)
        noise = torch.randn(self.batch_size, *self.input_shape, generator=generator)
        x = torch.sigmoid(2 * patterns[y] + 0.5 * noise)
        return x, y if self.n_classes is not None else None

    def test_inputs(self) -> Tensor:
        """Returns inputs of both tasks, (2 batch_size, *input_shape), in [0, 1]."""
        return torch.cat([batches[0][0] for batches in self.tasks()])

    def steps(self, learner: Learner) -> list[Callable[[], None]]:
        """Lists what a run does with the learner, in order: batches, and tasks' ends only where it asks for them."""
        steps: list[Callable[[], None]] = []
        listener = learner.task_listener
        for task, batches in enumerate(self.tasks()):
            steps += [partial(listener.begin_task, task)] if listener else []
            steps += [partial(learner.learn, x, y) for x, y in batches]
            steps += [listener.end_task] if listener else []
        return [*steps, learner.finish]

    def blocks(self) -> list[Batch]:
        """Returns all samples of each task as one block: x (n, *input_shape) and y (n,) or None."""
        joined = []
        for batches in self.tasks():
            labels = [y for _, y in batches if y is not None]
            joined.append((torch.cat([x for x, _ in batches]), torch.cat(labels) if labels else None))
        return joined

    def trained(self, seed: int = 0) -> Learner:
        """Makes a learner and has it learn the whole stream."""
        learner = self.make(seed)
        for step in self.steps(learner):
            step()
        return learner

    def answer(self, learner: Learner, x: Inputs) -> Tensor:
        """Returns class log-probabilities, or log densities where the stream has no labels.

        Args:
            learner: Is asked.
            x: Inputs, (batch, *input_shape), or prepared ones.
        """
        return learner.log_prob(x) if self.n_classes is None else learner.predict_log_proba(x)


def begin_task(learner: Learner, task: int) -> None:
    """Tells a learner that asks for it that a task begins."""
    if learner.task_listener is not None:
        learner.task_listener.begin_task(task)


def end_task(learner: Learner) -> None:
    """Tells a learner that asks for it that a task has ended."""
    if learner.task_listener is not None:
        learner.task_listener.end_task()


def require(kept: bool, case: LearnerCase, broken: str) -> None:
    """Raises :class:`ContractError` unless a promise is kept."""
    if not kept:
        raise ContractError(f"{case.learner_class.__name__}: {broken}")


def through_file(state: State) -> State:
    """Returns a state after it was saved to a file and loaded from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner"
        save_state(path, state, kind="learner")
        return load_state(path, kind="learner")


def same(first: Any, second: Any) -> bool:
    """Tells whether two states are equal to the bit, whatever lists and tuples a file has made of each other."""
    if isinstance(first, Tensor):
        alike = isinstance(second, Tensor) and first.dtype == second.dtype and first.shape == second.shape
        return alike and torch.equal(_bytes(first), _bytes(second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    return bool(first == second) or bool(first != first and second != second)  # NaN is a value like any other here


def _bytes(x: Tensor) -> Tensor:
    """Returns the bytes of a tensor, which compare NaN as any other value, (n,)."""
    copy = torch.empty(x.numel(), dtype=x.dtype)  # with strides of its own, also for a tensor of one element
    return copy.copy_(x.detach().reshape(-1)).view(torch.uint8)
