"""Rules that challenge, wait, return and make way, step by step against what the evidence says."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from cndpm.experts.pool import ClassFamily
from cndpm.mixture.time import Challenge, challenge
from cndpm.model.context.rules import Rules


def make(n_rules: int = 8, served: int = 300, evidence: float = 20.0) -> Rules:
    sizes = {"sizes": [1], "width": 2, "evidence": evidence, "n_rules": n_rules, "served": served}
    rules = Rules(ClassFamily(), [(0.95, 0.98, 0.995)], **sizes)
    rules.begin([torch.tensor([[-1.0], [1.0]] * 10).double()], torch.tensor([0, 1] * 10))
    return rules


class Stream:
    """Batches of ten of one feature, whose sign is the label or its reverse."""

    def __init__(self, rules: Rules) -> None:
        self.rules, self.recalled = rules, []
        self._generator = torch.Generator().manual_seed(0)
        self._z, self._y = torch.zeros(0, 1).double(), torch.zeros(0, dtype=torch.long)

    def draw(self, *, is_reversed: bool) -> tuple[torch.Tensor, torch.Tensor]:
        z = torch.randn(10, 1, generator=self._generator).double()
        y = (z[:, 0] > 0).long()
        return z, 1 - y if is_reversed else y

    def learn(self, z: torch.Tensor, y: torch.Tensor) -> None:
        self._z, self._y = torch.cat([self._z, z]), torch.cat([self._y, y])
        self.rules.learn([z], y, self.rules.answer([z], np.zeros((10, 2))), self._recall)

    def _recall(self, n: int):
        self.recalled.append(n)
        return [self._z[-n:]], self._y[-n:]


def foretold(rules: Rules, z: torch.Tensor, y: torch.Tensor) -> tuple[int, Challenge]:
    """The rule in force and the challenge after a batch, by the weights' evidence alone."""
    twin, in_force, state = deepcopy(rules._weights), rules.in_force, rules._challenge
    is_fast = np.zeros(twin.n_recent, dtype=bool)
    is_fast[:2] = True  # those that keep at most 0.98 of a sample
    gains = twin.weigh(y.numpy(), rules.answer([z], np.zeros((10, 2))), is_fast, in_force=in_force)
    best = int(twin.of_hypotheses[1:].argmax())
    if best != in_force and twin.of_hypotheses[1 + best] > 0.5:
        in_force, state = best, Challenge()
    return in_force, challenge(state, gains[in_force] - 0.05)


@pytest.mark.parametrize("n_rules", [1, 8])
def test_rules_follow_the_evidence_step_by_step(n_rules):
    rules = make(n_rules)
    stream, kinds = Stream(rules), []
    for step in range(100):
        z, y = stream.draw(is_reversed=step // 40 % 2 == 1)
        served, n_recalled = list(rules._served), len(stream.recalled)
        in_force, expected = foretold(rules, z, y)
        stream.learn(z, y)
        if expected.nats > 20:
            kinds.append(rules.events[-1][1])
            assert stream.recalled[n_recalled:] == [max(20, expected.since)]
            continue
        assert rules.in_force == in_force and tuple(rules._challenge) == pytest.approx(tuple(expected))
        # The rule in force learns until a challenger leads by two nats.
        assert rules._served[in_force] - served[in_force] == (10 if expected.nats < 2 else 0)
    assert "founded" in kinds
    assert rules.n_rules == min(n_rules, 2)


def test_a_rule_that_served_too_few_samples_is_renewed_in_place():
    rules = make(served=10_000)
    stream = Stream(rules)
    for step in range(60):
        stream.learn(*stream.draw(is_reversed=step >= 20))
    assert rules.n_rules == 1 and {event[1] for event in rules.events} == {"renewed"}


def test_the_rule_that_served_least_makes_way_where_there_is_no_room():
    rules = make(n_rules=3)
    rules._served, rules.in_force = [900, 400, 700], 2
    for _ in range(2):
        rules._weights.add_rule()
        for members in rules._members:
            members.append()
    stream = Stream(rules)
    stream.learn(*stream.draw(is_reversed=False))
    rules._served, rules.in_force = [900, 400, 700], 2
    rules._found(stream._recall)
    assert rules.in_force == 1 and rules.events[-1][1:] == ("founded", 1)


def test_solutions_are_renewed_when_a_challenge_begins_and_hardly_otherwise_where_they_do_not_matter(monkeypatch):
    rules = make()
    (members,) = rules._members
    patient, hurried = [], []
    learn, hurry = members.learn, members.hurry
    monkeypatch.setattr(members, "learn", lambda *a, **k: (patient.append(list(k["patient"])), learn(*a, **k)))
    monkeypatch.setattr(members, "hurry", lambda: (hurried.append(len(patient)), hurry()))
    stream, began, expected = Stream(rules), [], []
    for step in range(80):
        before = rules._challenge.nats
        z, y = stream.draw(is_reversed=step >= 40)
        _, after = foretold(rules, z, y)
        n = len(patient)
        stream.learn(z, y)
        if before < 2 <= after.nats:
            began.append(n)
        if after.nats < 2:
            shares = rules._weights.of_members[:3]
            expected.append((n, np.flatnonzero(shares < 0.01).tolist()))
    assert hurried == began and began
    assert [patient[n] for n, _ in expected] == [rows for _, rows in expected]
    assert any(rows for _, rows in expected)
