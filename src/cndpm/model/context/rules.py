"""Rules that take turns: models of the latest samples compete with models of rules that were met before.

Over R representations of x there are *recent* models, which forget at several rates, and for every *rule* one that
forgets nothing. For classes the mixture of experts counts as a recent model too. Three kinds of weights choose among
them, all by log loss on samples before they are learned:

- discounted losses choose representations, horizons and temperatures, for recent models together and for all rules;
- a sticky filter chooses between the recent models and the rules, so that a rule which returns is back within a few
  samples; its stickiness is learned;
- a log-linear pool of all members is put beside the filter, where targets are classes, as far as it predicts better.

The fast ones of the recent models challenge the rule in force. While they lead by little the rule waits; once they lead
by `evidence` nats the samples since they began to lead found a rule, or renew one that never served long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.experts.pool import Family
from cndpm.experts.pool.family import FLOOR
from cndpm.mixture.stacking import newton_step, stack
from cndpm.mixture.time import Challenge, Floats, advance_filter, challenge, discount, log_normalise
from cndpm.state import State

__all__ = ["Answer", "Rules"]

SWITCH = (0.001, 0.01, 0.1)
"""Probabilities of a change before a sample, among which evidence chooses."""

_KEEP = {"recent": 0.98, "rules": 0.995, "switch": 0.998, "stack": 0.99}
"""Part left of evidence after one sample: of the choice among recent models, among rules' representations, among
stickinesses, and of the stack's curvature."""

_FAST = 0.98
"""Models that keep no more of a sample after the next one may challenge a rule."""

_ALLOWANCE = 0.05
"""Nats a sample by which a challenger must lead: what calibration alone may give it."""

_WAIT = 2.0
"""Nats of lead at which the rule in force no longer learns: the samples may be another's."""

_RIDGE = 20.0

_N_EVENTS = 1000
"""Events that are kept, so that a stream without end does not fill the memory."""

Features = list[Floats]
Targets = NDArray[Any]
Recall = Callable[[int], tuple[Features, Targets]]
"""Returns features and targets of the latest n samples."""


@dataclass(frozen=True)
class Answer:
    """Answers for B samples, and the parts they are made of.

    Attributes:
        recent: By recent models, the experts last, (M, T, B, ...).
        rules: By rules, (K, R, T, B, ...).
        hypotheses: By "recent" and by every rule, (1 + K, B, ...).
        filtered: The sticky filter's, (B, ...).
        members: Of the stack, (M + R, B, C); empty where there is none.
        stacked: The stack's, (B, C), or the filter's again.
        mixed: The final answer, (B, ...).

    Example:
        >>> from cndpm.experts.pool import ClassFamily
        >>> sizes = {"sizes": [1], "width": 2, "evidence": 20.0, "n_rules": 8, "served": 300}
        >>> rules = Rules(ClassFamily(), [(0.98, 0.99)], **sizes)
        >>> rules.answer([np.zeros((5, 1))], np.zeros((5, 2))).recent.shape  # 3 models, 4 temperatures, 5 samples
        (3, 4, 5, 2)
    """

    recent: Floats
    rules: Floats
    hypotheses: Floats
    filtered: Floats
    members: Floats
    stacked: Floats
    mixed: Floats


