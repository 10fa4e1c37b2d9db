"""What was learned in a range that was left answers for it, until it is predicted better without."""

import torch
from test_present import make, prequential, rule

from cndpm.model.context.former import Units


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


def test_a_former_that_was_wrong_for_long_is_given_up():
    learner, x, y, _ = left()
    (former,) = learner.present._formers
    rows, labels = x[-10:].clone(), y[-10:].clone()
    rows[0], labels[0] = torch.tensor([1.0, -1.0, 0.0]), 0  # of the range that was left, and not as it was
    learner.learn(rows, labels)
    assert former.lead > 0 and learner.present._formers == [former]
    former.lead = 99.0
    learner.learn(rows, labels)
    assert former.lead > 100 and not learner.present._formers


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
