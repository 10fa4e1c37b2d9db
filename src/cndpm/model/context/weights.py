"""Weights of models by evidence: which representations, rates, temperatures and rules predict best now.

Three kinds of weights, all by log loss on samples before they are learned:

- discounted losses choose representations, rates and temperatures, for recent models together and for all rules;
- a sticky filter chooses between the recent models and the rules, so that a rule which returns is back within a few
  samples; its stickiness is learned;
- a log-linear pool of all members is put beside the filter, where targets are classes, as far as it predicts better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.pool import Family
from cndpm.experts.pool.family import FLOOR
from cndpm.mixture.relabelling import count_labels, relabel
from cndpm.mixture.stacking import newton_step, stack
from cndpm.mixture.time import Floats, advance_filter, discount, log_normalise
from cndpm.state import State, expect, tensor

__all__ = ["Answer", "Weights"]

SWITCH = np.array([0.001, 0.01, 0.1])
"""Probabilities of a change before a sample, among which evidence chooses."""

_KEEP = {"recent": 0.98, "rules": 0.995, "switch": 0.998, "stack": 0.99, "labels": 0.95}
"""Part left of evidence after one sample: of the choice among recent models, among rules' representations, among
stickinesses, of the stack's curvature, and of which label is which."""

_RIDGE = 20.0

_SURE = 20.0
"""Nats by which a rule that has one range for itself is put before the pool of all members."""

Targets = NDArray[Any]


@dataclass(frozen=True)
class Answer:
    """Answers for B samples, and the parts they are made of.

    Attributes:
        raw: What the members of every representation said, (members, B, ...) each.
        recent: By recent models, then the experts, then the rule in force with other labels, (M, T, B, ...).
        linear: The same in the form in which a mixture is a weighted sum.
        in_force: By the rule in force over every representation, (R, T, B, ...).
        hypotheses: By the recent models together and by every rule, (1 + K, B, ...).
        filtered: The sticky filter's, (B, ...).
        members: Of the stack, (M + R, B, C); empty where there is none.
        stacked: The stack's, (B, C), or the filter's again.
        mixed: The final answer, (B, ...).

    Example:
        >>> from cndpm.experts.pool import ClassFamily
        >>> weights = Weights(ClassFamily(), n_recent=2, n_representations=1)
        >>> said = torch.tensor([[[0.0, 2.0]], [[2.0, 0.0]], [[2.0, 0.0]]]).double()  # two recent models and a rule
        >>> weights.answer([said], [2], np.zeros((1, 2)), in_force=0).recent.shape
        (4, 4, 1, 2)
    """

    raw: Sequence[Tensor]
    recent: Floats
    linear: Floats
    in_force: Floats
    hypotheses: Floats
    filtered: Floats
    members: Floats
    stacked: Floats
    mixed: Floats


class _Shares(NamedTuple):
    """Shares that follow from the evidence, and are the same for all answers until more of it comes.

    Attributes:
        recent: Of recent models at every temperature in their mixture, (M, T).
        rules: Of representations at every temperature in a rule's, (R, T).
        hypotheses: Of the recent models together and of every rule, (1 + K,).
        own: Of every temperature in the answer of a member of the stack, (M + R, T).
        stack: Of the filter and of the stack, (2,).
    """

    recent: Floats
    rules: Floats
    hypotheses: Floats
    own: Floats
    stack: Floats


