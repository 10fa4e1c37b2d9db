"""Wild rows are set aside; a change of units is not."""

import pytest
import torch

from cndpm.model.cndpm import CNDPM
from cndpm.model.door import Door
from cndpm.model.inputs import BEYOND
from cndpm.model.settings import CNDPMSettings
from cndpm.state import StateError


def rows(n=300, d=4, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("value", [1e4, 1e8, -1e10, 1e14, 3e38])
def test_a_wild_row_changes_nothing_that_is_learned_otherwise(value):
    x = rows()
    y = (x[:, 0] > 0).long()
    wild = x.clone()
    wild[157, 2] = value
    learners = [CNDPM(CNDPMSettings(memory_size=100, representations="one"), input_shape=(4,)) for _ in range(2)]
    learners[0].learn_block(wild, y, 10)
    others = torch.arange(300) != 157
    for start in range(0, 300, 10):
        part = torch.arange(start, start + 10)
        learners[1].learn(x[part[others[part]]], y[part[others[part]]])
    asked = rows(50, seed=1)
    torch.testing.assert_close(*(learner.predict_log_proba(asked) for learner in learners), rtol=1e-3, atol=1e-3)
    assert learners[0].arrivals.door.n_set_aside == 1
    assert learners[0].describe()["n_set_aside"] == 1


def test_a_wild_row_among_the_first_is_found():
    door, x = Door(), rows(20)
    x[3, 1] = 1e6
    door.look(x)
    assert door.judge(x).nonzero().flatten().tolist() == [3]


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
    door, x = Door(), rows(400)
    x[200:, 0] = BEYOND
    assert torch.cat([door.judge(part) for part in x.split(10)])[200:].all()


def test_a_change_of_units_is_let_in():
    door, x = Door(), rows(400)
    x[200:] *= 1e6
    judged = torch.cat([door.judge(part) for part in x.split(10)])
    assert not judged[:200].any()
    assert judged[200:210].all()
    assert not judged[230:].any()


def test_what_happens_once_in_ten_rows_is_never_let_in():
    door, x = Door(), rows(1200)
    x[205::10, 0] = 1e9
    judged = torch.cat([door.judge(part) for part in x.split(10)])
    assert judged[205::10].all()
    assert int(judged.sum()) == door.n_set_aside == 100


def test_a_column_that_begins_to_vary_is_not_wild():
    door, x = Door(), rows(400)
    x[:300, 2] = 0
    door.judge(x[:300])
    assert not door.judge(x[300:]).any()


def test_a_tame_block_is_not_watched():
    door, x = Door(), rows(300)
    door.judge(x)
    door.look(x)
    assert not door.is_watching
    x[7, 0] = 1e9
    door.look(x)
    assert door.is_watching


def test_a_door_is_restored():
    door, other, x = Door(), Door(), rows()
    door.judge(x)
    door.judge(torch.full((1, 4), 1e9))
    other.load_state_dict(door.state_dict())
    assert other.n_set_aside == 1
    assert other.judge(torch.full((1, 4), 1e9)).all()


@pytest.mark.parametrize("lately", [None, 3, [True, "no"], [1, 0]])
def test_a_made_up_record_of_the_latest_rows_is_refused(lately):
    door = Door()
    door.judge(rows(20))
    with pytest.raises(StateError, match="lately"):
        Door().load_state_dict({**door.state_dict(), "lately": lately})


def measured(x: torch.Tensor) -> Door:
    door = Door()
    assert not door.judge(x).any()
    return door


def test_the_range_is_that_of_the_first_two_hundred_rows():
    """Rows far wider than those before them move the range as long as it is measured, and not afterwards."""
    narrow = torch.randn(150, 1, generator=torch.Generator().manual_seed(0))
    door = measured(narrow)
    assert not door.judge(100 * narrow[:60]).any()
    assert not door.judge(torch.tensor([[20_000.0]])).any()
    frozen = door.state_dict()
    assert frozen["n"] == 210
    assert not door.judge(100 * narrow[:20]).any()
    assert torch.equal(door.state_dict()["squares"], frozen["squares"])


def test_values_within_a_thousand_deviations_are_let_in_and_those_beyond_are_not():
    x = torch.randn(300, 1, generator=torch.Generator().manual_seed(1)).double()
    door, deviation = measured(x), float(x.std())
    middle = float(x.mean())
    assert door.judge(torch.tensor([[middle + 990 * deviation], [middle + 1010 * deviation]])).tolist() == [False, True]


def test_wild_rows_do_not_widen_the_range():
    x = torch.randn(100, 1, generator=torch.Generator().manual_seed(2))
    door = measured(x)
    before = door.state_dict()["squares"]
    assert door.judge(torch.tensor([[1e9]])).all()
    assert torch.equal(door.state_dict()["squares"], before)


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
    assert learner.arrivals.door.n_set_aside == 1


def test_values_that_cannot_be_learned_are_no_evidence_of_another_range():
    door = Door()
    door.judge(torch.randn(300, 2, generator=torch.Generator().manual_seed(0)))
    assert door.judge(torch.full((100, 2), 1e30)).all()
    assert door.judge(torch.tensor([[0.0, 1e6]])).all()
