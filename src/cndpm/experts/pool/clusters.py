r"""Mixtures of Gaussians with covariances of their own, fitted to the rows kept of every label.

.. math::
    p(x \mid y) = \tfrac12 \sum_{h} \sum_j \pi_{yhj}\, t_{n_{yhj} + 3}(x;\, m_{yhj}, \Sigma_{yhj})

Every other row of a label belongs to its first half, h = 0, the rest to its second. Each half has a mixture, and the
rows of the other half say of how many Gaussians: those that make them likeliest. Rows that were kept are asked of the
half that never met them. A Gaussian whose parameters rest on n rows answers by Student's t: its posterior predictive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln

from cndpm.experts.pool.kept_rows import KeptRows
from cndpm.experts.pool.mix import softmax
from cndpm.experts.pool.moments import UNSEEN, Labels, shrunk
from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, State, StateError, integers, tensor, whole

_FEWEST, _ROWS_EACH = 4, 10
"""Rows of a label from which it has mixtures, and rows of a half for each further Gaussian."""

_LATEST = 1000
"""Rows of a label, the latest, that its mixtures are fitted to at most; and rows that tell how labels scatter."""

_EVERY = 0.2
"""Part of these rows that come before the mixtures of a label are fitted anew."""

_MOST = 8
"""Gaussians of a half at most; tried are half as many as before, as many, twice, and four times."""

_N_STEPS = 8
"""Steps of expectation and maximisation."""

_MOST_NUMBERS = 200_000
"""Numbers of all covariances, which every row is compared with; without room for one a half there are none."""


class Clusters(Keeps):
    """Fits mixtures, one label at a time, and compares rows with them. P Gaussians in all, C labels, d columns.

    Attributes:
        keys: Twice the label of each, and one more in the second half, (P,), in order.
        counts: Rows that each rests on, (P,).
        logs: Log weight in its half and log density at its mean, (P,).
        means: (P, d).
        whitening: W of each, (P, d, d): rows that it made scatter as a ball in (x - m) W.
        fitted_at: Rows of every label that had come when its mixtures were fitted, (C,).
        since: The number of the first row that they are fitted to.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(0, 2, 400)
        >>> x = 4 * rng.choice([-1.0, 1.0], (400, 2)) + rng.normal(size=(400, 2))
        >>> y = (x[:, 0] * x[:, 1] > 0).astype(int)  # both labels have two clusters, and one mean
        >>> rows, clusters = KeptRows(2, room=400), Clusters(2)
        >>> rows.admit(2)
        >>> clusters.admit(2)
        >>> rows.add(x, rows.place(x), y)
        >>> for _ in range(4):
        ...     clusters.grow(rows, seed=0)
        >>> clusters.answer(np.array([[4.0, 4.0], [-4.0, 4.0]]))[0].argmax(axis=1)
        array([1, 0])
    """

    kept: ClassVar = {
        "keys": integers("gaussians", low=0),
        "counts": tensor("gaussians"),
        "logs": tensor("gaussians"),
        "means": tensor("gaussians", "d"),
        "whitening": tensor("gaussians", "d", "d"),
        "fitted_at": integers("labels", low=0),
        "since": whole(),
    }

    def __init__(self, d: int) -> None:
        self.since, self.fitted_at = 0, np.zeros(0, np.int64)
        self._hold(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros((0, d)), np.zeros((0, d, d)))

    def _hold(self, keys: Labels, counts: Floats, logs: Floats, means: Floats, whitening: Floats) -> None:
        """Keeps Gaussians, in the order of their keys, and makes what answers use."""
        order = np.argsort(keys, kind="stable")
        self.keys, self.counts, self.logs = keys[order], counts[order], logs[order]
        self.means, self.whitening = means[order], whitening[order]
        mixtures, self._begins, self._owners = np.unique(self.keys, return_index=True, return_inverse=True)
        self._labels = mixtures[::2] // 2
        self._flat = self.whitening.transpose(1, 0, 2).reshape(means.shape[1], -1)
        self._centres = np.einsum("pd,pde->pe", self.means, self.whitening)
        self._freedoms = _freedom(self.counts)
        self._powers = 0.5 * (self._freedoms + means.shape[1])

    @property
    def _parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.counts, self.logs, self.means, self.whitening

    def __len__(self) -> int:
        return len(self.keys)

    def is_silent(self, rows: KeptRows) -> bool:
        """Returns whether a label has no mixtures yet that should have some: until then answers would leave it out."""
        return len(self._labels) < max(int(np.count_nonzero(rows.counts >= _FEWEST)), 1)

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all Gaussians."""
        return self.logs.size + self.means.size + self.whitening.size

    def begin(self, serial: int) -> None:
        """Forgets all mixtures; others are fitted to rows from this number on."""
        self.since, self.fitted_at = serial, np.zeros_like(self.fitted_at)
        self._hold(self.keys[:0], *(part[:0] for part in self._parts))

    def admit(self, n_labels: int) -> None:
        """Makes room for labels below `n_labels`."""
        self.fitted_at = np.pad(self.fitted_at, (0, max(0, n_labels - len(self.fitted_at))))

    def relabel(self, places: Labels) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        self.admit(len(places))
        self.fitted_at = self.fitted_at[np.argsort(places)]
        self._hold(2 * places[self.keys // 2] + self.keys % 2, *self._parts)

    # Fitting

    def grow(self, rows: KeptRows, seed: int) -> None:
        """Fits the mixtures of the label of which most is new, if that is enough; a seed draws where they begin."""
        met = rows.counts
        news = np.where(met < _FEWEST, 0.0, (met - self.fitted_at) / np.minimum(np.maximum(met, 1), _LATEST))
        if not news.size or news.max() < _EVERY:
            return
        label = int(rows.y[np.where(news[rows.y] == news.max(), rows.serial, rows.n).argmin()])  # whose rows are oldest
        self.fitted_at[label] = met[label]
        at = np.flatnonzero(rows.y == label)
        at = at[np.argsort(rows.nth[at])[-_LATEST:]]
        since = at[rows.serial[at] >= self.since]
        at = since if len(since) >= _FEWEST else at  # of a label that stays away, those from before are the best
        of_halves = [at[rows.nth[at] % 2 == half] for half in (0, 1)]
        size = min(map(len, of_halves))
        room = _MOST_NUMBERS // (2 * int((met >= _FEWEST).sum()) * rows.z.shape[1] ** 2)
        if size < _FEWEST // 2 or not room:
            return
        halves = np.stack([rows.z[half[-size:]].astype(np.float64) for half in of_halves])
        n, most = max(int((self.keys == 2 * label).sum()), 1), min(room, _MOST, size // _ROWS_EACH)
        n_tried = [k for k in (n // 2, n, 2 * n, 4 * n) if 0 < k <= most] or [1]
        rng = np.random.default_rng([seed, int(met[label])])
        self._replace(label, _best(halves, n_tried, _within(rows, self.since), rng))

    def _replace(self, label: int, made: _Mixtures) -> None:
        """Puts the mixtures of both halves in the place of those that a label had."""
        stays = self.keys // 2 != label
        keys = np.append(self.keys[stays], np.repeat(2 * label + np.arange(2), made.logs.shape[1]))
        self._hold(keys, *(np.concatenate([old[stays], *new]) for old, new in zip(self._parts, made, strict=True)))

    # Answers

    def answer(self, z: Floats, y: Labels | None = None, nth: Labels | None = None) -> Floats:
        """Returns log p(x | y) of rows, (1, B, C); of labels without mixtures less than of any other.

        Args:
            z: Rows in standard units, (B, d).
            y: Their labels where they were kept, (B,), and
            nth: their numbers among those of their label, (B,): the half of a row is not asked.
        """
        n_labels, (p, d) = len(self.fitted_at), self.means.shape
        if not p:
            return np.zeros((1, len(z), n_labels))
        away = (z @ self._flat).reshape(len(z), p, d)
        away -= self._centres
        logs = self.logs - self._powers * np.log1p(np.einsum("bpd,bpd->bp", away, away) / self._freedoms)
        top = np.maximum.reduceat(logs, self._begins, axis=1)
        logs -= top.take(self._owners, axis=1)
        halves = (top + np.log(np.add.reduceat(np.exp(logs), self._begins, axis=1))).reshape(len(z), -1, 2)
        told: Floats = np.logaddexp(halves[:, :, 0], halves[:, :, 1]) - math.log(2)
        if y is not None and nth is not None:
            own, at = np.nonzero(y[:, None] == self._labels)
            told[own, at] = halves[own, at, 1 - nth[own] % 2]
        if len(self._labels) == n_labels:
            return told[None]
        likely: Floats = np.repeat(told.min(axis=1, keepdims=True) - UNSEEN, n_labels, axis=1)
        likely[:, self._labels] = told
        return likely[None]

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        found = super().load_state_dict(state, **sizes)
        if (self.counts < 0).any():
            raise StateError("'counts' must not be negative")
        mixtures = np.unique(self.keys)
        if len(mixtures) % 2 or (mixtures[::2] % 2).any() or (mixtures[::2] + 1 != mixtures[1::2]).any():
            raise StateError("'keys' must hold both halves of a label")
        integers("gaussians", below=2 * found["labels"])("keys", state["keys"], {})
        self._hold(self.keys, *self._parts)
        return found


class _Mixtures(NamedTuple):
    """Two mixtures of J Gaussians, one of each half of a label's rows, as :class:`Clusters` keeps them."""

    counts: Floats
    logs: Floats
    means: Floats
    whitening: Floats

    @classmethod
    def of(cls, z: Floats, shares: Floats, prior: Floats) -> _Mixtures:
        """Makes Gaussians of the rows of both halves (2, n, d), of which each has shares (2, J, n).

        Covariances are those of the shares and of d + 2 rows of the `prior`, (d, d).
        """
        counts, d = shares.sum(axis=2), z.shape[2]
        means = (shares @ z) / np.maximum(counts, 1e-9)[..., None]
        scatter = (shares[:, :, None] * z.transpose(0, 2, 1)[:, None]) @ z[:, None]
        scatter -= counts[..., None, None] * means[..., None] * means[:, :, None]
        covariances = (scatter + (d + 2) * prior) / (counts + d + 2)[..., None, None]
        whitening = np.linalg.inv(np.linalg.cholesky(covariances)).transpose(0, 1, 3, 2)
        logs = np.log((counts + 1) / (counts + 1).sum(axis=1, keepdims=True))
        logs += np.log(np.einsum("hjdd->hjd", whitening)).sum(axis=2)
        half, freedom = 0.5 * d, _freedom(counts)
        logs += gammaln(0.5 * freedom + half) - gammaln(0.5 * freedom) - half * np.log(0.5 * freedom)
        return cls(counts, logs, means, whitening)

    @classmethod
    def fit(cls, z: Floats, n: int, prior: Floats, rng: np.random.Generator) -> _Mixtures:
        """Fits n Gaussians to the rows of each half (2, m, d), beginning with rows far from each other."""
        near, halves = z @ np.linalg.inv(np.linalg.cholesky(prior)).T, np.arange(2)
        centres, far = near[halves, rng.integers(z.shape[1], size=2)][:, None], np.full(z.shape[:2], np.inf)
        for _ in range(n - 1):
            far = np.minimum(far, ((near - centres[:, -1:]) ** 2).sum(axis=2)) + 1e-12
            drawn = far.cumsum(axis=1)
            drawn = (drawn < drawn[:, -1:] * rng.random((2, 1))).sum(axis=1)
            centres = np.append(centres, near[halves, drawn][:, None], axis=1)
        nearest = ((near[:, :, None] - centres[:, None]) ** 2).sum(axis=3).argmin(axis=2)
        made = cls.of(z, (nearest[:, None] == np.arange(n)[:, None]).astype(float), prior)
        for _ in range(_N_STEPS if n > 1 else 0):
            made = cls.of(z, softmax(made.each(z)).transpose(0, 2, 1), prior)
        return made

    def each(self, z: Floats) -> Floats:
        """Returns log densities of rows of both halves (2, n, d) by Gaussian, with its weight, (2, n, J)."""
        away = (z[:, None] - self.means[:, :, None]) @ self.whitening
        freedom = _freedom(self.counts)[:, None]
        squares = np.einsum("hjnd,hjnd->hnj", away, away)
        return np.asarray(self.logs[:, None] - 0.5 * (freedom + z.shape[2]) * np.log1p(squares / freedom))

    def log_density(self, z: Floats) -> float:
        """Returns the log density of rows of both halves (2, n, d) in all."""
        return float(np.logaddexp.reduce(self.each(z), axis=2).sum())


def _best(halves: Floats, n_tried: Sequence[int], prior: Floats, rng: np.random.Generator) -> _Mixtures:
    """Returns the mixtures of two halves of rows (2, m, d), of as many Gaussians as make the other half likeliest."""
    return max((_Mixtures.fit(halves, n, prior, rng) for n in n_tried), key=lambda made: made.log_density(halves[::-1]))


def _within(rows: KeptRows, since: int) -> Floats:
    """Returns the covariance, shrunk, of rows from a number on around the mean of their label, (d, d)."""
    at = rows.latest(_LATEST)
    at = at[rows.serial[at] >= since] if (rows.serial[at] >= since).any() else at
    z, is_own = rows.z[at].astype(np.float64), rows.y[at] == np.unique(rows.y[at])[:, None]
    away = z - (is_own / is_own.sum(axis=1, keepdims=True)).T @ (is_own @ z)
    return shrunk(away.T @ away, len(at))


def _freedom(counts: Floats) -> Floats:
    """Returns the degrees of freedom of Gaussians that rest on so many rows and on a prior of d + 2 rows."""
    return np.asarray(counts + 3.0)
