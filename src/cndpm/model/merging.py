"""Merging of learners that learned different streams with the same representation.

Gaussian experts are sums, so the merged learner has the statistics of one that was given both streams, to rounding.
Experts that stand for the same concept become one (:mod:`cndpm.mixture.redundancy`); memories are joined and slept on
when more is learned; levels of novelty are measured on the records of all. In which order learners are merged, all at
once or some first, makes no difference to these beyond rounding, but for the numbering of the experts.

Where pools answer (:mod:`cndpm.model.places`), the first learner's goes on with the rows that the others keep, as if
these had come later: answers are those of one model that learned so. Rows kept to say how new others are (`watch`) stay
the first learner's.

Networks are not sums: those of all learners are put side by side, for `prune` to find the ones that are redundant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cndpm.mixture.redundancy import same_concepts
from cndpm.model.cndpm import CNDPM
from cndpm.threads import one_thread


def blank(learner: CNDPM) -> CNDPM:
    """Returns a learner with the same settings and parts that has learned nothing."""
    parts: dict[str, Any] = {**learner.parts, "feature_map": deepcopy(learner.parts["feature_map"])}
    facts: dict[str, Any] = {"n_classes": learner.n_classes, "seed": learner.seed, "device": learner.device}
    facts["n_exemplars"] = learner.n_exemplars
    return CNDPM(learner.settings, input_shape=learner.input_shape, **facts, **parts)


def relabel(learner: CNDPM, mapping: Sequence[int], n_classes: int) -> None:
    """Gives class c of the classes known the index mapping[c], all different, of `n_classes` from now on."""
    _finish_interrupted(learner)
    learner.bank.relabel(mapping, n_classes)
    learner.novelty.relabel(mapping)
    learner.memory.relabel(mapping)
    learner.meet(n_classes)
    if learner.places is not None:
        others = [c for c in range(n_classes) if c not in set(mapping)]
        learner.places.relabel(np.array([*mapping, *others]))


def with_same_representation(learner: CNDPM) -> CNDPM:
    """Returns a learner that has learned nothing but represents samples as another one, which has experts, does.

    What the first memory fixes, such as fitted features, is taken over; so both can be merged whatever they learn.
    """
    if not learner.n_experts:
        raise ValueError(
            "this model has no expert yet, so its representation is not fixed; learn more, or call consolidate()"
        )
    new = blank(learner)
    new.bank.adopt(learner.bank.representation())
    return new


class Joint:
    """Takes in learners one after another; those are used up, so that two at a time need be in memory.

    `learner` is all of them side by side, and one that has learned what all have after :meth:`united`.
    """

    def __init__(self, learner: CNDPM) -> None:
        _finish_interrupted(learner)
        self.learner = learner
        self._sources = [0] * learner.n_experts
        self._n_added = 0

    @one_thread()
    def add(self, other: CNDPM) -> None:
        """Puts the experts, notes and memory of another learner, which is changed, beside those there are.

        ValueError: they cannot be merged; the message says why and what to do.
        """
        _check_alike(self.learner, other)
        _finish_interrupted(other)
        self._n_added += 1
        self._sources += [self._n_added] * other.n_experts
        if other.n_experts and not self.learner.n_experts:  # the one that takes the other in has a representation
            self.learner, other = other, self.learner
        _extend(self.learner, other)

    @one_thread()
    def united(self) -> CNDPM:
        """Makes one expert of those that stand for the same concept; returns the learner."""
        merged, sources = self.learner, self._sources
        if self._n_added:
            _follow_the_bank(merged)
        if len(set(sources)) > 1:
            _unite(merged, same_concepts(merged.novelty.explained(merged.bank, sources), sources))
        return merged


def _finish_interrupted(learner: CNDPM) -> None:
    """Finishes a sleep under way, and what waits for it or for each other; a memory merely full goes on waiting.

    Merged memories may be more than full. To sleep on one here would make it matter which models are merged first.
    """
    if learner.bank.train(0) < 1 or learner._waiting is not None:
        learner.settle()
    learner._learn(learner.arrivals.release())


def _check_alike(first: CNDPM, other: CNDPM) -> None:
    """Raises ValueError where two learners cannot be merged."""
    if other.settings != first.settings or other.input_shape != first.input_shape:
        raise ValueError("models that are merged must have the same settings and the same shape of samples")
    both = (first, other)
    if all(each.n_experts for each in both) and not _is_same(*(each.bank.representation() for each in both)):
        raise ValueError(
            "these models represent samples differently, because each fixed its features on its own first memory; "
            "begin all but the first with model.with_same_representation()"
        )


def _is_same(a: Any, b: Any) -> bool:
    """Compares representations; the origin that sums are taken from may differ, as it can be moved."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.shape == b.shape and torch.equal(a.cpu(), b.cpu())
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return all(_is_same(a[name], b.get(name)) for name in a if name not in ("template", "n_classes", "placeholder"))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b))
    return bool(a == b)


def _extend(merged: CNDPM, other: CNDPM) -> None:
    """Puts experts, notes and memories side by side."""
    n_classes = max(merged.n_known_classes, other.n_known_classes)
    for learner in (merged, other):
        learner.meet(n_classes)
    if other.n_experts:
        merged.bank.extend(other.bank)
        merged.novelty.extend(other.novelty)
    if len(other.memory):
        merged.memory.extend(other.memory.batch())
    merged.events.extend(other.events)
    if merged.places is not None and other.places is not None:
        merged.places.extend(other.places)


def _unite(merged: CNDPM, groups: Sequence[Sequence[int]]) -> None:
    """Makes one expert of every group."""
    counts = merged.counts
    gains = torch.zeros_like(counts)
    for group in groups:
        gains[list(group)] = counts[list(group)].sum().log() - counts[list(group)].log()
    merged.bank.unite(groups)
    merged.novelty.unite(groups, gains)
    _follow_the_bank(merged)
    merged.events.unite(groups)


def _follow_the_bank(merged: CNDPM) -> None:
    """Moves the levels of novelty with the evidence, where what experts share was renewed."""
    if (drift := merged.bank.margin_drift()) is not None:
        merged.novelty.follow(drift)
