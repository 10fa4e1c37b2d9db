"""What was learned in a range that was left answers for it, until it is predicted better without."""

import torch
from test_present import make, prequential, rule

from cndpm.model.context.former import MOST_FORMERS, Former, Formers, Units


def left(n=1200, at=600, factor=100.0):
    """Rows whose columns are multiplied after a while, and the learner of them."""
    x, y = rule(n)
    x[at:] *= factor
    learner = make()
    return learner, x, y, prequential(learner, x, y)


def test_rows_of_the_range_that_was_left_are_answered_as_before():
    learner, _, _, hits = left()
    assert float(hits[800:].mean()) > 0.9
    x, y = rule(500, seed=3)
    for factor in (1.0, 100.0):
        assert float((learner.predict_log_proba(factor * x).argmax(dim=1) == y).double().mean()) > 0.93


def test_rows_that_come_back_to_a_range_find_what_was_learned_there():
    learner, _, _, _ = left()
    present = learner.present
    before = present._formers[0].rules
    x, y = rule(400, seed=4)
    hits = prequential(learner, x, 1 - y)  # with the rule reversed: it must learn, too
    assert present._rules is before
    assert float(hits[200:].mean()) > 0.85


def contradicted(n_inside):
    """A learner that was given batches of which some rows are of the range that was left, and not as they were."""
    learner, x, y, _ = left()
    (former,) = learner.present._formers
    for _ in range(15):
        rows, labels = x[-10:].clone(), y[-10:].clone()
        rows[:n_inside], labels[:n_inside] = torch.tensor([1.0, -1.0, 0.0]), 0
        learner.learn(rows, labels)
    return learner, former


def test_a_former_that_was_wrong_for_long_is_given_up():
    learner, former = contradicted(2)
    assert former.lead > 100 and not learner.present._formers


def test_a_few_rows_of_this_range_that_lie_in_another_say_nothing_about_it():
    learner, former = contradicted(1)
    assert former.lead == 0 and learner.present._formers == [former]


def test_a_former_answers_by_the_rule_that_held_before_rows_of_another_range_came():
    """Before the range is left, its models have learned some of those rows, and evidence has turned against them."""
    x, y = rule(1000)
    x[600:], y[600:] = 100 * x[600:], 1 - y[600:]
    learner = make()
    prequential(learner, x, y)
    assert len(learner.present._formers) == 1
    asked, truth = rule(500, seed=3)
    assert float((learner.predict_log_proba(asked).argmax(dim=1) == truth).double().mean()) > 0.95
    assert float((learner.predict_log_proba(100 * asked).argmax(dim=1) == 1 - truth).double().mean()) > 0.9


def test_a_former_of_a_whole_range_goes_back_to_what_held_before_the_latest_rows():
    x, y = rule(640)
    learner = make()
    prequential(learner, x, torch.cat([y[:600], 1 - y[600:]]))  # forty rows turn the evidence before the range is left
    learner.present.leave(25, is_whole=True)
    (former,) = learner.present._formers
    assert former.rules.in_force == 0 and former.rules.weights[1] > 0.99
    asked, truth = rule(500, seed=3)
    answers = former.answer(asked, torch.zeros(500, 2).double()).argmax(dim=1)
    assert float((answers == truth).double().mean()) > 0.95


def test_seven_formers_are_kept_at_most_of_which_two_are_parts():
    """More could be saved, and would be refused when they are loaded."""
    learner = left()[0]
    (first,) = learner.present._formers
    formers, far = Formers(), torch.full((30, 3), 1e6)
    for is_whole in [True] * 9 + [False] * 4 + [True, False]:
        one = Former(first.representations, first.rules, first.units)
        one.is_whole = is_whole
        formers.exchange(one, far)
    assert len(formers) <= MOST_FORMERS == 7
    assert sum(not former.is_whole for former in formers) == 2 and not formers[-1].is_whole


def test_stopped_and_resumed_with_a_former_gives_the_same_bits():
    learner = left(900)[0]
    resumed = make()
    resumed.load_state_dict(learner.state_dict())
    asked = torch.cat([rule(40, seed=5)[0], 100 * rule(40, seed=6)[0]])
    for one in (learner, resumed):
        one.learn(asked[:30], rule(30, seed=5)[1])
    assert torch.equal(learner.predict_log_proba(asked), resumed.predict_log_proba(asked))


def test_units_are_undone():
    y = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    units = Units.of(y)
    answer = torch.stack([y, y.square()], dim=1).double().numpy()
    assert torch.from_numpy(units.answer_from(units.answer_in(answer))).allclose(torch.from_numpy(answer))
    assert units.targets(y).mean(dim=0).abs().max() < 1e-9
