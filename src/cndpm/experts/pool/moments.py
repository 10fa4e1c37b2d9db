r"""One statistic for models that forget and for rules that do not: means by label, and the scatter around them.

A *slot* is a model with means of its own. A recent slot keeps a part of what it knows of a label whenever a sample of
that label comes, and forgets nothing while others come; a rule forgets nothing at all. A *group* is slots with one
scatter S: all recent slots, and every rule by itself. With S / n shrunk towards a ball,
:math:`L L^\top`, and :math:`W = (L L^\top)^{-1}`,

.. math::
    \log p(x \mid y) = f^\top W m_y - \tfrac12 m_y^\top W m_y + \text{a constant of } x

W itself is never made: the factor L costs a third of it, and solves for the few means that there are. It is a ball
in part, and so well conditioned: single precision does for it, in half the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dtrtri, spotrf, spotrs

from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, tensor

__all__ = ["ByLabel", "Moments"]

Labels = np.ndarray[tuple[int], np.dtype[np.int64]]

_RENEWED = 0.1
"""Part of its samples after which a group's factor is made anew; means are always up to date."""

UNSEEN = 4.0
"""Nats below the least likely label that a model knows at which it puts those it has not met."""

_LIGHT, _LIGHT_SCATTER = 3.0, 200.0
"""Samples that a new rule takes over from the one before it: of every label, and of the scatter."""

_LEAST_LEFT = 0.05
"""Part of a length that is left at least without a row: a factor may be older than the row."""

_LEAST_SHRUNK, _SHRUNK = 0.01, 0.3
"""Parts of a covariance that are a ball: always, and where samples are none."""

_OF_SLOTS = ("n", "means", "slopes", "offsets")
"""What there is of every slot."""


class ByLabel(NamedTuple):
    """Holds B labels, U of them different, as every model needs them.

    Example:
        >>> batch = ByLabel.of(np.array([7, 3, 7]))
        >>> batch.labels.tolist(), batch.n_later.tolist()
        ([3, 7], [[0, 0, 0], [1, 0, 0]])
    """

    labels: Labels
    is_own: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    n_own: Labels
    n_later: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    owner: Labels
    first: Labels

    @classmethod
    def of(cls, y: Labels) -> ByLabel:
        """Finds the labels of y (B,), where and how often each is, how many follow each sample, and which is first."""
        labels, owner, n_own = np.unique(y, return_inverse=True, return_counts=True)
        is_own = owner == np.arange(len(labels))[:, None]
        n_later = np.where(is_own, is_own[:, ::-1].cumsum(axis=1)[:, ::-1] - 1, 0)
        return cls(labels, is_own, n_own, n_later, owner, is_own.argmax(axis=1))


