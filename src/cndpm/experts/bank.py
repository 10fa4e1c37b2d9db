"""The contract between the mixture and its experts: a bank evaluates all experts at once and grows by one.

The learner (Algorithm 1) knows experts only through this interface, so a bank of neural experts with lateral
connections and a bank of conjugate Gaussians with one shared covariance are interchangeable.

An expert is founded in steps, so that sleep can show progress, be interrupted and go on:

    bank.start_expert(x, y)                  # from the memory
    while not bank.train_expert(100):        # at most 100 steps; True when it is ready
        ...                                  # report, checkpoint, stop
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import torch
from torch import Tensor

from cndpm.state import State

__all__ = ["Bank", "Provisional"]


class Provisional(Protocol):
    """A cheap model of samples that no expert has learned yet."""

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x), comparable with the experts', (B,)."""

    def predictive(self, x: Tensor) -> Tensor:
        """As one expert's: (B, C) or (B, 2, n_outputs)."""


class Bank(ABC):
    """All experts of a mixture. Shapes: B samples, K experts, C classes."""

    @property
    @abstractmethod
    def n_experts(self) -> int:
        """K: experts that are ready; one in training does not count."""

    @property
    @abstractmethod
    def in_training(self) -> bool:
        """Whether an expert has been started and is not ready yet."""

    @property
    @abstractmethod
    def evidence_device(self) -> torch.device:
        """Where :meth:`log_joint`, :meth:`log_joint_new` and :meth:`log_leave_one_out` arrive, and labels and
        responsibilities are best taken from; the mixture decides there. Answers arrive on the device of x.
        """

    @property
    def is_additive(self) -> bool:
        """Whether an expert is the sum of what it learned, so that one removed into another loses nothing."""
        return False

    @abstractmethod
    def log_joint(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log p(x, y | k) as routing sees it, temperature included, (B, K); log p(x | k) where y is None."""

    @abstractmethod
    def log_joint_new(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log p(x, y) under the hypothesis "new", a draw from or an integral over the prior, (B,)."""

    @abstractmethod
    def log_density(self, x: Tensor) -> Tensor:
        """log p(x | k), (B, K)."""

    @property
    def describes_x(self) -> bool:
        """Whether :meth:`log_density` is a density of x itself, not of some features of it."""
        return True

    @abstractmethod
    def predictive(self, x: Tensor) -> Tensor:
        """p(y | x, k): class log-probabilities (B, K, C), or mean and variance of each target (B, K, 2, n_outputs)."""

    @property
    def answer_size(self) -> int:
        """Samples evaluated at once, which bounds the memory that an answer takes."""
        return 250

    def check(self, x: Tensor) -> None:
        """Raises ValueError, with the remedy, where x is outside the experts' domain."""

    def admit(self, y: Tensor) -> None:
        """Makes room for class indices that were not met before; called with every batch before it is learned."""

    def announce(self, x: Tensor) -> None:
        """What is learned next. Where x is a slice of a larger tensor, as streams cut batches, frozen features of the
        samples behind it may be prepared as well; no result depends on it.
        """

    def select(self, x: Tensor, chosen: Tensor) -> Tensor:
        """x[chosen] for a mask (B,); what was computed of the frozen features of x need not be computed again."""
        return x[chosen]

    def prepare(self, x: Tensor) -> None:
        """What will be asked about again and again, unchanged; what is frozen of it may be computed once and kept."""

    def margin_drift(self) -> Tensor | None:
        """By how much log p(x, y | k) - log p(x, y | new) of expert k's samples has moved, (K,), on the host.

        For banks whose evidence is remade now and then as a whole, beside what batches teach; NaN where it is not
        known, None if nothing was remade since this was last asked.
        """
        return None

    def log_leave_one_out(self, x: Tensor, y: Tensor | None) -> Tensor | None:
        """log p(x_i, y_i) under an expert made of the other samples given, (M,), where that has a closed form."""
        return None

    @abstractmethod
    def provisional(self, x: Tensor, y: Tensor | None) -> Provisional:
        """A model of what waits in the memory, (M, ...), ready at once."""

    @abstractmethod
    def learn(self, x: Tensor, y: Tensor | None, responsibilities: Tensor) -> None:
        """One weighted update; responsibilities (B, K) are non-negative, a row of zeros teaches nobody."""

    @abstractmethod
    def start_expert(self, x: Tensor, y: Tensor | None) -> None:
        """Begins a new expert from the whole memory, (M, ...)."""

    @abstractmethod
    def train_expert(self, max_steps: int) -> bool:
        """Trains the started expert for at most `max_steps`; True once it is ready and counted in `n_experts`."""

    @abstractmethod
    def training_progress(self) -> float:
        """How far the started expert is, 0 to 1, by the steps it may take at most."""

    @abstractmethod
    def remove(self, k: int, into: int) -> None:
        """Removes expert k; sufficient statistics, where that is what an expert is, go to expert `into`."""

    @abstractmethod
    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """n draws of (x, y) from expert k: x ~ p(x | k), y ~ p(y | x, k)."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Trained weights of all ready experts."""

    @property
    @abstractmethod
    def n_numbers_kept(self) -> int:
        """Every number needed to predict: parameters, statistics, frozen feature maps."""

    @property
    def n_samples_kept(self) -> int:
        """Samples of the stream that the bank itself stores."""
        return 0

    @property
    def sample_bytes(self) -> int:
        """Their bytes, labels included."""
        return 0

    def describe(self) -> dict[str, Any]:
        """What a line of progress tells of the experts beside their number: plain values by name."""
        return {}

    @abstractmethod
    def state_dict(self) -> State:
        """Everything, the expert in training and random state included."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Restores the above to the bit."""
