"""The contract between the mixture and its experts: a bank evaluates all experts at once and grows by one.

The learner (Algorithm 1) knows experts only through this interface, so a bank of neural experts with lateral
connections and a bank of conjugate Gaussians with one shared covariance are interchangeable.

An expert is founded in steps, so that sleep can show progress, be interrupted and go on:

    bank.found(samples, y)                   # from the memory
    while bank.train(100) < 1:               # at most 100 steps; the part done
        ...                                  # report, checkpoint, stop

Samples live on the bank's device. Labels, evidence, counts and responsibilities are a handful of numbers on which
decisions are based: they live on the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.learner import Footprint
from cndpm.state import State

DensityOf: TypeAlias = Literal["features", "x by sums", "x by networks"]
"""Densities of features of x, made of sums over samples; or of x itself, made of such sums, or of networks."""


class Evidence(NamedTuple):
    """Log evidence of every expert, and of the hypothesis "new", for a batch of B samples; float64, on the host."""

    log_known: Tensor  # log N_k + log p(x, y | k) as routing sees it, temperature included, (B, K)
    log_new: Tensor  # log p(x, y) under "new", a draw from or an integral over the prior, (B,)


class Provisional(Protocol):
    """A cheap model of samples that no expert has learned yet."""

    def log_density(self, samples: Samples) -> Tensor:
        """Returns log p(x), comparable with the experts', (B,)."""

    def predictive(self, samples: Samples) -> Tensor:
        """Returns p(y | x) as one expert would: (B, C) or (B, 2, n_outputs)."""


class Merging(ABC):
    """Takes in the experts of other banks, tells which are the same, and makes one of them.

    It stands apart from the rest of a bank, as Algorithm 1 needs none of it.
    """

    def extend(self, other: Any) -> None:
        """Appends the experts of a bank with the same representation behind its own; the other need not be kept.

        Call :meth:`Bank.margin_drift` when all are there: what the experts share is renewed then.
        """
        if not isinstance(other, type(self)):
            raise TypeError(f"a {type(self).__name__} takes experts of its own kind; got a {type(other).__name__}")
        self._extend(other)

    @abstractmethod
    def _extend(self, other: Any) -> None:
        """Appends the experts of a bank of the same kind."""

    @abstractmethod
    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        """Returns the share of the samples of expert b that expert a would take for its own, [a, b], (K, K).

        It takes those of a margin above its level (K,). Of the experts of one mixture, told by `sources` (K,), only the
        best takes a sample. Networks do not tell without samples: every expert explains its own alone.
        """

    @abstractmethod
    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        """Makes one expert of every group, ascending within; the groups, together all experts, stay in order."""

    def affinity(self) -> Tensor | None:
        """Returns how alike experts are, by what they have learned, (K, K), the higher the more; None for networks."""
        return None

    @abstractmethod
    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        """Gives class c the index mapping[c], all different, among `n_classes` from now on."""


