"""Gaussian components with one covariance for all: means by conjugacy, covariance by pooling, shrunk by evidence.

Component j has mu_j ~ N(m0, Sigma / kappa0) and predictive density N(mu_j, (1 + 1 / (kappa0 + n_j)) Sigma); "new" is
the prior predictive N(m0, (1 + 1 / kappa0) Sigma), exactly. m0 is the mean of everything, kappa0 comes from how far the
means lie apart. Where held-out data has heavier tails than a normal density, the normal densities become Student's t of
the same mean and covariance; with tail=inf everything stays exactly conjugate.

*Routing* uses a factor of Sigma that is renewed when as many samples have arrived as there are features, or 5 % more,
whichever is more: then factorising costs no more than accumulating; and when an expert is founded on at least a tenth
of all data, because its samples may vary in other directions. Between renewals the covariance is stale, the means are
not; it is shrunk for densities. *Answers* are :mod:`.shared_answers`, which has no influence on learning.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.experts.gaussian.choice import CovarianceChoice
from cndpm.experts.gaussian.densities import MeanIndex, leave_one_out, typical_cross_margins, typical_margins
from cndpm.experts.gaussian.factor import Factor, Products, Whitened, log_components
from cndpm.experts.gaussian.ledger import WINDOW, Ledger
from cndpm.experts.gaussian.prediction import factorise
from cndpm.experts.gaussian.shared_answers import SharedAnswers
from cndpm.experts.gaussian.statistics import BLOCK_SIZE, SharedStatistics
from cndpm.state import State, StateError, expect, maybe, tensor, whole
from cndpm.threads import spread

_FEW = 128
"""Components up to which windows of inner products serve; their products with each other grow with the square."""

_ROUNDING = 1e-6
"""Samples that a count may lack: shares of a sample add up to one only to rounding, which must not delay a renewal."""


class SharedGaussians:
    """J Gaussian components with one covariance over d features, which a function gives, less a fixed `origin` (d,).

    The `choice` of shrinkages and tails says what predictions are for; by default it is made by the data, for classes.
    """

    routing_dtype = torch.float32
    """Of the routing factor: single precision halves its cost, and the routing margins are whole nats."""

    def __init__(
        self, origin: Tensor, features: Callable[[Samples], Tensor], choice: CovarianceChoice | None = None
    ) -> None:
        self.statistics = SharedStatistics(origin)
        self.choice = choice or CovarianceChoice()
        self._first_choice = self.choice.state_dict()
        self.n_factorisations = 0
        self._features = features
        self._routing: Factor | None = None
        self.answers = SharedAnswers(self, features)
        self._index: MeanIndex | None = None
        self._before: Tensor | None = None
        self._ledger: Ledger | None = None
        self._saved_ledger: State | None = None

    @property
    def counts(self) -> Tensor:
        """Weight of the samples of each component, (J,), float64, on the host."""
        return self.statistics.counts

    @property
    def n_numbers_kept(self) -> int:
        """Statistics only: both factors follow from them."""
        return self.statistics.n_numbers_kept

    @property
    def is_wide(self) -> bool:
        """Whether components are so many that samples had better be asked and taught about some of them alone."""
        return self.statistics.counts.shape[0] > _FEW

    def found(self, z: Tensor, weights: Tensor, components: NDArray[np.int64] | None = None) -> None:
        """Adds a founding memory of feature rows (M, d); a fifth of it is held out while the shrinkage is chosen.

        Weights are (M, J), or (M, S) for some `components` (S,) alone; float64, on the host.
        """
        self._settle()
        self.statistics.flush()
        held_out = torch.arange(len(z)) % 5 == 4
        for part in (~held_out, held_out):
            self.statistics.flush()
            shifted = self.statistics.shift(z[part.to(z.device)])
            self._add_outside(shifted, None, weights[part], components)
        self._renew_if_due(n_samples=0, share=0.1)

    def add(self, samples: Samples, weights: Tensor, components: NDArray[np.int64] | None = None) -> None:
        """Learns samples (B, ...) with weights as for :meth:`found`."""
        place = self._place(samples)
        if self._ledger is not None and place is not None:
            self._ledger.add(place, weights.numpy())
            self.statistics.note(self._ledger.window.shifted[place], weights)
        else:
            self._settle()
            whitened = None if self._routing is None else self._whitened(samples)
            shifted = self.statistics.shift(self._features(samples)) if whitened is None else whitened.shifted
            self._add_outside(shifted, whitened, weights, components)
        self._renew_if_due(n_samples=self.statistics.n_features, share=0.05)
        if self.statistics.n_pending >= BLOCK_SIZE:
            self.statistics.flush()

    def add_components(self, n: int) -> None:
        """Appends n empty components."""
        self._settle()
        self.statistics.add_components(n)
        if self._routing is not None:
            self._routing.add_components(n)
        if self._before is not None:
            self._before = torch.nn.functional.pad(self._before, (0, n), value=math.nan)

    def merge_components(self, pairs: list[tuple[int, int]], keep: list[int], *, judge_anew: bool = False) -> None:
        """Adds component i to component j for every pair (i, j), then keeps some, in their new order.

        To `judge_anew` is to choose shrinkages by the statistics alone; rows that wait to enter the covariance judge
        it, and go on waiting.
        """
        self._settle()
        self._remember_margins()
        if self._before is not None:
            self._before = self._before[keep]
        if not judge_anew:
            self.statistics.flush()
        self.statistics.merge_components(pairs, keep)
        if judge_anew:
            self.choice.judge_anew(self.statistics)
        if judge_anew or self._routing is not None:
            self._renew()

    def template(self) -> State:
        """Returns the state of Gaussians with this origin and no component."""
        return {**SharedGaussians(self.statistics.origin, self._features).state_dict(), "choice": self._first_choice}

    def extend(self, other: SharedGaussians) -> None:
        """Appends the components of others; the covariance becomes that of all, with a mean of their shrinkages.

        Routing is renewed when it is asked for, so that many can be appended at the price of one factorisation.
        """
        for gaussians in (self, other):
            gaussians._settle()
            gaussians._remember_margins()
        assert self._before is not None
        assert other._before is not None
        self._before = torch.cat([self._before, other._before])
        self.choice.join(other.choice, float(self.counts.sum()), float(other.counts.sum()))
        self.statistics.extend(other.statistics)
        self._routing = None

    def margin_drift(self) -> Tensor | None:
        """Returns how far :func:`.factor.typical_margins` have moved since the last call, (J,), on the host.

        NaN for components that are newer; None if routing was not renewed.
        """
        before, self._before = self._before, None
        return None if before is None else typical_margins(self.routing(), self.counts) - before

    def typical_margins(self, components: NDArray[np.int64]) -> Tensor:
        """Returns log p(z | i) - log p(z | new) of a typical sample z of component j, [i, j], of some (S,), (S, S)."""
        factor = self.routing()
        return typical_cross_margins(factor, self.counts, torch.from_numpy(components).to(factor.anchors.device))

    def whitened_sums(self) -> Tensor:
        """Returns the sums of components as routing sees them, (J, d), float64."""
        self._settle()
        return self.routing().sums

    def routing(self) -> Factor:
        """Returns the factor that routing uses; made on first use."""
        return self._routing or self._renew()

    def routing_log_prob(
        self, samples: Samples, components: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns log densities of components, all or some (S,), (B, J or S), and of "new" (B,), on the host.

        Where samples are learned in order, a window of the following rows of their chunk is opened, and all inner
        products of these rows come to the host at once; unless components are many, or no rows follow.
        """
        factor, place = self.routing(), self._place(samples)
        if place is None and samples.whole.in_order and not self.is_wide and len(samples.whole.x) > len(samples.x):
            place = self._open_window(samples)
        if self._ledger is not None and place is not None:
            products = self._ledger.products(place)
        elif self.is_wide:
            products = Products.apart(self._whitened(samples).rows, factor.some_anchors(components))
        else:
            anchors = factor.anchors if self._ledger is None else self._ledger.anchors()
            products = Products.of(self._whitened(samples).rows, anchors)
        counts = self.statistics.counts.numpy()
        kappas = np.append(counts if components is None else counts[components], 0.0) + factor.kappa
        facts = {"kappa": factor.kappa, "log_det": factor.log_det, "tail": factor.tail}
        scores = log_components(products, kappas, n_dims=factor.anchors.shape[1], **facts)
        return scores[:, :-1], scores[:, -1]

    def nearest(self, samples: Samples) -> Tensor | None:
        """Returns the components whose means lie nearest to each of B samples, (B, S); None where they are few."""
        if self._index is None:
            return None
        return self._index.nearest(self._whitened(samples).rows, self.routing(), self.counts)

    def log_leave_one_out(self, samples: Samples, groups: Tensor) -> Tensor:
        """Returns the log density of each of M samples under a component made of the others of its group, (M,)."""
        return leave_one_out(self.routing(), self._whitened(samples).rows, groups)

    def _whitened(self, samples: Samples) -> Whitened:
        """Returns rows whitened by the routing factor; on a GPU those of the following chunk are begun as well."""
        factor = self.routing()

        def whiten(chunk: Samples) -> Whitened:
            shifted = self.statistics.shift(self._features(chunk))
            return Whitened(shifted, factor.whiten(shifted))

        whitened: Whitened = samples.derive("whitened", factor.cholesky, whiten)
        following = samples.whole.following
        if following is not None and factor.cholesky.is_cuda:
            following.derive("whitened", factor.cholesky, whiten)
        return whitened

    def _place(self, samples: Samples) -> slice | None:
        return None if self._ledger is None else self._ledger.place(samples)

    def _open_window(self, samples: Samples) -> slice:
        """Opens a window that begins with samples, or restores the saved one if they are part of it."""
        whitened = self._whitened(samples.whole)
        ledger = None if self._saved_ledger is None else Ledger.recalled(self._saved_ledger, samples, whitened)
        if ledger is None:
            self._settle()
            window = whitened[samples.start : samples.start + max(WINDOW, len(samples))]
            ledger = Ledger(samples.whole, samples.start, window, self.statistics.sums, self.routing().anchors)
        self._ledger, self._saved_ledger = ledger, None
        self.statistics.defer(ledger.sums)
        place = ledger.place(samples)
        assert place is not None
        return place

    def _add_outside(
        self, shifted: Tensor, whitened: Whitened | None, weights: Tensor, components: NDArray[np.int64] | None
    ) -> None:
        """Adds shifted rows (B, d), whitened where that is known, that no window holds."""
        beside = self.statistics.add(shifted, weights, components)
        if self._routing is not None:
            rows = self._routing.whiten(shifted) if whitened is None else whitened.rows
            self._routing.add(beside, rows, components)

    def _settle(self) -> None:
        """Closes the ledger: brings sums and anchors up to date."""
        if self._ledger is not None and self._routing is not None:
            self._routing.anchors = self._ledger.anchors()
            self.statistics.settle()
        self._ledger = self._saved_ledger = None

    def forget_rows(self) -> None:
        """Closes the ledger and has rows whitened anew: they may have other features from now on."""
        self._settle()
        if self._routing is not None:
            self._routing.cholesky = self._routing.cholesky.clone()
        statistics = self.statistics  # answers are kept as long as these are the same objects
        statistics.counts, statistics.changes = statistics.counts.clone(), statistics.changes.copy()

    def _renew_if_due(self, *, n_samples: int, share: float) -> None:
        """Renews the routing factor once `n_samples` and a `share` more have arrived since."""
        count = float(self.statistics.counts.numpy().sum())
        stale = 0.0 if self._routing is None else self._routing.count
        if self._routing is None or count - stale >= max(n_samples, share * stale) - _ROUNDING:
            self._settle()
            with spread(self.statistics.n_features**3):
                self.choice.judge(self.statistics)
            self.statistics.flush()
            self._remember_margins()
            self._routing = None
            self._renew()

    def _renew(self) -> Factor:
        """Makes the routing factor anew and, where components are many, the index over their means."""
        self._routing = self.factorise(self.choice.density).to(self.routing_dtype)
        self._index = MeanIndex.of(self._routing, self.counts) if self.is_wide else None
        return self._routing

    def _remember_margins(self) -> None:
        """Keeps the margins as they are before routing is renewed."""
        if self._routing is not None and self._before is None:
            self._before = typical_margins(self._routing, self.counts)

    def factorise(self, shrinkage: float, *, for_classes: bool = False) -> Factor:
        """Makes a factor of the covariance as it is; see :func:`.prediction.factorise`."""
        if not self.statistics.n_components:
            raise RuntimeError("there is no component yet; found an expert first")
        self.n_factorisations += 1
        return factorise(self.statistics, shrinkage=shrinkage, tail=self.choice.tail, for_classes=for_classes)

    def state_dict(self) -> State:
        """Returns statistics, shrinkages, tails and the routing factor, which is older than the statistics."""
        routing, ledger = None if self._routing is None else self._routing.state_dict(), self._saved_ledger
        if routing is not None and self._ledger is not None:
            routing, ledger = {**routing, "anchors": self._ledger.anchors()}, self._ledger.state_dict()
        return {
            "statistics": self.statistics.state_dict(),
            "choice": self.choice.state_dict(),
            "routing": routing,
            "ledger": ledger,
            "index": None if self._index is None else self._index.state_dict(),
            "before": None if self._before is None else self._before.clone(),
        }

    def load_state_dict(self, state: State) -> None:
        statistics = SharedStatistics.from_state(state["statistics"])
        sizes = {"j": statistics.n_components, "d": statistics.n_features, "anchors": statistics.n_components + 2}
        if sizes["d"] != self.statistics.n_features:
            raise StateError(f"experts of {self.statistics.n_features} features were expected; got {sizes['d']}")
        if state["routing"] is not None:
            expect(state["routing"], {"anchors": tensor("anchors", "d")}, **sizes)
        if state["ledger"] is not None:
            forms = {"first": whole(), "squares": tensor("rows"), "weights": tensor("rows", "anchors")}
            expect(state["ledger"], forms | {"sums": tensor("j", "d"), "anchors": tensor("anchors", "d")}, **sizes)
        expect(state, {"before": maybe(tensor("k", finite=False))})
        self.statistics = statistics
        self.choice.load_state_dict(state["choice"])
        self._routing = None if state["routing"] is None else Factor.from_state(state["routing"])
        self._before = None if state["before"] is None else state["before"].cpu().clone()
        self._ledger = None
        self._saved_ledger = state["ledger"]
        self._index = None if state["index"] is None else MeanIndex.from_state(state["index"])
