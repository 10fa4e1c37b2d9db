"""The contract between a stream and whatever learns from it.

A learner receives batches of ``x`` and ``y``, never a task, and answers at any time:

    for x, y in stream:
        learner.learn(x, y)
    learner.predict_log_proba(x_test)

Nothing outside asks which learner it holds. Learners that need more than the stream say so in their type:
:class:`TaskBasedLearner` is told where tasks begin and end, and only a task-based run does so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from cndpm.state import State

__all__ = ["Footprint", "Learner", "LearnerSettings", "MixtureLearner", "TaskBasedLearner"]


class LearnerSettings(BaseModel):
    """The settings of one kind of learner: typed, ranges checked, unknown names refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


@dataclass(frozen=True)
class Footprint:
    """What a learner keeps.

    Attributes:
        n_parameters: Trained weights, as the paper counts them.
        n_numbers_kept: Every number it must keep to predict: parameters, statistics, frozen features.
        memory_samples: Samples stored for replay or until they are learned.
        memory_bytes: The bytes of these samples, labels included.
        n_experts: Components of a mixture; 1 for a single network.
    """

    n_parameters: int
    n_numbers_kept: int
    memory_samples: int = 0
    memory_bytes: int = 0
    n_experts: int = 1


class Learner(ABC):
    """Consumes a stream, batch by batch.

    Args:
        settings: An instance of the class's own `Settings`.
        input_shape: Shape of one sample, e.g. ``(1, 28, 28)`` or ``(4,)``.
        n_classes: Number of classes, ``None`` for unlabelled streams (and for learners that discover them).
        seed: Determines every random choice.
        device: Where parameters and computation live.
    """

    Settings: ClassVar[type[LearnerSettings]]

    def __init__(
        self,
        settings: Any,
        *,
        input_shape: tuple[int, ...],
        n_classes: int | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        if not isinstance(settings, self.Settings):
            raise TypeError(
                f"{type(self).__name__} takes {self.Settings.__qualname__}; got {type(settings).__qualname__}"
            )
        self.on_progress: Callable[[str, float], None] | None = None
        """Told the phase and the fraction done while one `learn` takes long. What it raises stops the work there."""
        self.settings = settings
        self.input_shape = tuple(input_shape)
        self.n_classes = n_classes
        self.seed = seed
        self.device = torch.device(device)

    @abstractmethod
    def learn(self, x: Tensor, y: Tensor | None) -> None:
        """Learns one batch; changes this learner and nothing else.

        Args:
            x: Inputs, (batch, *input_shape), float32, on any device; left unchanged.
            y: Class indices (batch,), int64; targets (batch, n_outputs), float32; or None for an unlabelled stream.
        """

    def finish(self) -> None:
        """Called once when a finite stream has ended; learners that work then (e.g. offline ones) do it here."""

    def prepare(self, x: Tensor) -> None:
        """Announces inputs, such as a test set, that answers will be asked for again and again, whole or in slices.

        A learner may keep what it computes of them and never learns, for as long as it lives; no answer depends on it.
        """

    @abstractmethod
    def predict_log_proba(self, x: Tensor) -> Tensor:
        """Log-probabilities of the classes, (batch, n_classes). Has no effect on the learner."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density of x, (batch,), for learners that model it. Has no effect on the learner."""
        raise NotImplementedError(f"{type(self).__name__} models no density of x")

    @property
    def describes_x(self) -> bool:
        """Whether :meth:`log_prob` is a density of x itself, so that bits per dimension mean something."""
        return True

    @abstractmethod
    def footprint(self) -> Footprint:
        """What this learner keeps at this moment."""

    @abstractmethod
    def state_dict(self) -> State:
        """Everything that future behaviour depends on, random state included, as tensors and plain values.

        The tensors are copies: what the learner does next does not change them.
        """

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Restores what :meth:`state_dict` of a learner with the same settings returned, to the bit."""


class TaskBasedLearner(Learner):
    """A learner that must be told where tasks begin and end while it learns; never at test time."""

    @abstractmethod
    def begin_task(self, task: int) -> None:
        """What follows belongs to task number `task` (0, 1, ...)."""

    @abstractmethod
    def end_task(self) -> None:
        """The task that began last is over."""


class MixtureLearner(Learner):
    """A learner that answers by several experts and can say which."""

    @abstractmethod
    def expert_log_proba(self, x: Tensor) -> Tensor:
        """Log-probability that each expert is responsible for x alone, (batch, n_experts)."""

    @abstractmethod
    def expert_predict_log_proba(self, x: Tensor) -> Tensor:
        """Log-probabilities of the classes by each expert, (batch, n_experts, n_classes)."""