class Moments(Keeps):
    """Counts, means and scatters of one representation. S slots, G groups, C labels, d features.

    Args:
        d: Features.
        keeps: What recent slots keep of a label's samples when another one comes.
        fade: What they keep of their scatter.
        n_labels: C so far.

    Attributes:
        n: Samples of every label, faded, (S, C).
        means: Of the features by label, (S, C, d).
        scatters: Around the means, faded, (d, d) each; only what is on and below the diagonal.
        weights: Samples that the scatters are of, faded, (G,).

    Example:
        >>> moments = Moments(1, keeps=(0.9,), fade=0.99, n_labels=2)
        >>> f, y = np.array([[-1.0], [1.0], [-1.1], [1.1]]), np.array([0, 1, 0, 1])
        >>> moments.learn(f, ByLabel.of(y), rule=0)
        >>> moments.log_likelihood(f)[1].argmax(axis=1)  # the rule
        array([0, 1, 0, 1])
    """

    kept: ClassVar = {
        "n": tensor("slots", "labels"),
        "means": tensor("slots", "labels", "d"),
        "slopes": tensor("slots", "labels", "d"),
        "offsets": tensor("slots", "labels"),
        "scatters": tensor("groups", "d", "d"),
        "factors": tensor("groups", "d", "d", dtype=torch.float32),
        "weights": tensor("groups"),
        "due": tensor("groups", finite=False),
    }

    def __init__(self, d: int, keeps: Sequence[float], fade: float, n_labels: int) -> None:
        self.n_recent, n_slots, n_groups = len(keeps), len(keeps) + 1, 2
        self._keep, self._fade = np.array([*keeps, 1.0]), (fade, 1.0)
        self.n, self.offsets = np.zeros((n_slots, n_labels)), np.zeros((n_slots, n_labels))
        self.means, self.slopes = np.zeros((n_slots, n_labels, d)), np.zeros((n_slots, n_labels, d))
        self.scatters = [np.zeros((d, d)) for _ in range(n_groups)]  # each by itself, for rules come and go
        self.factors = [np.eye(d, dtype=np.float32)] * n_groups
        self.weights, self.due = np.zeros(n_groups), np.full(n_groups, np.inf)

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all slots and groups."""
        of_groups = 2 * len(self.scatters) * (self.scatters[0].size + 1)
        return of_groups + sum(int(getattr(self, name).size) for name in _OF_SLOTS)

    def whitening_of_rule(self, rule: int) -> Floats:
        """Returns M, (d, d), with which a rule's labels scatter as a ball: M M' = W."""
        whitening: Floats = dtrtri(self.factors[1 + rule].T.astype(np.float64), lower=0)[0]
        return whitening

    def admit(self, n_labels: int) -> None:
        """Makes room for labels below `n_labels`."""
        more = n_labels - self.n.shape[1]
        for name in _OF_SLOTS if more > 0 else ():
            values = getattr(self, name)
            setattr(self, name, np.pad(values, [(0, 0), (0, more)] + [(0, 0)] * (values.ndim - 2)))

    def log_likelihood(self, f: Floats) -> Floats:
        """Returns log p(x | y) up to a constant of x by every slot, (S, B, C), of features f (B, d)."""
        n_slots, n_labels, d = self.slopes.shape
        flat = f @ self.slopes.reshape(-1, d).T
        likely: Floats = (flat.reshape(len(f), n_slots, n_labels) + self.offsets).transpose(1, 0, 2)
        if np.count_nonzero(self.n) == self.n.size:
            return likely
        is_known = (self.n > 0)[:, None]
        least = np.where(is_known, likely, np.inf).min(axis=2, keepdims=True)
        return np.where(is_known, likely, np.where(np.isfinite(least), least - UNSEEN, 0.0))

    def leave_one_out(self, f: Floats, y: Labels, later: Labels, rule: int) -> Floats:
        r"""Returns log p(x | y) as if rows that were learned had not been.

        A row that has faded to the weight w of n samples moved the mean m of its label by w e / (n - w), where e is its
        deviation, and added n w / (n - w) e e' to S. With u = W e and a = n w / (n - w) (1 - s) / N, where s is the
        part that is shrunk and N the samples of S, W becomes :math:`(1 - w / N) (W + u u^\top a / (1 - a e^\top u))`.

        Args:
            f: Features, (B, d).
            y: Their labels, (B,).
            later: Samples of the same label that have come since, (B,).
            rule: The one beside the recent slots.

        Returns:
            Of the recent slots and the rule, (R + 1, B, C).
        """
        told, at, d = self.log_likelihood(f), (np.arange(len(y)), y), f.shape[1]
        groups, slots, last = self._learning(recent=True, rule=rule)
        for group, own in zip(groups.tolist(), np.split(slots, last[:-1] + 1), strict=True):
            solved = spotrs(self.factors[group].T, f.T, lower=0)[0].T
            n_all = max(float(self.weights[group]), 1.0)
            part = self._fade[min(group, 1)] ** later / n_all
            each = (1 - _LEAST_SHRUNK - _SHRUNK * d / (d + n_all)) * part
            for slot in own.tolist():
                w = self._keep[min(slot, self.n_recent)] ** later
                n = np.maximum(self.n[slot][y], 1.5 * w)
                moved, away, u = w / (n - w), f - self.means[slot][y], solved - self.slopes[slot][y]
                by_row, by_mean, length = (f * u).sum(axis=1), u @ self.means[slot].T, (away * u).sum(axis=1)
                told[slot][at] -= moved * (by_row - by_mean[at] + 0.5 * moved * length)
                by_mean[at] -= moved * length
                a = each * n / (n - w)
                a /= np.maximum(1 - a * length, _LEAST_LEFT)
                told[slot] += a[:, None] * by_mean * (by_row[:, None] - 0.5 * by_mean)
                told[slot] *= (1 - part)[:, None]
        return told[slots]

    def learn(
        self, f: Floats, batch: ByLabel, *, recent: bool = True, rule: int | None = None, mixing: float = 1.0
    ) -> None:
        """Learns a batch, in its order.

        Args:
            f: Features, (B, d).
            batch: Its labels.
            recent: Whether the recent slots learn it.
            rule: The rule that learns it.
            mixing: How far the latest labels mix, from 0 to 1: scatters fade as far, for runs of one label tell little
                of the others.
        """
        groups, slots, last = self._learning(recent=recent, rule=rule)
        keep, labels, n_own = self._keep[np.minimum(slots, self.n_recent)], batch.labels, batch.n_own
        shares = batch.is_own * keep[:, None, None] ** batch.n_later  # (slots, U, B)
        at, total = (slots[:, None], labels), shares.sum(axis=2)
        before = self.n[at] * keep[:, None] ** n_own
        mean = (shares @ f) / total[..., None]
        step, part = mean - self.means[at], total / (before + total)
        self.n[at] = before + total
        self.means[at] += part[..., None] * step
        between = np.sqrt(before[last] * part[last])[..., None] * step[last]
        within = f - mean[last][:, batch.owner]
        left = self._fade_by(groups.tolist(), within, begins=(before[last] == 0), first=batch.first, mixing=mixing)
        deviations, has_all = np.concatenate([within, between], axis=1), len(labels) == self.n.shape[1]
        for i, group in enumerate(groups.tolist()):
            dsyrk(1.0, deviations[i].T, left[i], self.scatters[group].T, overwrite_c=1)  # which reads rows as columns
            is_due = self.due[group] >= max(5.0, _RENEWED * self.weights[group])
            if is_due:
                n = max(float(self.weights[group]), 1.0)
                covariance = shrunk(self.scatters[group], n, np.float32)
                self.factors[group] = spotrf(covariance.T, lower=0, overwrite_a=1)[0].T  # LAPACK reads rows as columns
                self.due[group] = 0.0
            own = slots[last[i - 1] + 1 if i else 0 : last[i] + 1]
            to: Any = slice(own[0], own[-1] + 1) if is_due or has_all else (own[:, None], labels)
            means = self.means[to]
            solved = spotrs(self.factors[group].T, means.reshape(-1, means.shape[2]).T, lower=0)[0].T
            self.slopes[to] = solved.reshape(means.shape)
            self.offsets[to] = -0.5 * np.einsum("scd,scd->sc", means, self.slopes[to])

    def _learning(self, *, recent: bool, rule: int | None) -> tuple[Labels, Labels, Labels]:
        """Returns groups (G,), their slots (S,), and where among these the slowest of each group is, (G,).

        That one tells the scatter.
        """
        n, has_rule = self.n_recent if recent else 0, rule is not None
        slots, groups = np.arange(n + has_rule), np.arange(1 - recent, 1 + has_rule)
        if rule is not None:
            slots[-1], groups[-1] = self.n_recent + rule, 1 + rule
        return groups, slots, np.arange(n - 1 if recent else 0, n + has_rule)

    def _fade_by(
        self, groups: list[int], within: Floats, begins: NDArray[np.bool_], first: Labels, mixing: float
    ) -> list[float]:
        """Counts a batch in the weights of G groups; returns what their scatters keep.

        Deviations `within` (G, B, d) of a long batch fade from its end to its beginning. Where a label `begins` (G, U),
        its first sample, at `first` (U,) of the batch, tells nothing of the scatter.
        """
        n, left = within.shape[1], []
        for group, away, is_new in zip(groups, within, begins, strict=True):
            fade = self._fade[min(group, 1)] ** mixing
            left.append(fade**n)
            added = (1 - left[-1]) / (1 - fade) if fade < 1 else float(n)
            added -= float(np.add.reduce(fade ** (n - 1 - first[is_new])))
            self.weights[group] = left[-1] * self.weights[group] + added
            self.due[group] += n
            if n > 1 / (1 - self._fade[0]):
                away *= np.sqrt(fade ** np.arange(n)[::-1])[:, None]
        return left

    def add_rule(self, old: int) -> None:
        """Begins a rule where another stands, lightly, so that labels that stay away are kept."""
        slot, group = self.n_recent + old, 1 + old
        for name in _OF_SLOTS:
            setattr(self, name, np.append(getattr(self, name), getattr(self, name)[slot][None], axis=0))
        weight = float(self.weights[group])
        self.weights, self.due = np.append(self.weights, min(weight, _LIGHT_SCATTER)), np.append(self.due, np.inf)
        self.scatters.append(self.scatters[group] * (self.weights[-1] / max(weight, 1.0)))
        self.factors.append(self.factors[group])  # which is replaced, never changed
        self.n[-1] = np.minimum(self.n[-1], _LIGHT)

    def drop_rule(self, rule: int) -> None:
        """Gives up a rule."""
        for name in _OF_SLOTS:
            setattr(self, name, np.delete(getattr(self, name), self.n_recent + rule, axis=0))
        self.weights, self.due = np.delete(self.weights, 1 + rule), np.delete(self.due, 1 + rule)
        del self.scatters[1 + rule], self.factors[1 + rule]

    def relabel(self, places: Labels) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        self.admit(len(places))
        order = np.argsort(places)
        for name in _OF_SLOTS:
            setattr(self, name, getattr(self, name)[:, order])


def shrunk(scatter: Floats, n: float, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Returns the covariance (d, d) of a scatter of n samples, shrunk towards a ball, the less the more they are."""
    d = len(scatter)
    shrinkage, size = _LEAST_SHRUNK + _SHRUNK * d / (d + n), max(float(np.trace(scatter)) / (d * n), 1e-3)
    covariance: NDArray[Any] = np.multiply(scatter, (1 - shrinkage) / n, dtype=dtype, casting="same_kind")
    covariance.flat[:: d + 1] += shrinkage * size + 1e-6
    return covariance
