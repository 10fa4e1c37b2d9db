"""The contract between the mixture and its experts: a bank evaluates all experts at once and grows by one.

The learner (Algorithm 1) knows experts only through this interface, so a bank of neural experts with lateral
connections and a bank of conjugate Gaussians with one shared covariance are interchangeable.

An expert is founded in steps, so that sleep can show progress, be interrupted and go on:

    bank.found(samples, y)                   # from the memory
    while bank.train(100) < 1:               # at most 100 steps; the part done
        ...                                  # report, checkpoint, stop

Samples live on the bank's device. Labels, evidence, counts and responsibilities are a handful of numbers that decisions
are made of: they live on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from cndpm.experts.samples import Samples
from cndpm.learner import Footprint
from cndpm.state import State

__all__ = ["Bank", "Evidence", "Provisional"]


class Evidence(NamedTuple):
    """How well the experts explain a batch of B samples, on the host.

    Attributes:
        log_known: log N_k + log p(x, y | k) as routing sees it, temperature included, (B, K), float64; log p(x | k)
            where there is no y.
        log_new: log p(x, y) under the hypothesis "new", a draw from or an integral over the prior, (B,), float64.
    """

    log_known: Tensor
    log_new: Tensor


class Provisional(Protocol):
    """A cheap model of samples that no expert has learned yet."""

    def log_density(self, samples: Samples) -> Tensor:
        """Returns log p(x), comparable with the experts', (B,)."""

    def predictive(self, samples: Samples) -> Tensor:
        """Returns p(y | x) as one expert would: (B, C) or (B, 2, n_outputs)."""


class Bank(ABC):
    """All experts of a mixture. Shapes: B samples, K experts, C classes."""

    @property
    @abstractmethod
    def counts(self) -> Tensor:
        """N_k, the samples that each expert has learned, (K,), float64, on the host; one in training does not count."""

    @property
    @abstractmethod
    def is_additive(self) -> bool:
        """Whether an expert is the sum of what it learned, so that one removed into another loses nothing."""

    @property
    @abstractmethod
    def describes_x(self) -> bool:
        """Whether :meth:`log_density` is a density of x itself, not of some features of it."""

    @abstractmethod
    def open(self, x: Tensor, batch_size: int | None = None, *, start: int = 0) -> Iterator[Samples]:
        """Cuts inputs into batches whose features are computed together; see :func:`cndpm.experts.samples.open_block`.

        Args:
            x: Inputs, (n, *input_shape), on any device.
            batch_size: Samples of a batch; by default as many as an answer is best computed for at once.
            start: The first sample that is wanted.

        Raises:
            ValueError: x is outside the experts' domain; the message says what to do.
        """

    @abstractmethod
    def admit(self, n_classes: int) -> None:
        """Makes room for class indices below `n_classes`; answers are as wide from now on."""

    @abstractmethod
    def evidence(self, samples: Samples, y: Tensor | None) -> Evidence:
        """Compares the experts, and "new", on samples (B, ...) with targets (B, ...)."""

    @abstractmethod
    def log_leave_one_out(self, samples: Samples, y: Tensor | None) -> Tensor | None:
        """Returns log p(x_i, y_i) under an expert made of the other samples given, (M,), where that has a closed form.

        Samples that the experts explain better are tails of what is known. None where there is no closed form.
        """

    @abstractmethod
    def learn(self, samples: Samples, y: Tensor | None, responsibilities: Tensor, *, counted: bool = True) -> None:
        """Updates the experts by one step.

        Args:
            samples: (B, ...).
            y: Their targets.
            responsibilities: (B, K), float64, non-negative; a row of zeros teaches nobody.
            counted: Whether they add to the counts; otherwise they were learned before, which sums cannot repeat.
        """

    @abstractmethod
    def margin_drift(self) -> Tensor | None:
        """Returns by how much log p(x, y | k) - log p(x, y | new) of expert k's samples has moved, (K,), on the host.

        For banks that renew as a whole what experts share, beside what batches teach; NaN where it is not known, None
        if nothing was renewed since this was last asked. To be asked after whatever is learned.
        """

    @abstractmethod
    def found(self, samples: Samples, y: Tensor | None) -> None:
        """Begins a new expert from a whole memory, (M, ...)."""

    @abstractmethod
    def train(self, max_steps: int) -> float:
        """Trains the expert that was begun for at most `max_steps`; 0 only asks.

        Returns:
            The part done, by the steps it may take at most; 1 once the expert is ready and counted, and where none was
            begun.
        """

    @abstractmethod
    def remove(self, k: int, into: int | None) -> None:
        """Removes expert k.

        Args:
            k: The one that goes.
            into: The one that its count goes to, and its sums where experts are sums; None drops a network's count.
        """

    @abstractmethod
    def log_density(self, samples: Samples, *, exact: bool = True) -> Tensor:
        """Returns log p(x | k), (B, K), on the bank's device; see :meth:`predictive` for `exact`."""

    @abstractmethod
    def predictive(self, samples: Samples, *, exact: bool = True) -> Tensor:
        """Returns p(y | x, k): class log-probabilities (B, K, C), or mean and variance (B, K, 2, n_outputs).

        Args:
            samples: (B, ...).
            exact: Whether what the experts share is brought up to date first, where that is costly; otherwise it is as
                old as routing's, while all that is an expert's own is up to date.
        """

    @abstractmethod
    def provisional(self, samples: Samples, y: Tensor | None, *, exact: bool = True) -> Provisional:
        """Models what waits in the memory, (M, ...), at once."""

    @abstractmethod
    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """Draws n pairs (x, y) from expert k: x ~ p(x | k), y ~ p(y | x, k)."""

    @abstractmethod
    def footprint(self) -> Footprint:
        """Counts what the bank keeps."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Returns plain values by name that a line of progress tells of the experts."""

    @abstractmethod
    def state_dict(self) -> State:
        """Everything, the expert in training and random state included."""

    @abstractmethod
    def load_state_dict(self, state: State) -> None:
        """Restores the above to the bit."""
