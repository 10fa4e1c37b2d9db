"""Rules that change while x stays the same: the present, alone and beside the experts."""

import pytest
import torch

from cndpm.experts.chunks import Samples
from cndpm.model.cndpm import CNDPM
from cndpm.model.context import Present
from cndpm.model.context.recent_rows import RecentRows, usual_range
from cndpm.model.settings import CNDPMSettings
from cndpm.state import StateError, check_same_form


def rule(n=1500, d=3, seed=0):
    """Rows, and labels by a linear rule."""
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(seed))
    return x, (x[:, 0] > 0.3 * x[:, 1]).long()


def make(**changes):
    small = {} if changes.get("representations") == "one" else {"pool_features": 20}
    return CNDPM(CNDPMSettings(memory_size=100, n_fourier=16, **small, **changes), input_shape=(3,), seed=1)


def prequential(learner, x, y, size=10):
    """Whether each sample was predicted right before it was learned, (n,)."""
    hits = []
    for start in range(0, len(x), size):
        part = slice(start, start + size)
        if start:
            hits.append(learner.predict_log_proba(x[part]).argmax(dim=1) == y[part])
        learner.learn(x[part], y[part])
    return torch.cat(hits).double()


@pytest.fixture(scope="module")
def in_turn():
    """A rule, its reverse, the rule, its reverse; what was right before it was learned, and the learner."""
    x, y = rule(2400)
    y = torch.where((torch.arange(2400) // 600) % 2 == 1, 1 - y, y)
    learner = make()
    return prequential(learner, x, y), learner, x, y


def test_a_reversed_rule_is_followed_within_a_hundred_and_fifty_samples(in_turn):
    hits = in_turn[0]
    assert float(hits[740:1190].mean()) > 0.95 * float(hits[400:590].mean())


def test_exchanged_labels_need_no_new_rule_to_be_learned():
    x, _ = rule(1000, d=20)
    y = (x.sum(dim=1) > 0).long() + 2 * (x[:, 0] > 0.5).long()
    y[600:] = torch.tensor([1, 2, 3, 0])[y[600:]]
    learner = CNDPM(CNDPMSettings(memory_size=100, n_fourier=16, pool_features=20), input_shape=(20,), seed=1)
    hits = prequential(learner, x, y)
    assert float(hits[630:730].mean()) > 0.9 * float(hits[490:590].mean())


def test_a_rule_that_returns_is_back_within_twenty_samples(in_turn):
    hits = in_turn[0]
    before = float(hits[400:590].mean())
    for change in (1200, 1800):
        assert float(hits[change + 10 : change + 110].mean()) > 0.95 * before


def test_two_rules_in_turn_are_two(in_turn):
    _, learner, _, _ = in_turn
    assert learner.present.n_rules == 2
    founded = [event for event in learner.present.events if event[1] == "founded"]
    returned = [event for event in learner.present.events if event[1] == "returned"]
    assert len(founded) == 1 and 600 < founded[0][0] <= 640
    assert [event[2] for event in returned] == [0, 1]


def test_any_time_is_the_mixture_without_the_present(in_turn):
    _, learner, x, y = in_turn
    alone = make(representations="one")
    for start in range(0, 2400, 10):
        alone.learn(x[start : start + 10], y[start : start + 10])
    asked = rule(100, seed=5)[0]
    assert torch.equal(learner.predict_log_proba(asked, when="any"), alone.predict_log_proba(asked))
    assert torch.equal(learner.predict_ever(asked), alone.predict_log_proba(asked))


def test_classes_that_came_one_after_the_other_are_all_remembered():
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(1000) // 200
    centres = 4 * torch.randn(5, 3, generator=generator)
    x = torch.randn(1000, 3, generator=generator) + centres[y]
    learner = make()
    learner.learn_block(x, y, 10)
    now, ever = (learner.predict_log_proba(x, when=when).argmax(dim=1) == y for when in ("now", "any"))
    assert float(now.double().mean()) > float(ever.double().mean()) - 0.01


def test_stopped_and_resumed_gives_the_same_bits():
    x, y = rule(900)
    y = torch.where(torch.arange(900) < 450, y, 1 - y)
    whole, stopped, resumed = make(), make(), make()
    whole.learn_block(x, y, 10)
    stopped.learn_block(x[:470], y[:470], 10)
    resumed.load_state_dict(stopped.state_dict())
    for start in range(470, 900, 10):
        resumed.learn(x[start : start + 10], y[start : start + 10])
        stopped.learn(x[start : start + 10], y[start : start + 10])
    asked = rule(50, seed=5)[0]
    assert torch.equal(stopped.predict_log_proba(asked), resumed.predict_log_proba(asked))
    torch.testing.assert_close(whole.predict_log_proba(asked), resumed.predict_log_proba(asked), rtol=1e-4, atol=1e-4)


def test_representations_are_fitted_anew_when_rows_leave_their_range():
    x, y = rule(1600)
    x[800:] *= 100
    learner = make()
    hits = prequential(learner, x, y)
    assert float(hits[1100:].mean()) > 0.9


def test_a_slope_that_changes_its_sign_is_followed():
    x, _ = rule(1200)
    y = torch.where(torch.arange(1200)[:, None] < 600, x[:, :1], -x[:, :1]) * 3 + 1
    learner = make(target="values")
    errors = []
    for start in range(0, 1200, 10):
        part = slice(start, start + 10)
        if start:
            errors.append((learner.predict_moments(x[part])[:, 0] - y[part]).abs().mean())
        learner.learn(x[part], y[part])
    assert float(torch.stack(errors[80:]).mean()) < 0.3
    mean, variance = learner.predict_moments(torch.tensor([[0.5, 0.0, 0.0], [300.0, 0.0, 0.0]]))[:, :, 0].unbind(dim=1)
    assert abs(float(mean[0]) + 0.5) < 0.2
    assert float(variance[1]) > 5 * float(variance[0])


def test_the_rows_kept_are_counted():
    learner = make(recent_rows=150)
    x, y = rule(400)
    learner.learn_block(x, y, 10)
    alone = make(representations="one")
    alone.learn_block(x, y, 10)
    assert learner.footprint().memory_samples == alone.footprint().memory_samples + 150
    assert learner.footprint().n_numbers_kept > alone.footprint().n_numbers_kept


def test_no_more_rules_are_kept_than_allowed():
    x, y = rule(2400)
    y = (torch.arange(2400) // 400 + y) % 5  # six rules, no two alike
    learner = make(max_rules=3)
    learner.learn_block(x, y, 10)
    assert learner.present.n_rules == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"representations": "one"},
        {"features": "fourier"},
        {"log_alpha": -50},
        {"experts": "neural"},
        {"anytime": False},
    ],
)
def test_where_something_else_was_asked_for_there_is_no_present(changes):
    assert CNDPM(CNDPMSettings(**changes), input_shape=(3,)).present is None


