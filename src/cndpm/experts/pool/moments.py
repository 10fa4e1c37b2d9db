r"""One statistic for models that forget and for rules that do not: means by label, and the scatter around them.

A *slot* is a model with means of its own. A recent slot keeps a part of what it knows of a label whenever a sample of
that label comes, and forgets nothing while others come; a rule forgets nothing at all. A *group* is slots with one
scatter S: either all recent slots, or each its own, and every rule its own. With the shrunk inverse W of S / n,

.. math::
    \log p(x \mid y) = f^\top W m_y - \tfrac12 m_y^\top W m_y + \text{a constant of } x
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, integers, tensor

__all__ = ["ByLabel", "Moments"]

Labels = np.ndarray[tuple[int], np.dtype[np.int64]]

_RENEWED = 0.05
"""Part of its samples after which a group's inverse is made anew; means are always up to date."""

_UNSEEN = 4.0
"""Nats below the least likely label that a model knows at which it puts those it has not met."""

_LIGHT, _LIGHT_SCATTER = 3.0, 200.0
"""Samples that a new rule takes over from the one before it: of every label, and of the scatter."""

_ROOM = 50
"""Deviations that wait to be added to a scatter together, which nobody asks for before its inverse is made anew."""


_OF_SLOTS = ("n", "means", "slopes", "offsets")
_OF_GROUPS = ("scatters", "inverses", "weights", "due", "waiting", "waiting_fade", "n_waiting")
"""What there is of every slot, and of every group."""


class ByLabel(NamedTuple):
    """Holds B labels, U of them different, as every model needs them.

    Example:
        >>> batch = ByLabel.of(np.array([7, 3, 7]))
        >>> batch.labels.tolist(), batch.n_later.tolist()
        ([3, 7], [[0, 0, 0], [1, 0, 0]])
    """

    labels: Labels
    is_own: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    n_later: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    owner: Labels
    first: Labels

    @classmethod
    def of(cls, y: Labels) -> ByLabel:
        """Finds the labels of y (B,), where each is, how many of its own follow each sample, and which is its first."""
        labels, owner = np.unique(y, return_inverse=True)
        is_own = owner == np.arange(len(labels))[:, None]
        n_later = np.where(is_own, is_own[:, ::-1].cumsum(axis=1)[:, ::-1] - 1, 0)
        return cls(labels, is_own, n_later, owner, is_own.argmax(axis=1))


