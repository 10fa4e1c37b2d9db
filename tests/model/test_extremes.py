"""Extreme rows are set aside; a change of units is not."""

import pytest
import torch

from cndpm.model.cndpm import CNDPM
from cndpm.model.extremes import BEYOND, Extremes
from cndpm.model.settings import CNDPMSettings
from cndpm.state import StateError


def rows(n=300, d=4, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("value", [1e4, 1e8, -1e10, 1e14, 3e38])
def test_a_wild_row_changes_nothing_that_is_learned_otherwise(value):
    x = rows()
    y = (x[:, 0] > 0).long()
    extreme = x.clone()
    extreme[157, 2] = value
    learners = [CNDPM(CNDPMSettings(memory_size=100, representations="one"), input_shape=(4,)) for _ in range(2)]
    learners[0].learn_block(extreme, y, 10)
    others = torch.arange(300) != 157
    for start in range(0, 300, 10):
        part = torch.arange(start, start + 10)
        learners[1].learn(x[part[others[part]]], y[part[others[part]]])
    asked = rows(50, seed=1)
    torch.testing.assert_close(*(learner.predict_log_proba(asked) for learner in learners), rtol=1e-3, atol=1e-3)
    assert learners[0].arrivals.extremes.n_set_aside == 1
    assert learners[0].describe()["n_set_aside"] == 1


def test_a_wild_row_among_the_first_is_found():
    extremes, x = Extremes(), rows(20)
    x[3, 1] = 1e6
    extremes.look(x)
    assert extremes.judge(x).nonzero().flatten().tolist() == [3]


@pytest.mark.parametrize("batch_size", [1, 10, 300])
def test_what_cannot_be_learned_is_set_aside_wherever_it_comes_and_whatever_the_scale(batch_size):
    for scale in (1.0, 1e9, 1e13):
        x = scale * rows()
        x[0, 1] = x[57, 2] = 3e38
        learner = CNDPM(CNDPMSettings(memory_size=100, target="none"), input_shape=(4,))
        for part in x.split(batch_size):
            learner.learn(part)
        assert learner.describe()["n_set_aside"] == 2
        assert learner.log_prob(x[:60]).isfinite().all()


def test_values_that_cannot_be_learned_are_never_let_in():
    extremes, x = Extremes(), rows(400)
    x[200:, 0] = BEYOND
    assert torch.cat([extremes.judge(part) for part in x.split(10)])[200:].all()


def test_a_change_of_units_is_let_in():
    extremes, x = Extremes(), rows(400)
    x[200:] *= 1e6
    judged = torch.cat([extremes.judge(part) for part in x.split(10)])
    assert not judged[:200].any()
    assert judged[200:210].all()
    assert not judged[230:].any()


def test_what_happens_once_in_ten_rows_is_never_let_in():
    extremes, x = Extremes(), rows(1200)
    x[205::10, 0] = 1e9
    judged = torch.cat([extremes.judge(part) for part in x.split(10)])
    assert judged[205::10].all()
    assert int(judged.sum()) == extremes.n_set_aside == 100


def test_a_column_that_begins_to_vary_is_not_wild():
    extremes, x = Extremes(), rows(400)
    x[:300, 2] = 0
    extremes.judge(x[:300])
    assert not extremes.judge(x[300:]).any()


def test_a_tame_block_is_not_watched():
    extremes, x = Extremes(), rows(300)
    extremes.judge(x)
    extremes.look(x)
    assert not extremes.is_needed
    x[7, 0] = 1e9
    extremes.look(x)
    assert extremes.is_needed


def test_values_that_cannot_be_learned_are_looked_at_however_wide_the_range():
    extremes, x = Extremes(), 1e13 * rows(300)
    extremes.judge(x)
    extremes.look(x)
    assert not extremes.is_needed
    x[7, 0] = BEYOND
    extremes.look(x)
    assert extremes.is_needed and extremes.judge(x)[7]


def test_extremes_are_restored():
    extremes, other, x = Extremes(), Extremes(), rows()
    extremes.judge(x)
    extremes.judge(torch.full((1, 4), 1e9))
    other.load_state_dict(extremes.state_dict())
    assert other.n_set_aside == 1
    assert other.judge(torch.full((1, 4), 1e9)).all()


@pytest.mark.parametrize("lately", [None, 3, [True, "no"], [1, 0]])
def test_a_made_up_record_of_the_latest_rows_is_refused(lately):
    extremes = Extremes()
    extremes.judge(rows(20))
    with pytest.raises(StateError, match="lately"):
        Extremes().load_state_dict({**extremes.state_dict(), "lately": lately})


def measured(x: torch.Tensor) -> Extremes:
    extremes = Extremes()
    assert not extremes.judge(x).any()
    return extremes


def test_the_range_is_that_of_the_first_two_hundred_rows():
    """Rows far wider than those before them move the range as long as it is measured, and not afterwards."""
    narrow = torch.randn(150, 1, generator=torch.Generator().manual_seed(0))
    extremes = measured(narrow)
    assert not extremes.judge(100 * narrow[:60]).any()
    assert not extremes.judge(torch.tensor([[20_000.0]])).any()
    frozen = extremes.state_dict()
    assert frozen["n"] == 210
    assert not extremes.judge(100 * narrow[:20]).any()
    assert torch.equal(extremes.state_dict()["squares"], frozen["squares"])


def test_values_within_a_thousand_deviations_are_let_in_and_those_beyond_are_not():
    x = torch.randn(300, 1, generator=torch.Generator().manual_seed(1)).double()
    extremes, deviation = measured(x), float(x.std())
    middle = float(x.mean())
    assert extremes.judge(torch.tensor([[middle + 990 * deviation], [middle + 1010 * deviation]])).tolist() == [
        False,
        True,
    ]


def test_wild_rows_do_not_widen_the_range():
    x = torch.randn(100, 1, generator=torch.Generator().manual_seed(2))
    extremes = measured(x)
    before = extremes.state_dict()["squares"]
    assert extremes.judge(torch.tensor([[1e9]])).all()
    assert torch.equal(extremes.state_dict()["squares"], before)


def test_a_column_that_hardly_varies_is_measured_by_the_others():
    x = torch.randn(300, 3, generator=torch.Generator().manual_seed(3))
    x[:, 2] *= 1e-9
    assert measured(x).judge(torch.tensor([[0.0, 0.0, 10.0], [0.0, 0.0, 1e5]])).tolist() == [False, True]


def test_a_batch_of_wild_rows_alone_reaches_no_expert():
    learner = CNDPM(CNDPMSettings(), input_shape=(2,))
    learner.learn_block(torch.randn(300, 2, generator=torch.Generator().manual_seed(0)), torch.arange(300) % 2, 10)
    kept = float(learner.counts.sum()) + len(learner.memory)
    learner.learn(torch.tensor([[0.0, 1e10]]), torch.tensor([0]))
    assert float(learner.counts.sum()) + len(learner.memory) == kept
    assert learner.arrivals.extremes.n_set_aside == 1


def test_values_that_cannot_be_learned_are_no_evidence_of_another_range():
    extremes = Extremes()
    extremes.judge(torch.randn(300, 2, generator=torch.Generator().manual_seed(0)))
    assert extremes.judge(torch.full((100, 2), 1e30)).all()
    assert extremes.judge(torch.tensor([[0.0, 1e6]])).all()