@pytest.mark.parametrize("shape", [(1, 8, 8), (101,)])
def test_images_and_wide_rows_have_no_present(shape):
    assert CNDPM(CNDPMSettings(), input_shape=shape).present is None


def test_a_pool_for_images_is_refused():
    with pytest.raises(ValueError, match="representations='pool' is for rows"):
        CNDPM(CNDPMSettings(representations="pool"), input_shape=(1, 8, 8))


def test_when_is_now_or_any(in_turn):
    with pytest.raises(ValueError, match="when is 'now' or 'any'; got 'later'"):
        in_turn[1].predict_log_proba(rule(3)[0], when="later")


def test_labels_of_the_latest_rows_are_recent():
    sizes = {"n_columns": 3, "n_outputs": 1, "n_recent": 500, "n_features": 5, "n_rules": 8}
    present = Present(for_classes=True, evidence=20.0, seed=0, **sizes)
    x, _ = rule(300)
    for start in range(0, 300, 10):
        y = torch.full((10,), 0 if start < 200 else 1)
        present.learn(Samples(x[start : start + 10]), y, torch.zeros(10, 2))
    assert present.recent_labels(3).tolist() == [0.0, 1.0, 0.0]
    present.forget()
    assert present.n_rules == len(present.rows) == 0


def test_a_wild_value_does_not_move_the_usual_range():
    rows = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    rows[3, 0] = 1e20
    low, high = usual_range(rows)
    assert (high < 30).all() and (low > -30).all()