class Moments(Keeps):
    """Counts, means and scatters of one representation. S slots, G groups, C labels, d features.

    Args:
        d: Features.
        keeps: What recent slots keep of a label's samples when another one comes.
        fades: What recent groups keep of their scatter: one for all slots, or one for each.
        n_labels: C so far.

    Attributes:
        n: Samples of every label, faded, (S, C).

    Example:
        >>> moments = Moments(1, keeps=(0.9,), fades=(0.99,), n_labels=2)
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
        "inverses": tensor("groups", "d", "d"),
        "weights": tensor("groups"),
        "due": tensor("groups", finite=False),
        "waiting": tensor("groups", _ROOM, "d"),
        "waiting_fade": tensor("groups"),
        "n_waiting": integers("groups", low=0, below=_ROOM + 1),
    }

    def __init__(self, d: int, keeps: Sequence[float], fades: Sequence[float], n_labels: int) -> None:
        self.n_recent, self._n_recent_groups = len(keeps), len(fades)
        self._keep, self._fade = np.array([*keeps, 1.0]), np.array([*fades, 1.0])
        n_slots, n_groups = len(keeps) + 1, len(fades) + 1
        self.n, self.offsets = np.zeros((n_slots, n_labels)), np.zeros((n_slots, n_labels))
        self.means, self.slopes = np.zeros((n_slots, n_labels, d)), np.zeros((n_slots, n_labels, d))
        self.scatters, self.weights = np.zeros((n_groups, d, d)), np.zeros(n_groups)
        self.inverses, self.due = np.stack([np.eye(d)] * n_groups), np.full(n_groups, np.inf)
        self.waiting, self.waiting_fade = np.zeros((n_groups, _ROOM, d)), np.ones(n_groups)
        self.n_waiting = np.zeros(n_groups, np.int64)
        slots = [range(len(keeps))] if len(fades) == 1 else [range(i, i + 1) for i in range(len(keeps))]
        self._recent = list(enumerate(slots))

    @property
    def n_rules(self) -> int:
        """Rules so far."""
        return len(self.weights) - self._n_recent_groups

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all slots and groups."""
        return sum(getattr(self, name).size for name in self.kept)

    def inverse_of_rule(self, rule: int) -> Floats:
        """Returns W of a rule, (d, d)."""
        inverse: Floats = self.inverses[self._n_recent_groups + rule]
        return inverse

    def admit(self, n_labels: int) -> None:
        """Makes room for labels below `n_labels`."""
        more = n_labels - self.n.shape[1]
        for name in _OF_SLOTS if more > 0 else ():
            values = getattr(self, name)
            setattr(self, name, np.pad(values, [(0, 0), (0, more)] + [(0, 0)] * (values.ndim - 2)))

    def log_likelihood(self, f: Floats) -> Floats:
        """Returns log p(x | y) up to a constant of x by every slot, (S, B, C).

        Args:
            f: Features, (B, d).
        """
        n_slots, n_labels, d = self.slopes.shape
        flat = f @ self.slopes.reshape(-1, d).T
        likely: Floats = (flat.reshape(len(f), n_slots, n_labels) + self.offsets).transpose(1, 0, 2)
        if self.n.all():
            return likely
        is_known = (self.n > 0)[:, None]
        least = np.where(is_known, likely, np.inf).min(axis=2, keepdims=True)
        return np.where(is_known, likely, np.where(np.isfinite(least), least - _UNSEEN, 0.0))

    def leave_one_out(self, f: Floats, y: Labels, rule: int) -> Floats:
        """Returns log p(x | y) of rows that were learned, each left out of the mean of its own label.

        Without one of n samples the squared distance to their mean grows by the factor (n / (n - 1))^2.

        Args:
            f: Features, (B, d).
            y: Their labels, (B,).
            rule: The one beside the recent slots.

        Returns:
            Of the recent slots and the rule, (R + 1, B, C).
        """
        likely, own = self.log_likelihood(f), (np.arange(len(y)), y)
        told = []
        for group, slots in [*self._recent, self._of_rule(rule)]:
            lengths = ((f @ self.inverses[group]) * f).sum(axis=1)
            for slot in slots:
                n = np.maximum(self.n[slot][y], 1.5)
                one = likely[slot].copy()
                one[own] -= 0.5 * np.maximum(lengths - 2 * one[own], 0) * ((n / (n - 1)) ** 2 - 1)
                told.append(one)
        return np.stack(told)

    def learn(self, f: Floats, batch: ByLabel, *, recent: bool = True, rule: int | None = None) -> None:
        """Learns a batch, in its order.

        Args:
            f: Features, (B, d).
            batch: Its labels.
            recent: Whether the recent slots learn it.
            rule: The rule that learns it.
        """
        learning, slots = (self._recent, np.arange(self.n_recent)) if recent else ([], np.zeros(0, np.int64))
        if rule is not None:
            learning, slots = [*learning, self._of_rule(rule)], np.append(slots, self.n_recent + rule)
        labels, is_own = batch.labels, batch.is_own
        keep = self._keep[np.minimum(slots, self.n_recent)]
        shares = np.where(is_own, keep[:, None, None] ** batch.n_later, 0.0)  # (slots, U, B)
        at, total = np.ix_(slots, labels), shares.sum(axis=2)
        before = self.n[at] * keep[:, None] ** is_own.sum(axis=1)
        mean = (shares @ f) / total[..., None]
        step, part = mean - self.means[at], total / (before + total)
        self.n[at] = before + total
        self.means[at] += part[..., None] * step
        last = -1
        for group, own in learning:
            last += len(own)  # the slowest slot of a group tells its scatter
            between = np.sqrt(before[last] * part[last])[:, None] * step[last]
            self._deviate(group, f - mean[last][batch.owner], between, begins=batch.first[before[last] == 0])
            is_due = self.due[group] >= max(5.0, _RENEWED * self.weights[group])
            if is_due:
                self._renew(group)
            to: Any = slice(own.start, own.stop) if is_due else np.ix_(np.array(own), labels)
            means = self.means[to]
            self.slopes[to] = slopes = means @ self.inverses[group]
            self.offsets[to] = -0.5 * np.einsum("scd,scd->sc", means, slopes)

    def _deviate(self, group: int, within: Floats, between: Floats, begins: Labels) -> None:
        """Takes deviations from the batch's means (B, d), and of these from the means before (U, d), for a scatter.

        A label's first sample tells nothing of it; those are at `begins` of the batch.
        """
        fade, n = float(self._fade[min(group, self._n_recent_groups)]), len(within)
        left, deviations = fade**n, np.concatenate([within, between])
        if fade < 1 and n > 1 / (1 - fade):  # a batch so long that its beginning has faded by its end
            deviations[:n] *= fade ** (0.5 * np.arange(n)[::-1, None])
        added = n if fade == 1 else (1 - left) / (1 - fade)
        self.weights[group] = left * self.weights[group] + added - float((fade ** (n - 1 - begins)).sum())
        self.due[group] += n
        held, m = int(self.n_waiting[group]), len(deviations)
        if fade < 1:
            self.waiting[group, :held] *= left**0.5
            self.waiting_fade[group] *= left
        if held + m > _ROOM:
            self._scatter(group)
            held = 0
        if m > _ROOM:
            self.scatters[group] += deviations.T @ deviations
            return
        self.waiting[group, held : held + m] = deviations
        self.n_waiting[group] = held + m

    def _scatter(self, group: int) -> None:
        """Adds the deviations that wait to the scatter."""
        waiting = self.waiting[group, : self.n_waiting[group]]
        self.scatters[group] *= self.waiting_fade[group]
        self.scatters[group] += waiting.T @ waiting
        self.n_waiting[group], self.waiting_fade[group] = 0, 1.0

    def _renew(self, group: int) -> None:
        """Makes the inverse of a scatter that is shrunk towards a ball, the less the more samples there are."""
        self._scatter(group)
        d, n = self.means.shape[2], max(float(self.weights[group]), 1.0)
        covariance = self.scatters[group] / n
        shrinkage, size = 0.01 + 0.3 * d / (d + n), max(float(np.trace(covariance)) / d, 1e-3)
        covariance *= 1 - shrinkage
        covariance.flat[:: d + 1] += shrinkage * size + 1e-6
        lower, _ = dpotri(dpotrf(covariance, lower=1, overwrite_a=1)[0], lower=1, overwrite_c=1)
        diagonal = lower.diagonal().copy()
        self.inverses[group] = lower + lower.T  # what is above the diagonal is 0
        self.inverses[group].flat[:: d + 1] = diagonal
        self.due[group] = 0.0

    def add_rule(self, old: int) -> None:
        """Begins a rule where another stands, lightly, so that labels that stay away are kept."""
        slot, group = self.n_recent + old, self._n_recent_groups + old
        self._scatter(group)
        for name in _OF_SLOTS:
            setattr(self, name, np.append(getattr(self, name), getattr(self, name)[slot][None], axis=0))
        for name in _OF_GROUPS:
            setattr(self, name, np.append(getattr(self, name), getattr(self, name)[group][None], axis=0))
        weight = float(self.weights[group])
        self.weights[-1] = min(weight, _LIGHT_SCATTER)
        self.scatters[-1] *= self.weights[-1] / max(weight, 1.0)
        self.n[-1], self.due[-1] = np.minimum(self.n[-1], _LIGHT), np.inf

    def drop_rule(self, rule: int) -> None:
        """Gives up a rule."""
        for name in _OF_SLOTS:
            setattr(self, name, np.delete(getattr(self, name), self.n_recent + rule, axis=0))
        for name in _OF_GROUPS:
            setattr(self, name, np.delete(getattr(self, name), self._n_recent_groups + rule, axis=0))

    def relabel(self, places: Labels) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        self.admit(len(places))
        order = np.argsort(places)
        for name in _OF_SLOTS:
            setattr(self, name, getattr(self, name)[:, order])

    def _of_rule(self, rule: int) -> tuple[int, range]:
        """Returns a rule's group and its slot."""
        return self._n_recent_groups + rule, range(self.n_recent + rule, self.n_recent + rule + 1)