class Rules:
    """Recent models and rules over R representations.

    Args:
        family: What is predicted.
        keeps: Rates of forgetting of recent models, for every representation.
        sizes: Features of every representation.
        width: Number of classes so far, or of targets.
        evidence: Nats by which recent models must lead to found a rule.
        n_rules: Rules kept at most.
        served: Samples that a rule must have learned not to be renewed in place.

    Attributes:
        in_force: The rule that learns.
        events: The latest 1,000 happenings: (sample, "founded" | "renewed" | "returned", rule).
        n_seen: Samples of the stream so far, for the events.

    Example:
        >>> from cndpm.experts.pool import ClassFamily
        >>> sizes = {"sizes": [1], "width": 2, "evidence": 20.0, "n_rules": 8, "served": 300}
        >>> rules = Rules(ClassFamily(), [(0.98, 0.99)], **sizes)
        >>> z, y = np.array([[-1.0], [1.0]] * 10), np.array([0, 1] * 10)
        >>> rules.begin([z], y)
        >>> rules.answer([z[:2]], np.zeros((2, 2))).mixed.argmax(axis=1)
        array([0, 1])
    """

    def __init__(
        self,
        family: Family,
        keeps: list[tuple[float, ...]],
        *,
        sizes: list[int],
        width: int,
        evidence: float,
        n_rules: int,
        served: int,
    ) -> None:
        self._family, self._keeps, self._sizes = family, keeps, sizes
        self._evidence, self._most, self._min_served = evidence, n_rules, served
        self._width = width
        self._recent: list[Any] = [family.make(d, width, own) for d, own in zip(sizes, keeps, strict=True)]
        of_experts = [False] if family.hears_experts else []
        self._is_fast = np.concatenate([*(np.array(own) <= _FAST for own in keeps), of_experts]).astype(bool)
        self._rules = [self._new_rule()]
        self._served, self.in_force, self._challenge = [0], 0, Challenge()
        n_members, n_temperatures = len(self._is_fast), family.n_temperatures
        self._of_recent = np.zeros((n_members, n_temperatures))
        self._of_rules = np.zeros((len(sizes), n_temperatures))
        self._of_switch = np.zeros(len(SWITCH))
        self._filters = np.full((len(SWITCH), 2), np.log(0.5))
        self._of_stack = np.zeros(2)
        self._exponents = np.full(n_members + len(sizes), 1 / (n_members + len(sizes)))
        self._curvature = np.eye(len(self._exponents)) * _RIDGE
        self.n_seen = 0
        self.events: list[tuple[int, str, int]] = []

    @property
    def n_rules(self) -> int:
        """K."""
        return len(self._rules)

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all models."""
        return sum(member.n_numbers_kept for member in self._members())

    def _members(self) -> list[Any]:
        return self._recent + [member for rule in self._rules for member in rule]

    @property
    def weights(self) -> Floats:
        """The filter's probability of "recent" and of every rule, (1 + K,)."""
        probability: Floats = np.exp(log_normalise(self._of_switch)) @ np.exp(self._filters)
        return probability

    def admit(self, n_classes: int) -> None:
        """Makes room for class indices below `n_classes`."""
        self._width = max(self._width, n_classes)
        for member in self._members():
            member.admit(n_classes)

    def answer(self, features: Features, experts: Floats) -> Answer:
        """Answers for now.

        Args:
            features: Of B samples, (B, d) for every representation.
            experts: What the mixture of experts answers, (B, ...).
        """
        family = self._family
        recent = np.concatenate([self._of(self._recent, features), family.of_another(experts)])
        rules = np.stack([self._of(rule, features) for rule in self._rules])
        within_rules = _weights(self._of_rules)
        hypotheses = np.stack(
            [family.mix(_weights(self._of_recent), _flat(recent))]
            + [family.mix(within_rules, _flat(of_rule)) for of_rule in rules]
        )
        filtered = family.mix(self.weights, hypotheses)
        if not family.stacks:
            return Answer(recent, rules, hypotheses, filtered, filtered[:0], filtered, filtered)
        members = np.concatenate(
            [_at_own_temperature(self._of_recent, recent), _at_own_temperature(self._of_rules, rules[self.in_force])]
        )
        stacked = stack(members, self._exponents)
        mixed = family.mix(_weights(self._of_stack), np.stack([filtered, stacked]))
        return Answer(recent, rules, hypotheses, filtered, members, stacked, mixed)

    def learn(self, features: Features, y: Targets, answer: Answer, recall: Recall) -> None:
        """Learns a batch that was answered before.

        Args:
            features: (B, d) for every representation.
            y: Class indices (B,) or targets (B, o).
            answer: To this very batch, as things were.
            recall: Returns the latest n samples, these included.
        """
        gains = self._weigh(y, answer)
        for member, z in zip(self._recent, features, strict=True):
            member.learn(z, y)
        self._return_if_due()
        self._challenge = challenge(self._challenge, gains[self.in_force] - _ALLOWANCE)
        if self._challenge.nats > self._evidence:
            self._found(recall)
        elif self._challenge.nats < _WAIT:
            self.teach(features, y)

    def teach(self, features: Features, y: Targets) -> None:
        """Has the rule in force learn samples.

        Args:
            features: (B, d) for every representation.
            y: Class indices (B,) or targets (B, o).
        """
        for member, z in zip(self._rules[self.in_force], features, strict=True):
            member.learn(z, y)
        self._served[self.in_force] += len(y)

    def begin(self, features: Features, y: Targets) -> None:
        """Learns samples that came before these rules were made.

        Args:
            features: (B, d) for every representation.
            y: Class indices (B,) or targets (B, o).
        """
        for member, z in zip(self._recent, features, strict=True):
            member.learn(z, y)
        self.teach(features, y)

    def inherit(self, other: Rules) -> None:
        """Takes over what was learned about representations, horizons and stickiness, but no rule."""
        self._of_recent, self._of_rules, self._of_switch = other._of_recent, other._of_rules, other._of_switch
        self._of_stack, self._exponents, self._curvature = other._of_stack, other._exponents, other._curvature
        self.events, self.n_seen = other.events, other.n_seen

    def _of(self, members: list[Any], features: Features) -> Floats:
        """Returns the answers of models over every representation, (M, T, B, ...)."""
        return np.concatenate([self._family.answers(m, z) for m, z in zip(members, features, strict=True)])

    def _weigh(self, y: Targets, answer: Answer) -> Floats:
        """Adds the evidence of a batch; returns what challengers gain over every rule, (K, B)."""
        score = self._family.log_scores
        recent = _floored(score(answer.recent, y), axes=(0, 1))
        in_force = _floored(score(answer.rules[self.in_force], y), axes=(0, 1))
        hypotheses = _floored(score(answer.hypotheses, y), axes=(0,))
        gains = self._gains(y, answer, hypotheses[1:])
        self._of_recent = discount(self._of_recent, np.moveaxis(recent, -1, 0), _KEEP["recent"])
        self._of_rules = discount(self._of_rules, np.moveaxis(in_force, -1, 0), _KEEP["rules"])
        self._filters, evidence = advance_filter(self._filters, hypotheses.T, np.array(SWITCH))
        self._of_switch = _KEEP["switch"] ** len(y) * self._of_switch + evidence
        if self._family.stacks:
            both = _floored(score(np.stack([answer.filtered, answer.stacked]), y), axes=(0,))
            self._of_stack = discount(self._of_stack, both.T, _KEEP["recent"])
            self._exponents, self._curvature = newton_step(
                self._exponents, self._curvature, answer.members, y, keep=_KEEP["stack"], ridge=_RIDGE
            )
        return gains

    def _gains(self, y: Targets, answer: Answer, of_rules: Floats) -> Floats:
        """Returns by how much the fast ones of the recent models predict better than every rule, (K, B)."""
        weights = _weights(self._of_recent[self._is_fast])
        challenger = self._family.log_scores(self._family.mix(weights, _flat(answer.recent[self._is_fast])), y)
        both = _floored(np.stack([np.broadcast_to(challenger, of_rules.shape), of_rules]), axes=(0,))
        gains: Floats = both[0] - both[1]
        return gains

    def _return_if_due(self) -> None:
        """Puts another rule in force once it is more probable than not."""
        weights = self.weights[1:]
        best = int(weights.argmax())
        if best != self.in_force and weights[best] > 0.5:
            self.in_force, self._challenge = best, Challenge()
            self._note("returned", best)

    def _found(self, recall: Recall) -> None:
        """Makes a rule of the samples since its challengers began to lead."""
        rule, n = self._new_rule(), max(20, self._challenge.since)
        self._challenge = Challenge()
        renewed = self._served[self.in_force] < self._min_served
        if not renewed and len(self._rules) < self._most:
            self._rules.append(rule)
            self._served.append(0)
            self._filters = np.append(self._filters, self._filters[:, :1] - np.log(2), axis=1)
            self._filters[:, 0] -= np.log(2)
            self.in_force = len(self._rules) - 1
        else:
            if not renewed:  # there is no room: the rule that served least makes way
                served = [n if k != self.in_force else np.inf for k, n in enumerate(self._served)]
                self.in_force = int(np.argmin(served))
            self._rules[self.in_force], self._served[self.in_force] = rule, 0
        self._note("renewed" if renewed else "founded", self.in_force)
        self.teach(*recall(n))

    def _note(self, kind: str, rule: int) -> None:
        self.events.append((self.n_seen, kind, rule))
        del self.events[:-_N_EVENTS]

    def _new_rule(self) -> list[Any]:
        return [self._family.make(d, self._width, (1.0,)) for d in self._sizes]

    def state_dict(self) -> State:
        """Returns everything."""
        return {
            "recent": [member.state_dict() for member in self._recent],
            "rules": [[member.state_dict() for member in rule] for rule in self._rules],
            "served": list(self._served),
            "in_force": self.in_force,
            "challenge": list(self._challenge),
            "n_seen": self.n_seen,
            "width": self._width,
            "events": [list(event) for event in self.events],
            **{name: torch.tensor(getattr(self, f"_{name}")) for name in _ARRAYS},
        }

    def load_state_dict(self, state: State) -> None:
        """Restores it to the bit."""
        self._width = state["width"]
        for member, saved in zip(self._recent, state["recent"], strict=True):
            member.load_state_dict(saved)
        self._rules = [self._new_rule() for _ in state["rules"]]
        for rule, of_rule in zip(self._rules, state["rules"], strict=True):
            for member, saved in zip(rule, of_rule, strict=True):
                member.load_state_dict(saved)
        self._served, self.in_force = list(state["served"]), state["in_force"]
        self._challenge, self.n_seen = Challenge(*state["challenge"]), state["n_seen"]
        self.events = [tuple(event) for event in state["events"]]
        for name in _ARRAYS:
            setattr(self, f"_{name}", state[name].cpu().numpy().copy())


_ARRAYS = ("of_recent", "of_rules", "of_switch", "of_stack", "filters", "exponents", "curvature")


def _weights(evidence: Floats) -> Floats:
    """Returns posterior weights, flat, of evidence of any shape."""
    weights: Floats = np.exp(log_normalise(evidence.ravel()))
    return weights


def _flat(answers: Floats) -> Floats:
    """Joins members and temperatures: (M, T, B, ...) to (M T, B, ...)."""
    return answers.reshape(-1, *answers.shape[2:])


def _at_own_temperature(evidence: Floats, answers: Floats) -> Floats:
    """Returns every member's log-probabilities at the temperatures that serve it, (M, B, C), bounded below."""
    weights = np.exp(log_normalise(evidence))[:, :, None, None]
    bounded: Floats = np.log((weights * np.exp(answers)).sum(axis=1) + 1e-4)
    return bounded


def _floored(scores: Floats, axes: tuple[int, ...]) -> Floats:
    """Cuts scores off FLOOR nats below the best of a sample."""
    best = scores.max(axis=axes, keepdims=True)
    floored: Floats = np.maximum(scores, best - FLOOR)
    return floored
