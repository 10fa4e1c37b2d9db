"""The contract between a stream and whatever learns from it.

A learner receives batches of ``x`` and ``y``, never a task, and answers at any time:

    for x, y in stream:
        learner.learn(x, y)
    learner.predict_log_proba(x_test)

Whoever holds many batches at once says so, which a learner may use to compute ahead:

    learner.learn_block(x, y, batch_size=10)

Nothing outside asks for a learner's type. What only some learners can do is a capability, None where it is missing:
`Learner.experts` answers expert by expert, `Learner.task_listener` must be told where tasks begin and end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from cndpm.state import State

__all__ = ["Footprint", "Inputs", "Learner", "LearnerSettings", "Prepared", "TaskBasedLearner"]

Inputs: TypeAlias = Any
"""A tensor (batch, *input_shape), or what :meth:`Learner.prepare` of the same learner made of one."""


class LearnerSettings(BaseModel):
    """Holds the settings of one kind of learner: typed, ranges checked, unknown names refused.

    Example:
        >>> class Settings(LearnerSettings):
        ...     learning_rate: float = 0.01
        >>> Settings(learning_rate=0.1).learning_rate
        0.1
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    @classmethod
    def merge(cls, base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        """Applies changes to settings that need not be complete; nested dictionaries are merged, not replaced.

        Args:
            base: Settings by name.
            changes: They win.

        Example:
            >>> LearnerSettings.merge({"a": 1, "part": {"b": 2}}, {"part": {"c": 3}})
            {'a': 1, 'part': {'b': 2, 'c': 3}}
        """
        return _merged(base, changes)


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        nested = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if nested else value
    return merged


@dataclass(frozen=True)
class Footprint:
    """Counts what a learner keeps.

    Attributes:
        n_parameters: Trained weights, as the paper counts them.
        n_numbers_kept: Every number that answers and further learning need: parameters, statistics, frozen features.
            Numbers of the state that only make a resumed stream give the same bits are left out: moments of optimisers,
            routing's factor of the covariance, the rows that wait to enter it, the record of novelty. So are samples.
        memory_samples: Samples stored for replay or until they are learned.
        memory_bytes: The bytes of these samples, labels included.
        n_experts: Components of a mixture; 1 for a single network.
    """

    n_parameters: int
    n_numbers_kept: int
    memory_samples: int = 0
    memory_bytes: int = 0
    n_experts: int = 1


@dataclass(frozen=True)
class Portrait:
    """Shows a mixture of K experts: samples drawn from it, and how alike its experts are."""

    x: NDArray[np.float32]  # drawn inputs (n, *input_shape); none (0, ...) where the experts cannot be drawn from
    y: NDArray[np.int64]  # their classes, (n,); -1 where there are none
    expert: NDArray[np.int64]  # the expert of each, (n,)
    from_mixture: NDArray[np.bool_]  # drawn from the mixture, experts chosen by their counts, (n,); else one by one
    similarity: NDArray[np.float64]  # cosine similarity of the experts' log-likelihoods of given samples, (K, K)
    counts: NDArray[np.float64]  # samples that each expert has learned, (K,)


@dataclass(frozen=True)
class Prepared:
    """Inputs that will be asked about again, with what the learner that prepared them keeps of them.

    Attributes:
        x: The inputs, (batch, *input_shape).
        kept: Belongs to that learner; no answer depends on it.
    """

    x: Tensor
    kept: Any


class ExpertAnswers(Protocol):
    """Answers for a mixture, expert by expert, without any effect on the learner."""

    def expert_log_proba(self, x: Inputs) -> Tensor:
        """Returns the log-probability that each expert is responsible for x alone, (batch, n_experts)."""

    def expert_predict_log_proba(self, x: Inputs) -> Tensor:
        """Returns log-probabilities of the classes by each expert, (batch, n_experts, n_classes)."""


class TaskListener(Protocol):
    """Must be told where tasks begin and end while learning; never at test time."""

    def begin_task(self, task: int) -> None:
        """Tells that what follows belongs to task number `task` (0, 1, ...)."""

    def end_task(self) -> None:
        """Tells that the task that began last is over."""


class Learner(ABC):
    """Consumes a stream, batch by batch.

    Args:
        settings: An instance of the class's own `Settings`.
        input_shape: Shape of one sample, e.g. ``(1, 28, 28)`` or ``(4,)``.
        n_classes: Number of classes, ``None`` for unlabelled streams (and for learners that discover them).
        seed: Determines every random choice.
        device: Where parameters and computation live.

    Attributes:
        on_progress: Told the phase and the fraction done while one `learn` takes long. What it raises stops the work
            there; the learner goes on from that point when it is called again.
        experts: Answers expert by expert; None for learners that are no mixture.
        task_listener: Must be told where tasks begin and end; None for task-free learners.

    Example:
        >>> class Majority(Learner):
        ...     class Settings(LearnerSettings):
        ...         prior: float = 1.0
        ...     def __init__(self, settings, **facts):
        ...         super().__init__(settings, **facts)
        ...         self.counts = torch.full((self.n_classes,), settings.prior)
        ...     def learn(self, x, y):
        ...         self.counts += torch.bincount(y, minlength=self.n_classes)
        ...     def predict_log_proba(self, x):
        ...         return (self.counts / self.counts.sum()).log().expand(len(x), -1)
        ...     def footprint(self):
        ...         return Footprint(n_parameters=0, n_numbers_kept=self.n_classes)
        ...     def state_dict(self):
        ...         return {"counts": self.counts.clone()}
        ...     def load_state_dict(self, state):
        ...         self.counts = state["counts"].clone()
        >>> learner = Majority(Majority.Settings(), input_shape=(4,), n_classes=2)
        >>> learner.learn_block(torch.rand(6, 4), torch.tensor([0, 1, 1, 1, 1, 0]), batch_size=2)
        >>> learner.predict_log_proba(torch.rand(1, 4)).exp()
        tensor([[0.3750, 0.6250]])
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
        self.experts: ExpertAnswers | None = None
        self.task_listener: TaskListener | None = None
        self.settings = settings
        self.input_shape = tuple(input_shape)
        self.n_classes = n_classes
        self.seed = seed
        self.device = torch.device(device)

    @abstractmethod
    def learn(self, x: Inputs, y: Tensor | None) -> None:
        """Learns one batch; changes this learner and nothing else.

        Args:
            x: Inputs, (batch, *input_shape), float32, on any device; left unchanged. Or prepared ones.
            y: Class indices (batch,), int64; targets (batch, n_outputs), float32; or None for an unlabelled stream.
        """

    def learn_block(
        self,
        x: Inputs,
        y: Tensor | None,
        batch_size: int,
        *,
        start: int = 0,
        after_batch: Callable[[int], None] | None = None,
    ) -> None:
        """Learns a block of samples as consecutive batches, with the same result as one `learn` for each.

        A learner that computes something of many samples at once (frozen features, say) does better than this loop; its
        results then agree with the loop's to rounding. A block that was interrupted between two batches goes on to the
        same bits when the whole block is given again with `start`.

        Args:
            x: Inputs, (n, *input_shape).
            y: Labels or targets of these, (n, ...), or None.
            batch_size: Samples of one batch; the last one may be shorter.
            start: Samples at the beginning of the block that have been learned already, whole batches.
            after_batch: Called after each batch with the number of samples of the block learned so far. What it raises
                ends the block there, between two batches.
        """
        for first in range(start, len(x), batch_size):
            stop = min(first + batch_size, len(x))
            self.learn(x[first:stop], None if y is None else y[first:stop])
            if after_batch is not None:
                after_batch(stop)

    def finish(self) -> None:
        """Called once when a finite stream has ended; learners that work then (e.g. offline ones) do it here."""

    def prepare(self, x: Tensor) -> Inputs:
        """Returns inputs, such as a test set's, to be asked about again and again.

        Every method that answers takes the result in place of x, and so does `learn`: a batch of a live stream that is
        predicted and then learned need be prepared only once. A learner may keep beside it what it computes of x and
        never learns; no answer depends on that.
        """
        return x

    @abstractmethod
    def predict_log_proba(self, x: Inputs) -> Tensor:
        """Returns log-probabilities of the classes, (batch, n_classes). Has no effect on the learner."""

    def predict_moments(self, x: Inputs) -> Tensor:
        """Returns mean and variance of every target, (batch, 2, n_outputs), for learners of real values. No effect."""
        raise NotImplementedError(f"{type(self).__name__} predicts classes, not values")

    def predict_for(self, x: Inputs, when: Literal["next", "any"], *, values: bool = False) -> Tensor:
        """Returns what :meth:`predict_log_proba` or :meth:`predict_moments` does, for another time than now.

        The same as those for learners that do not tell times apart.

        Args:
            x: Inputs, (batch, *input_shape), or prepared ones.
            when: "next" for samples that come next, which are learned right after; "any" as if any time of the stream
                were equally likely, as a test over all classes ever seen asks.
            values: Whether moments of values are asked for.
        """
        return self.predict_moments(x) if values else self.predict_log_proba(x)

    def log_prob(self, x: Inputs) -> Tensor:
        """Returns the log density of x, (batch,), for learners that model it. Has no effect on the learner."""
        raise NotImplementedError(f"{type(self).__name__} models no density of x")

    @property
    def describes_x(self) -> bool:
        """Whether :meth:`log_prob` is a density of x itself, so that bits per dimension mean something."""
        return True

    @abstractmethod
    def footprint(self) -> Footprint:
        """Counts what this learner keeps at this moment."""

    def describe(self) -> dict[str, Any]:
        """Returns plain values by name that a line of progress tells beside the footprint."""
        return {}

    def portray(self, x: Tensor, y: Tensor | None, *, seed: int) -> Portrait | None:
        """Draws a portrait of a mixture; None for learners without one.

        Args:
            x: Samples on which the experts are compared, (n, *input_shape).
            y: Their labels, (n,), or None.
            seed: Determines what is drawn; the learner itself is not changed.
        """
        return None

    @abstractmethod
    def state_dict(self) -> State:
        """Returns everything that future behaviour depends on, random state included, as tensors and plain values.

        The tensors are copies: what the learner does next does not change them.
        """

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Restores what :meth:`state_dict` of a learner with the same settings returned, to the bit."""


class TaskBasedLearner(Learner):
    """Learns while it is told where tasks begin and end; at test time it is not told.

    Args:
        settings: An instance of the class's own `Settings`.
        **facts: As for :class:`Learner`.

    Example:
        >>> from cndpm.baselines.ewc import EWC
        >>> learner = EWC(EWC.Settings(hidden=8), input_shape=(4,), n_classes=2)
        >>> isinstance(learner, TaskBasedLearner), learner.task_listener is learner
        (True, True)
    """

    def __init__(self, settings: Any, **facts: Any) -> None:
        super().__init__(settings, **facts)
        self.task_listener = self

    @abstractmethod
    def begin_task(self, task: int) -> None:
        """Tells that what follows belongs to task number `task` (0, 1, ...)."""

    @abstractmethod
    def end_task(self) -> None:
        """Tells that the task that began last is over."""