def test_a_column_that_is_mostly_zero_keeps_its_other_values():
    rows = torch.zeros(200, 1)
    rows[:5] = 1.0
    low, high = usual_range(rows)
    assert float(low) < 0 and float(high) > 1


def test_the_latest_rows_are_kept():
    rows = RecentRows(5)
    for start in range(0, 12, 4):
        rows.add(torch.arange(start, start + 4.0)[:, None], torch.arange(start, start + 4))
    assert rows.y.tolist() == [7, 8, 9, 10, 11]
    assert rows.n_bytes == 5 * 4 + 5 * 8


@pytest.fixture(scope="module")
def learned():
    """The state of the present after 300 rows."""
    learner = make()
    learner.learn_block(*rule(300), 10)
    return learner.present.state_dict()


def spoiled(state, path, value):
    """A copy of a state with one value replaced."""
    head, *rest = path
    whole = list(state) if isinstance(state, list) else dict(state)
    whole[head] = spoiled(whole[head], rest, value) if rest else value
    return whole


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["n_seen"], -1),
        (["width"], 3),
        (["counts"], torch.zeros(5, dtype=torch.float64)),
        (["current"], torch.full((1,), torch.nan, dtype=torch.float64)),
        (["generator"], torch.zeros(3, dtype=torch.uint8)),
        (["rows", "x"], torch.zeros(300, 4)),
        (["rows", "y"], torch.full((300,), 7)),
        (["representations", "low"], torch.zeros(4)),
        (["representations", "steps", "columns"], torch.tensor([9])),
        (["representations", "waves", "phase"], torch.zeros(7)),
        (["rules", "served"], []),
        (["rules", "in_force"], 4),
        (["rules", "challenge"], [-1.0, 2]),
        (["rules", "events"], [[3, "invented", 0]]),
        (["rules", "weights", "filters"], torch.zeros(3, 4, dtype=torch.float64)),
        (["rules", "members", 1, "weights"], torch.zeros(4, 2, 22, dtype=torch.float64)),
        (["rules", "members", 1, "sums", "since"], [0]),
        (["rules", "members"], []),
    ],
)
def test_a_state_of_another_form_is_refused_and_changes_nothing(learned, path, value):
    other = make().present
    with pytest.raises(StateError):
        other.load_state_dict(spoiled(learned, path, value))
    check_same_form(other.state_dict(), make().present.state_dict())


def test_a_state_with_a_part_missing_is_refused(learned):
    for name in learned:
        with pytest.raises(StateError):
            make().present.load_state_dict({key: value for key, value in learned.items() if key != name})


def test_beyond_so_many_classes_the_experts_answer_alone_and_nothing_is_kept():
    generator = torch.Generator().manual_seed(3)
    y = torch.arange(300) % 150
    x = torch.randn(150, 3, generator=generator)[y] * 9 + torch.randn(300, 3, generator=generator)
    both = make(), make(representations="one")
    for learner in both:
        learner.learn_block(x[:120], y[:120], 10)
    assert both[0].present.n_rules
    for learner in both:
        learner.learn_block(x[120:], y[120:], 10)
    assert not both[0].present.n_rules
    assert both[0].footprint().memory_bytes == both[1].footprint().memory_bytes
    assert torch.equal(*(learner.predict_log_proba(x) for learner in both))
    again = make()
    again.load_state_dict(both[0].state_dict())
    again.learn_block(x[:20], y[:20], 10)
    assert not again.present.n_rules