class Bank(Merging):
    """All experts of a mixture. Shapes: B samples (B, ...), M of a memory, K experts, C classes.

    Targets y are class indices (B,) or values (B, n_outputs), None where there are none. What experts share, such as a
    covariance, is costly to bring up to date: answers that need not be `exact` take it as old as routing's, and
    everything else up to date.

    Example:
        >>> from cndpm.experts.features import IdentityFeatures
        >>> from cndpm.experts.gaussian import GaussianBank
        >>> x, y = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 2
        >>> bank: Bank = GaussianBank(IdentityFeatures(), n_classes=2)
        >>> bank.found(Samples(x), y)
        >>> bank.train(max_steps=1)
        1.0
        >>> for samples in bank.open(x[:10], batch_size=10):
        ...     bank.learn(samples, y[:10], torch.ones(10, 1, dtype=torch.float64))
        >>> bank.counts
        tensor([50.], dtype=torch.float64)
    """

    is_additive: bool
    """Whether an expert is a sum over its samples, so that removing it into another one loses nothing."""

    density_of: DensityOf
    """Tells what :meth:`log_density` is a density of, and what it is made of."""

    @property
    @abstractmethod
    def counts(self) -> Tensor:
        """N_k, the samples that each expert has learned, (K,), float64, on the host; one in training does not count."""

    @abstractmethod
    def open(self, x: Tensor, batch_size: int | None = None, *, start: int = 0) -> Iterator[Samples]:
        """Cuts inputs (n, *input_shape) into batches whose features are computed together; see :func:`.open_block`.

        By default a batch has as many samples as an answer is best computed for at once; `start` is the first that is
        wanted. ValueError: x is outside the experts' domain; the message says what to do.
        """

    @abstractmethod
    def admit(self, n_classes: int) -> None:
        """Makes room for class indices below `n_classes`; answers are as wide from now on."""

    @abstractmethod
    def evidence(self, samples: Samples, y: Tensor | None) -> Evidence:
        """Compares the experts, and "new", on a batch."""

    def log_leave_one_out(self, samples: Samples, y: Tensor | None) -> Tensor | None:
        """Returns log p(x_i, y_i) under an expert made of the other samples given, (M,), where that has a closed form.

        Samples that the experts explain better are tails of known data. None where there is no closed form.
        """
        return None

    @abstractmethod
    def learn(self, samples: Samples, y: Tensor | None, responsibilities: Tensor, *, counted: bool = True) -> None:
        """Updates the experts by one step with responsibilities (B, K), float64; a row of zeros teaches no expert.

        Samples add to the counts unless they were learned before, which sums cannot repeat.
        """

    def adapt(self, rows: Tensor, known: Tensor | None = None) -> bool:
        """Begins units of their own where the latest rows (n, d) have left those known, (m, d); returns whether."""
        return False

    def margin_drift(self) -> Tensor | None:
        """Returns by how much log p(x, y | k) - log p(x, y | new) of expert k's samples has moved, (K,), on the host.

        Concerns banks that renew a covariance shared by all experts. NaN where the drift is not known; None if nothing
        was renewed since the last call. Call it after every batch learned.
        """
        return None

    @abstractmethod
    def found(self, samples: Samples, y: Tensor | None) -> None:
        """Begins a new expert from a whole memory."""

    @abstractmethod
    def train(self, max_steps: int) -> float:
        """Trains the expert that was begun for at most `max_steps`; 0 only reports.

        Returns the part of the largest number of steps that is done; 1 once the expert is ready and counted, and where
        none was begun.
        """

    @abstractmethod
    def remove(self, k: int, into: int | None) -> None:
        """Removes expert k; `into` receives its count, and sums where experts are sums; None drops a network's."""

    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        for k, into in sorted(((k, group[0]) for group in groups for k in group[1:]), reverse=True):
            self.remove(k, into=into)

    @abstractmethod
    def representation(self) -> State:
        """Returns what the first memory fixed for all experts, such as fitted features; other banks can adopt it."""

    def adopt(self, representation: State) -> None:
        """Takes over the representation of another bank, before the first expert is founded."""
        if len(self.counts):
            raise RuntimeError("a bank that has experts keeps its own representation")
        self.load_state_dict({**self.state_dict(), **representation})

    @abstractmethod
    def log_density(self, samples: Samples, *, exact: bool = True) -> Tensor:
        """Returns log p(x | k), (B, K), on the bank's device."""

    @abstractmethod
    def predictive(self, samples: Samples, *, exact: bool = True) -> Tensor:
        """Returns p(y | x, k): class log-probabilities (B, K, C), or mean and variance (B, K, 2, n_outputs)."""

    def mixed(self, samples: Samples, *, exact: bool = True) -> tuple[Tensor, Tensor] | None:
        """Returns log p(x), (B,), and class log-probabilities, (B, C), of all experts together, weighted by counts.

        None where answers expert by expert are as cheap. Where experts are many, those that lie far from x may be left
        out.
        """
        return None

    @abstractmethod
    def provisional(self, samples: Samples, y: Tensor | None, *, exact: bool = True) -> Provisional:
        """Makes a model of the samples in the memory, without training."""

    @abstractmethod
    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """Draws n pairs from expert k: x ~ p(x | k), (n, *input_shape), y ~ p(y | x, k), or None without targets."""

    @abstractmethod
    def footprint(self) -> Footprint:
        """Counts the numbers and samples that the bank keeps."""

    def describe(self) -> dict[str, Any]:
        """Returns plain values by name that a line of progress tells of the experts."""
        return {}

    @abstractmethod
    def state_dict(self) -> State:
        """Returns everything, the expert in training and random state included."""

    @abstractmethod
    def load_state_dict(self, state: State) -> object:
        """Restores the state to the bit."""
