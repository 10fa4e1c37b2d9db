"""Sufficient statistics of Gaussian components that share one covariance: counts, sums, one second moment.

Everything is a weighted sum, so the order of the samples does not matter, two models that saw different streams add up,
and merging two components is adding two rows. The within-component scatter is never stored; it follows from
W = sum_i w_i z_i z_iᵀ - sum_j s_j s_jᵀ / n_j. All sums are float64, of features shifted once by a fixed origin, so that
the difference loses no digits that matter.

Rows and sums live on the device of the origin. Counts and weights are a handful of numbers that decisions are made of:
they live on the host, so that learning a batch never waits for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.state import State, expect, integers, maybe, tensor
from cndpm.threads import spread

BLOCK_SIZE = 512
"""Rows that are computed with together; also those of a symmetric matrix, of which strips make half of the products."""


class SharedStatistics:
    """Sums of J components over d features, of which a fixed `origin` (d,) is subtracted.

    The rank-one updates of the second moment gather in a block and are applied by one matrix product when :meth:`flush`
    is called. Until then the block is data that the scatter has not seen, on which the shrinkage is chosen. `counts`
    are the weights of the components, (J,), float64, on the host; `changes` how often the sums of each have changed,
    (J,), not part of the state; `n_pending` rows wait to enter the second moment.
    """

    def __init__(self, origin: Tensor) -> None:
        self.origin, self.n_features = origin.double(), len(origin)
        self.counts = torch.zeros(0, dtype=torch.float64)
        self.changes = np.zeros(0, dtype=np.int64)
        self._sums = self.origin.new_zeros(0, self.n_features)
        self._deferred: Callable[[], Tensor] | None = None
        self._moment: Tensor | None = None
        self._pending: list[tuple[Tensor, Tensor, Tensor]] = []
        self.n_pending = 0

    @property
    def n_components(self) -> int:
        return len(self.counts)

    @property
    def sums(self) -> Tensor:
        """Weighted sums of shifted features, (J, d), float64."""
        return self._sums if self._deferred is None else self._deferred()

    @property
    def _second_moment(self) -> Tensor:
        """The sum of weighted z zᵀ, (d, d), float64, the lower triangle; made when it is first needed."""
        if self._moment is None:
            self._moment = self.origin.new_zeros(self.n_features, self.n_features)
        return self._moment

    def defer(self, current: Callable[[], Tensor]) -> None:
        """Reads the sums from `current()`, (J, d), until :meth:`settle` copies them back."""
        self._deferred = current

    def settle(self) -> None:
        """Copies deferred sums back."""
        self._sums, self._deferred = self.sums, None

    @property
    def n_numbers_kept(self) -> int:
        """Origin, counts, sums and one triangle of the symmetric second moment."""
        d = self.n_features
        return d + self.counts.numel() + self._sums.numel() + d * (d + 1) // 2

    def add_components(self, n: int) -> None:
        """Appends n empty components."""
        self.settle()
        self.counts = torch.cat([self.counts, self.counts.new_zeros(n)])
        self.changes = np.append(self.changes, np.zeros(n, dtype=np.int64))
        self._sums = torch.cat([self._sums, self._sums.new_zeros(n, self.n_features)])

    def add(self, rows: Tensor, weights: Tensor, components: NDArray[np.int64] | None = None) -> Tensor:
        """Adds shifted rows (B, d) to the sums, keeps them until the next flush, returns the weights on their device.

        Weights are (B, J), or (B, S) for some `components` (S,) alone; float64, on the host.
        """
        self.settle()
        beside = self._here(weights)
        if components is None:
            self._sums.addmm_(beside.T, rows)
        else:
            self._sums.index_add_(0, self._here(torch.from_numpy(components)), beside.T @ rows)
        self.note(rows, weights, components)
        return beside

    def note(self, rows: Tensor, weights: Tensor, components: NDArray[np.int64] | None = None) -> None:
        """Counts rows whose sums are deferred, as :meth:`add` takes them, and keeps them until the next flush."""
        values = weights.numpy()
        owners = values.argmax(axis=1)
        if components is None:
            self.counts = torch.from_numpy(self.counts.numpy() + values.sum(axis=0))
            self.changes = self.changes + values.any(axis=0)
        else:
            self.counts, self.changes, owners = self.counts.clone(), self.changes.copy(), components[owners]
            self.counts.numpy()[components] += values.sum(axis=0)
            self.changes[components] += values.any(axis=0)
        self._pending.append((rows, torch.from_numpy(values.sum(axis=1)), torch.from_numpy(owners)))
        self.n_pending += len(rows)

    def flush(self) -> None:
        """Applies the waiting block to the second moment."""
        if self._pending:
            rows, weights, _ = self.pending()
            _add_products(self._second_moment, rows * self._here(weights)[:, None], rows)
            self._pending, self.n_pending = [], 0

    def pending(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns waiting rows (N, d); on the host their weights (N,) and the components with most of each, (N,)."""
        if not self._pending:
            return self._sums.new_zeros(0, self.n_features), self.counts[:0], torch.zeros(0, dtype=torch.long)
        rows, weights, owners = map(torch.cat, zip(*self._pending, strict=True))
        return rows, weights, owners

    def shift(self, z: Tensor) -> Tensor:
        """Returns features (B, d) less the origin, float64."""
        return z.double() - self.origin

    def within_scatter(self) -> Tensor:
        """Returns W, the scatter about the components' means, (d, d), a fresh tensor, waiting block included.

        Only the lower triangle is right, as in all scatters here: the upper one is never read.
        """
        scatter = self._scatter(self.counts, self.sums)
        if self._pending:
            rows, weights, _ = self.pending()
            _add_products(scatter, rows * self._here(weights)[:, None], rows)
        return scatter

    def held_out(self) -> tuple[Tensor, float, Tensor]:
        """Splits the waiting block off, so that a covariance can be judged on it.

        Returns:
            The scatter without the block (d, d), the number of degrees of freedom behind it, and the deviations (N, d)
            of the block's rows from the means of their components without the block.
        """
        rows, weights, owners = self.pending()
        counts = self.counts.index_add(0, owners, weights, alpha=-1)
        sums = self.sums.index_add(0, self._here(owners), rows * self._here(weights)[:, None], alpha=-1)
        known = (counts[owners] > 0.5) & (weights > 0)  # rows of new samples have no weight and no component
        owners = owners[known]
        deviations = rows[self._here(known)] - sums[self._here(owners)] / self._here(counts[owners])[:, None]
        counts = torch.where(counts > 1e-9, counts, 0.0)
        return self._scatter(counts, sums), _degrees_of_freedom(counts), deviations

    @property
    def degrees_of_freedom(self) -> float:
        """Weight of all samples less one for every mean, at least one."""
        return _degrees_of_freedom(self.counts)

    def _scatter(self, counts: Tensor, sums: Tensor) -> Tensor:
        """Returns W without the waiting block."""
        present = counts > 0
        scaled = sums[self._here(present)] / self._here(counts[present]).sqrt()[:, None]
        scatter = self._second_moment.clone()
        _add_products(scatter, -scaled, scaled)
        return scatter

    def merge_components(self, pairs: list[tuple[int, int]], keep: list[int]) -> None:
        """Adds component i to component j for every pair (i, j), then keeps some, in their new order."""
        self.settle()
        place = torch.full((self.n_components,), -1, dtype=torch.int64)
        place[keep] = torch.arange(len(keep))
        for source, target in pairs:
            self.counts[target] += self.counts[source]
            self._sums[target] += self._sums[source]
            place[source] = place[target]
        self._pending = [(rows, weights, place[owners]) for rows, weights, owners in self._pending]
        self.counts, self._sums = self.counts[keep], self._sums[keep]
        self.changes = np.zeros(len(keep), dtype=np.int64)

    def extend(self, other: SharedStatistics) -> None:
        """Appends the components of other statistics, brought to the same origin."""
        self.settle()
        n, by = self.n_components, other.origin.to(self.origin.device) - self.origin
        sums = other.sums.to(self.origin.device)
        rows, weights, owners = other.pending()
        moved = rows.to(self.origin.device) + by
        waiting = (weights.to(self.origin.device)[:, None] * rows.to(self.origin.device)).sum(dim=0)
        # Without the waiting rows: sum w (z + b)(z + b)' = sum w z z' + s b' + b s' + n b b'.
        total, count = sums.sum(dim=0) - waiting, float(other.counts.sum() - weights.sum())
        self._second_moment.add_(other._second_moment.to(self.origin.device))
        if bool(by.any()):
            _add_products(self._second_moment, torch.stack([total, by, count * by]), torch.stack([by, total, by]))
        self.counts = torch.cat([self.counts, other.counts])
        self._sums = torch.cat([self._sums, sums + other.counts.to(sums.device)[:, None] * by])
        self.changes = np.zeros(len(self.counts), dtype=np.int64)
        if len(rows):
            self._pending.append((moved, weights, owners + n))
            self.n_pending += len(rows)

    def _here(self, values: Tensor) -> Tensor:
        """Copies a few numbers from the host to the device of the sums; the host does not wait."""
        return values.to(self._sums.device, non_blocking=True)

    def state_dict(self) -> State:
        """Returns all sums, the waiting block included; None for a second moment of nothing."""
        rows, weights, owners = self.pending()
        return {
            "origin": self.origin.clone(),
            "counts": self.counts.clone(),
            "sums": self.sums.clone(),
            "second_moment": pack_symmetric(self._second_moment) if self.n_components else None,
            "pending": {"rows": rows.clone(), "weights": weights.clone(), "owners": owners.clone()},
        }

    @classmethod
    def from_state(cls, state: State) -> SharedStatistics:
        n = expect(state, {"origin": tensor("d"), "counts": tensor("components"), "sums": tensor("components", "d")})
        triangle = tensor(n["d"] * (n["d"] + 1) // 2)
        expect(state, {"second_moment": triangle if n["components"] else maybe(triangle)})
        owners = integers("rows", low=0, below=max(1, n["components"]))
        rows = {"rows": tensor("rows", n["d"]), "weights": tensor("rows"), "owners": owners}
        expect(state["pending"], rows)
        statistics = cls(state["origin"])
        statistics.counts, statistics._sums = state["counts"].cpu().clone(), state["sums"].clone()
        statistics.changes = np.zeros(len(statistics.counts), dtype=np.int64)
        if state["second_moment"] is not None:
            statistics._moment = unpack_triangle(state["second_moment"], statistics.n_features)
        pending = state["pending"]
        if len(pending["rows"]):
            on_host = (pending[name].cpu().clone() for name in ("weights", "owners"))
            statistics._pending = [(pending["rows"].clone(), *on_host)]
            statistics.n_pending = len(pending["rows"])
        return statistics


def _add_products(matrix: Tensor, left: Tensor, right: Tensor) -> None:
    """Adds leftᵀ right, (N, d) each, to the lower triangle of a matrix (d, d), strip by strip."""
    with spread(left.numel() * len(matrix)):
        for start in range(0, len(matrix), BLOCK_SIZE):
            stop = min(start + BLOCK_SIZE, len(matrix))
            matrix[start:stop, :stop].addmm_(left[:, start:stop].T, right[:, :stop])


def _degrees_of_freedom(counts: Tensor) -> float:
    return max(1.0, float(counts.sum() - (counts > 0).sum()))


def pack_symmetric(matrix: Tensor) -> Tensor:
    """Returns the lower triangle of a matrix (d, d), row by row, (d (d + 1) / 2,)."""
    return torch.cat([matrix[i, : i + 1] for i in range(len(matrix))]) if len(matrix) else matrix.reshape(0)


def unpack_triangle(packed: Tensor, n_rows: int) -> Tensor:
    """Returns the lower triangular matrix (d, d) with a given triangle, row by row, (d (d + 1) / 2,)."""
    matrix = packed.new_zeros(n_rows, n_rows)
    start = 0
    for i in range(n_rows):
        matrix[i, : i + 1] = packed[start : start + i + 1]
        start += i + 1
    return matrix