class Weights:
    """Weighs M recent models, and K rules over R representations.

    Args:
        family: What is predicted.
        n_recent: M, without the experts and without the rule in force with other labels.
        n_representations: R.

    Attributes:
        n_recent: M, with them where they are heard.

    Example:
        >>> from cndpm.experts.pool import ClassFamily
        >>> Weights(ClassFamily(), n_recent=2, n_representations=1).of_hypotheses  # recent models, and the first rule
        array([0.5, 0.5])
    """

    def __init__(self, family: Family, *, n_recent: int, n_representations: int) -> None:
        self._family = family
        self.n_recent = n_recent + family.hears_experts + family.relabels
        n_members = self.n_recent + n_representations
        self._of_recent = np.zeros((self.n_recent, family.n_temperatures))
        self._of_rules = np.zeros((n_representations, family.n_temperatures))
        self._of_switch, self._of_stack = np.zeros(len(SWITCH)), np.zeros(2)
        self._filters = np.full((len(SWITCH), 2), np.log(0.5))
        self._exponents = np.full(n_members, 1 / n_members)
        self._curvature = np.eye(n_members) * _RIDGE
        self._relabels = np.zeros((0, 0))
        self._known_shares: _Shares | None = None

    def _shares(self) -> _Shares:
        """Returns the shares, which are computed once after every change."""
        if self._known_shares is None:
            own = np.exp(log_normalise(np.concatenate([self._of_recent, self._of_rules])))
            of_recent, of_rules, of_stack = map(_posterior, (self._of_recent, self._of_rules, self._of_stack))
            self._known_shares = _Shares(of_recent, of_rules, self.of_hypotheses, own, of_stack)
        return self._known_shares

    @property
    def of_hypotheses(self) -> Floats:
        """The filter's probability of the recent models and of every rule, (1 + K,)."""
        probability: Floats = _posterior(self._of_switch) @ np.exp(self._filters)
        return probability

    @property
    def of_members(self) -> Floats:
        """The part of every recent model in their mixture, (M,)."""
        shares: Floats = self._shares().recent.sum(axis=1)
        return shares

    def relabelling(self, challengers: NDArray[np.bool_]) -> list[int] | None:
        """Returns the label that each of the rule in force has become; None unless challengers predict worse than that.

        Args:
            challengers: Which of the recent models would become a rule, (M,).
        """
        evidence = np.append(self._of_recent[challengers], self._of_recent[-1:], axis=0)
        if not len(self._relabels) or _posterior(evidence)[-1].sum() < 0.5:  # none were counted since a rule returned
            return None
        labels = self._relabels.argmax(axis=1).tolist()
        return labels if sorted(labels) == list(range(len(labels))) else None

    def forget_labels(self) -> None:
        """Takes the labels of the rule in force, which is another one now, for those that it was learned with."""
        self._relabels = np.zeros((0, 0))

    def add_rule(self) -> None:
        """Makes room for a rule, which is given half of what the recent models have."""
        self._filters = np.append(self._filters, self._filters[:, :1] - np.log(2), axis=1)
        self._filters[:, 0] -= np.log(2)
        self._known_shares = None

    @property
    def of_representations(self) -> Floats:
        """Evidence for every representation of rules at every temperature, (R, T)."""
        return self._of_rules

    def settle_on(self, rule: int, of_representations: Floats) -> None:
        """Has one rule answer, until others have predicted better.

        Args:
            rule: Its index.
            of_representations: Evidence for representations and temperatures, (R, T).
        """
        self._of_rules = of_representations.copy()
        self._filters = np.full_like(self._filters, np.log(1e-9))
        self._filters[:, 1 + rule] = 0
        self._of_stack = np.array([0.0, -_SURE])
        self._known_shares = None

    def inherit(self, other: Weights) -> None:
        """Takes over what was learned about representations, rates and stickiness, but no rule."""
        for name in set(_ARRAYS) - {"filters", "relabels"}:
            setattr(self, f"_{name}", getattr(other, f"_{name}").copy())
        self._known_shares = None

    def answer(self, raw: Sequence[Tensor], n_recent: Sequence[int], experts: Floats, *, in_force: int) -> Answer:
        """Answers for now.

        Args:
            raw: What the members of every representation say of B samples, first recent models and then rules.
            n_recent: How many of each are recent models.
            experts: What the mixture of experts answers, (B, ...).
            in_force: Index of the rule in force.
        """
        family, shares, said = self._family, self._shares(), [part.numpy() for part in raw]
        heard = [experts[None]] if family.hears_experts else []
        recent = [part[:n] for part, n in zip(said, n_recent, strict=True)]
        rules = [part[n:] for part, n in zip(said, n_recent, strict=True)]
        answers = family.tempered(np.concatenate([*recent, *heard, *rules]))
        linear, n = family.linear(answers), self.n_recent - family.relabels
        of_rules = linear[n:].reshape(len(said), -1, *linear.shape[1:])  # (R, K, T, B, ...)
        by_rules = _mixed(shares.rules, of_rules.swapaxes(1, 2))
        of_recent, linear_recent, rows = answers[:n], linear[:n], slice(n + in_force, None, of_rules.shape[1])
        if family.relabels:
            now = family.tempered(family.from_linear(relabel(by_rules[in_force], self._relabels))[None])
            of_recent = np.concatenate([of_recent, now])
            linear_recent = np.concatenate([linear_recent, family.linear(now)])
        hypotheses = np.concatenate([_mixed(shares.recent, linear_recent)[None], by_rules])
        filtered = family.from_linear(_mixed(shares.hypotheses, hypotheses))
        parts = (raw, of_recent, linear_recent, answers[rows], family.from_linear(hypotheses), filtered)
        if not family.stacks:
            return Answer(*parts, members=filtered[:0], stacked=filtered, mixed=filtered)
        of_members = np.concatenate([linear_recent, linear[rows]])
        members = np.log(np.add.reduce(shares.own[:, :, None, None] * of_members, axis=1) + 1e-4)
        stacked = stack(members, self._exponents)
        both = family.linear(np.array([filtered, stacked]))
        mixed = family.from_linear(_mixed(shares.stack, both))
        return Answer(*parts, members=members, stacked=stacked, mixed=mixed)

    def weigh(self, y: Targets, answer: Answer, challengers: NDArray[np.bool_], *, in_force: int) -> Floats:
        """Adds the evidence of a batch; returns what the challengers gain over every rule, (K, B).

        Args:
            y: Class indices (B,) or targets (B, o).
            answer: To this very batch, as things were.
            challengers: Which of the recent models would become a rule, (M,).
            in_force: Index of the rule in force.
        """
        score = self._family.log_scores
        recent = _floored(score(answer.recent, y), axes=(0, 1))
        of_rule = _floored(score(answer.in_force, y), axes=(0, 1))
        hypotheses = _floored(score(answer.hypotheses, y), axes=(0,))
        gains = self._gains(y, answer, hypotheses[1:], challengers)
        self._of_recent = discount(self._of_recent, recent.transpose(2, 0, 1), _KEEP["recent"])
        self._of_rules = discount(self._of_rules, of_rule.transpose(2, 0, 1), _KEEP["rules"])
        self._filters, evidence = advance_filter(self._filters, hypotheses.T, SWITCH)
        self._of_switch = _KEEP["switch"] ** len(y) * self._of_switch + evidence
        if self._family.relabels:
            said = self._family.linear(answer.hypotheses[1 + in_force])
            self._relabels = count_labels(self._relabels, said, y, keep=_KEEP["labels"])
        if self._family.stacks:
            both = _floored(score(np.stack([answer.filtered, answer.stacked]), y), axes=(0,))
            self._of_stack = discount(self._of_stack, both.T, _KEEP["recent"])
            self._exponents, self._curvature = newton_step(
                self._exponents, self._curvature, answer.members, y, keep=_KEEP["stack"], ridge=_RIDGE
            )
        self._known_shares = None
        return gains

    def _gains(self, y: Targets, answer: Answer, of_rules: Floats, challengers: NDArray[np.bool_]) -> Floats:
        """Returns by how much the challengers together predict better than every rule, (K, B)."""
        together = _mixed(_posterior(self._of_recent[challengers]), answer.linear[challengers])
        scores = self._family.log_scores(self._family.from_linear(together), y)
        best = np.maximum(scores, of_rules)
        gains: Floats = np.maximum(scores, best - FLOOR) - np.maximum(of_rules, best - FLOOR)
        return gains

    def state_dict(self) -> State:
        """Returns all evidence."""
        return {name: torch.from_numpy(getattr(self, f"_{name}").copy()) for name in _ARRAYS}

    def load_state_dict(self, state: State, *, n_rules: int) -> None:
        """Restores it to the bit.

        Args:
            state: As :meth:`state_dict` returns it.
            n_rules: K.
        """
        forms = {name: tensor(*getattr(self, f"_{name}").shape) for name in _ARRAYS}
        expect(state, forms | {"filters": tensor(len(SWITCH), 1 + n_rules), "relabels": tensor("c", "c")})
        for name in _ARRAYS:
            setattr(self, f"_{name}", state[name].cpu().numpy().copy())
        self._known_shares = None


_ARRAYS = ("of_recent", "of_rules", "of_switch", "of_stack", "filters", "exponents", "curvature", "relabels")


def _posterior(evidence: Floats) -> Floats:
    """Returns weights that sum to 1, of evidence of any shape."""
    weights: Floats = np.exp(evidence - np.maximum.reduce(evidence, axis=None))
    weights /= np.add.reduce(weights, axis=None)
    return weights


def _mixed(weights: Floats, linear: Floats) -> Floats:
    """Returns the weighted sum over the leading axes, those of the weights."""
    shape = linear.shape[weights.ndim :]
    mixed: Floats = np.add.reduce(weights.reshape(-1, 1) * linear.reshape(weights.size, -1), axis=0)
    return mixed.reshape(shape)


def _floored(scores: Floats, axes: tuple[int, ...]) -> Floats:
    """Cuts scores off FLOOR nats below the best of a sample."""
    best = scores.max(axis=axes, keepdims=True)
    floored: Floats = np.maximum(scores, best - FLOOR)
    return floored
