"""Watches the rows that a mixture learns, to say of any row how new it is.

Rows are kept as examples of what is known (:mod:`.exemplars`). How familiar a row looks is its log density: that of
kernels around the kept rows (:mod:`.row_kernels`) or, where they have one of x itself, that of the experts. Of the two
the one is taken under which known rows, each predicted from the others, are likelier. For this comparison values are
spread over the interval that they may have been rounded from: the density of a column which takes few values could
be made as large as one likes.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.model.watch.exemplars import Exemplars
from cndpm.model.watch.familiarity import Familiarity
from cndpm.model.watch.row_kernels import RowKernels, resolution
from cndpm.state import State, expect, part, tensor
from cndpm.threads import one_thread

Floats = NDArray[np.float64]

_FEWEST = 5
"""Known rows from which on a row can be called new."""


class _OfExperts(NamedTuple):
    """Log densities by the experts of the known rows, (E,), and the mean of those of the spread rows, (1,)."""

    known: Floats
    spread: Floats


class _Fitted(NamedTuple):
    kernels: RowKernels | None
    familiarity: Familiarity


class Watch:
    """Keeps `capacity` known rows, by random choices of `seed`, and measures others by them.

    Experts are asked for a density where they have one of x itself. With targets kernels answer alone: experts are made
    to tell targets apart.
    """

    def __init__(
        self,
        bank: Bank,
        input_shape: tuple[int, ...],
        target: Literal["classes", "values", "none"],
        *,
        capacity: int,
        seed: int,
    ) -> None:
        self._bank, self._input_shape = bank, input_shape
        self._asks = target == "none" and bank.density_of != "features"
        # A network may give probabilities, not densities.
        self._with_kernels = bank.density_of != "x by networks" or not self._asks
        self._exemplars = Exemplars(math.prod(input_shape), capacity=capacity, seed=seed)
        self._of_experts: _OfExperts | None = None
        self._fitted: _Fitted | None = None

    @property
    def is_ready(self) -> bool:
        """Whether there are enough known rows."""
        return len(self._exemplars.rows) >= _FEWEST and (self._with_kernels or self._of_experts is not None)

    @property
    def has_kernels(self) -> bool:
        """Whether :meth:`log_density` is that of kernels by now."""
        return self.is_ready and self._fit().kernels is not None

    @property
    def n_rows(self) -> int:
        return len(self._exemplars.rows)

    @property
    def rows(self) -> NDArray[np.float32]:
        """The rows kept, (n_rows, d)."""
        return self._exemplars.rows

    @property
    def n_bytes(self) -> int:
        return self.n_rows * math.prod(self._input_shape) * 4

    def see(self, x: Tensor) -> None:
        """Takes note of samples (n, *input_shape) that are about to be learned."""
        if self._exemplars.see(x.flatten(1)):
            self._renew()

    def settle(self) -> None:
        """Takes account of all rows that have come, and of the experts as they are now."""
        self._exemplars.join()
        self._renew()

    @one_thread()
    def log_density(self, x: Tensor) -> Floats:
        """Returns the log density of samples (n, *input_shape): (n,)."""
        fitted = self._fit()
        if fitted.kernels is None:
            return self._experts_at(x)
        return fitted.kernels.log_density(x.flatten(1).cpu().numpy())

    def novelty(self, x: Tensor) -> Floats:
        """Returns how new samples (n, *input_shape) are, (n,).

        It is the negative log share of known rows that look at least as strange; see :class:`.familiarity.Familiarity`.
        0 while next to nothing is known.
        """
        return self._fit().familiarity.novelty(self.log_density(x)) if self.is_ready else np.zeros(len(x))

    def level(self, rate: float) -> float:
        """Returns the log density below which a share `rate` of known rows lies; -inf while hardly any is known."""
        return self._fit().familiarity.level(rate) if self.is_ready else -math.inf

    def _renew(self) -> None:
        self._fitted = None
        known = self._exemplars.rows
        is_asked = self._asks and len(known) and len(self._bank.counts)
        self._of_experts = None
        if is_asked:
            alone = self._experts_alone(torch.from_numpy(known))
            # Where kernels do not compete nothing is compared, and a density of 8-bit values takes no others.
            spread = self._experts_alone(torch.from_numpy(_spread(known))) if self._with_kernels else alone
            self._of_experts = _OfExperts(alone, spread.mean(keepdims=True))

    @torch.no_grad()
    def _log_weighted(self, x: Tensor) -> Floats:
        """Returns log N_k + log p(x | k), (n, K)."""
        batches = self._bank.open(x.reshape(len(x), *self._input_shape))
        log_density = torch.cat([self._bank.log_density(samples, exact=False).cpu() for samples in batches])
        return (log_density.double() + self._bank.counts.log()).numpy()

    def _experts_at(self, x: Tensor) -> Floats:
        """Returns the log density that the experts give samples, (n,)."""
        mixed: Floats = np.logaddexp.reduce(self._log_weighted(x), axis=1) - math.log(float(self._bank.counts.sum()))
        return mixed

    @one_thread()
    def _experts_alone(self, known: Tensor) -> Floats:
        """Returns the log density that the experts would give rows that they had not learned, (n,).

        Leaving one of N samples out of a Gaussian lowers its log density by D^2 / 2N, to the first order, where D is
        its squared distance from the mean: twice the log density there, less its own. Networks have no such form.
        """
        weighted, counts = self._log_weighted(known), self._bank.counts.numpy()
        mixed: Floats = np.logaddexp.reduce(weighted, axis=1) - math.log(float(counts.sum()))
        if self._bank.density_of == "x by networks":
            return mixed
        best = weighted.argmax(axis=1)
        owners = np.unique(best)
        means = torch.stack([known[torch.from_numpy(best == k)].mean(dim=0) for k in owners])
        peak = np.zeros(len(counts))
        peak[owners] = self._log_weighted(means)[np.arange(len(owners)), owners]
        distance = np.maximum(2 * (peak[best] - weighted[np.arange(len(best)), best]), 0.0)
        alone: Floats = mixed - distance**2 / (2 * np.maximum(counts[best], 1.0))
        return alone

    @one_thread()
    def _fit(self) -> _Fitted:
        if self._fitted is None:
            rows, experts = self._exemplars.rows, self._of_experts
            kernels = RowKernels(rows) if self._with_kernels else None
            if kernels is not None and (
                experts is None or kernels.leave_one_out_at(_spread(rows)).mean() > experts.spread[0]
            ):
                self._fitted = _Fitted(kernels, Familiarity(kernels.leave_one_out))
            else:
                assert experts is not None
                self._fitted = _Fitted(None, Familiarity(experts.known))
        return self._fitted

    def state_dict(self) -> State:
        experts = None if self._of_experts is None else [torch.tensor(values) for values in self._of_experts]
        return {"exemplars": self._exemplars.state_dict(), "of_experts": experts}

    def load_state_dict(self, state: State) -> None:
        expect(state, {"exemplars": part()})
        self._exemplars.load_state_dict(state["exemplars"])
        experts = state["of_experts"]
        if experts is not None:
            known, spread = experts
            forms = {"known": tensor(len(self._exemplars.rows), finite=False), "spread": tensor(1, finite=False)}
            expect({"known": known, "spread": spread}, forms)
        self._of_experts = None if experts is None else _OfExperts(*(part.cpu().numpy().copy() for part in experts))
        self._fitted = None


def _spread(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns rows with every value spread over the interval that it may have been rounded from."""
    noise = np.random.default_rng(len(rows)).uniform(-0.5, 0.5, size=rows.shape)
    return (rows + noise * resolution(rows)).astype(np.float32)
