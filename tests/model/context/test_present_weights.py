"""Evidence of recent models, rules and the stack, against sums written out."""

import numpy as np
import pytest
import torch

from cndpm.experts.pool import ClassFamily
from cndpm.mixture.stacking import newton_step
from cndpm.model.context.weights import SWITCH, Weights

N_RECENT, N_REPRESENTATIONS = 3, 2


@pytest.fixture
def weighed():
    """Weights before and after a batch of five samples, the batch's labels and the answer to it."""
    generator = torch.Generator().manual_seed(0)
    weights = Weights(ClassFamily(), n_recent=N_RECENT, n_representations=N_REPRESENTATIONS)
    answer = None
    for _ in range(3):
        said = [8 * torch.randn(n + 1, 5, 2, generator=generator).double() for n in (2, 1)]
        experts = torch.randn(5, 2, generator=generator).double().log_softmax(dim=1).numpy()
        before, answer = weights.state_dict(), weights.answer(said, [2, 1], experts, in_force=0)
        y = torch.randint(2, (5,), generator=generator).numpy()
        fast = np.zeros(weights.n_recent, dtype=bool)
        fast[0] = True
        weights.weigh(y, answer, fast, in_force=0)
    return weights, {name: part.numpy() for name, part in before.items()}, y, answer


def floored(scores: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Cuts scores off eight nats below the best of a sample."""
    return np.maximum(scores, scores.max(axis=axes, keepdims=True) - 8.0)


def faded(before: np.ndarray, scores: np.ndarray, keep: float) -> np.ndarray:
    """L <- keep L + score, sample by sample; samples are the last axis of the scores."""
    for i in range(scores.shape[-1]):
        before = keep * before + scores[..., i]
    return before


def test_evidence_fades_by_a_fiftieth_for_recent_models_and_by_a_two_hundredth_for_representations(weighed):
    weights, before, y, answer = weighed
    score, after = ClassFamily().log_scores, weights.state_dict()
    recent = faded(before["of_recent"], floored(score(answer.recent, y), (0, 1)), 0.98)
    np.testing.assert_allclose(after["of_recent"], recent)
    of_rules = faded(before["of_rules"], floored(score(answer.in_force, y), (0, 1)), 0.995)
    np.testing.assert_allclose(after["of_rules"], of_rules)
    both = floored(score(np.stack([answer.filtered, answer.stacked]), y), (0,))
    np.testing.assert_allclose(after["of_stack"], faded(before["of_stack"], both, 0.98))


def test_filters_of_three_stickinesses_are_compared_by_evidence_that_hardly_fades(weighed):
    weights, before, y, answer = weighed
    scores = floored(ClassFamily().log_scores(answer.hypotheses, y), (0,))
    assert SWITCH.tolist() == [0.001, 0.01, 0.1]
    posterior, evidence = np.exp(before["filters"]), np.zeros(3)
    for i in range(5):
        prior = (1 - SWITCH[:, None]) * posterior + SWITCH[:, None] / posterior.shape[1]
        joint = prior * np.exp(scores[:, i])
        evidence += np.log(joint.sum(axis=1))
        posterior = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(weights.state_dict()["filters"].exp(), posterior)
    np.testing.assert_allclose(weights.state_dict()["of_switch"], 0.998**5 * before["of_switch"] + evidence)


def test_the_stack_takes_newton_steps_with_a_ridge_of_twenty_that_forget_by_a_hundredth(weighed):
    weights, before, y, answer = weighed
    n = len(before["exponents"])
    fresh = Weights(ClassFamily(), n_recent=N_RECENT, n_representations=N_REPRESENTATIONS).state_dict()
    np.testing.assert_allclose(fresh["curvature"], 20 * np.eye(n))
    np.testing.assert_allclose(fresh["exponents"], np.full(n, 1 / n))
    stacked = newton_step(before["exponents"], before["curvature"], answer.members, y, keep=0.99, ridge=20.0)
    np.testing.assert_allclose(weights.state_dict()["exponents"], stacked[0])
    np.testing.assert_allclose(weights.state_dict()["curvature"], stacked[1])


def test_the_answer_weighs_the_filter_and_the_stack_by_their_evidence(weighed):
    _, before, _, answer = weighed
    share = np.exp(before["of_stack"] - before["of_stack"].max())
    share /= share.sum()
    expected = share[0] * np.exp(answer.filtered) + share[1] * np.exp(answer.stacked)
    np.testing.assert_allclose(np.exp(answer.mixed), expected)


def test_labels_are_counted_with_a_twentieth_less_for_every_sample(weighed):
    weights, before, y, answer = weighed
    counts = before["relabels"].copy()
    said = np.exp(answer.hypotheses[1])
    for i, label in enumerate(y):
        counts = 0.95 * counts
        counts[:, label] += said[i] / said[i].sum()
    np.testing.assert_allclose(weights.state_dict()["relabels"], counts)


def test_a_new_rule_is_given_half_of_what_the_recent_models_have(weighed):
    weights = weighed[0]
    before = weights.of_hypotheses
    weights.add_rule()
    np.testing.assert_allclose(weights.of_hypotheses, [before[0] / 2, before[1], before[0] / 2])


def test_what_was_learned_of_representations_and_rates_is_inherited_but_no_rule(weighed):
    heir = Weights(ClassFamily(), n_recent=N_RECENT, n_representations=N_REPRESENTATIONS)
    fresh = heir.state_dict()
    heir.inherit(weighed[0])
    for name, part in heir.state_dict().items():
        source = fresh if name in ("filters", "relabels") else weighed[0].state_dict()
        assert torch.equal(part, source[name]), name


def test_no_labels_are_exchanged_where_none_were_counted_since_a_rule_returned(weighed):
    weights, *_ = weighed
    weights._of_recent[-1] = 100.0  # the rule in force with other labels predicts best by far
    fast = np.zeros(weights.n_recent, dtype=bool)
    fast[0] = True
    assert weights.relabelling(fast) is not None
    weights.forget_labels()
    assert weights.relabelling(fast) is None


@pytest.mark.parametrize("change", ["weigh", "add_rule", "settle_on", "inherit", "load"])
def test_answers_follow_every_change_of_the_evidence(weighed, change):
    weights, before, y, answer = weighed
    said = [torch.randn(n + 1, 5, 2, generator=torch.Generator().manual_seed(n)).double() for n in (2, 1)]
    experts = np.log(np.full((5, 2), 0.5))
    first = weights.answer(said, [2, 1], experts, in_force=0)
    if change == "weigh":
        weights.weigh(y, answer, np.arange(weights.n_recent) < 1, in_force=0)
    elif change == "add_rule":
        weights.add_rule()
        said = [torch.cat([part, part[-1:]]) for part in said]
    elif change == "settle_on":
        weights.settle_on(0, 3 * weights.of_representations)
    elif change == "inherit":
        other = Weights(ClassFamily(), n_recent=N_RECENT, n_representations=N_REPRESENTATIONS)
        other._of_recent[1] = 50.0
        weights.inherit(other)
    else:
        weights.load_state_dict({name: torch.tensor(part) for name, part in before.items()}, n_rules=1)
    fresh = Weights(ClassFamily(), n_recent=N_RECENT, n_representations=N_REPRESENTATIONS)
    fresh.load_state_dict(weights.state_dict(), n_rules=2 if change == "add_rule" else 1)
    now = weights.answer(said, [2, 1], experts, in_force=0)
    np.testing.assert_array_equal(now.mixed, fresh.answer(said, [2, 1], experts, in_force=0).mixed)
    assert change == "add_rule" or not np.array_equal(now.mixed, first.mixed)
