from itertools import islice

import numpy as np
import pytest
import torch

from cndpm.streams import Task, drifting_clusters, stream_from


def pairs(n: int):
    return [(np.full((4, 3), i, np.float64), np.arange(4)) for i in range(n)]


KINDS = {"list": list, "iterator": iter, "generator": lambda items: (item for item in items)}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_any_iterable_becomes_a_stream_and_no_batch_is_lost(make):
    stream = stream_from(make(pairs(5)))
    assert stream.input_shape == (3,) and stream.labelled and stream.n_batches in (None, 5) and stream.tasks == ()
    batches = list(stream.batches())
    assert [batch.x[0, 0].item() for batch in batches] == [0, 1, 2, 3, 4]
    assert batches[0].x.dtype == torch.float32 and batches[0].y.dtype == torch.int64


@pytest.mark.parametrize("make", [list, iter])
def test_a_stream_of_an_iterable_can_begin_later(make):
    assert [batch.x[0, 0].item() for batch in stream_from(make(pairs(5))).batches(3)] == [3, 4]


def test_an_iterator_goes_on_where_it_stopped_but_not_back():
    stream = stream_from(iter(pairs(5)))
    list(islice(stream.batches(), 2))
    assert next(stream.batches(2)).x[0, 0] == 2
    with pytest.raises(ValueError, match="batch 1 was asked for, 3 have been read"):
        stream.batches(1)


def test_data_of_the_future_are_not_waited_for_where_the_shape_is_given():
    def future():
        raise AssertionError("nothing has arrived yet")
        yield

    stream = stream_from(future(), input_shape=(3,), labelled=True)
    assert stream.input_shape == (3,)


def test_x_alone_is_an_unlabelled_stream_and_bytes_are_scaled():
    stream = stream_from([torch.full((2, 1, 4, 4), 51, dtype=torch.uint8)])
    (batch,) = stream
    assert batch.y is None and not stream.labelled
    assert torch.allclose(batch.x, torch.tensor(0.2))


def test_real_valued_targets_stay_real():
    (batch,) = stream_from([(np.zeros((2, 3)), np.array([[0.5], [1.5]]))])
    assert batch.y.dtype == torch.float32 and batch.y.shape == (2, 1)


def test_a_known_number_of_batches_ends_the_stream():
    stream = stream_from(lambda i: np.full((1, 2), i), n_batches=4)
    assert len(list(stream)) == stream.n_batches == 4 and len(list(stream.batches(3))) == 1


@pytest.mark.parametrize(
    ("second", "message"),
    [((np.zeros((4, 2)), np.zeros(4)), r"shape \(3,\); got \(2,\)"), (np.zeros((4, 3)), "as the first one was")],
)
def test_a_batch_of_another_kind_is_refused(second, message):
    stream = stream_from([pairs(1)[0], second])
    with pytest.raises(ValueError, match=message):
        list(stream)


def test_every_arriving_batch_is_a_block():
    stream = stream_from(pairs(5))
    blocks = list(stream.blocks(start=2))
    assert [(len(block.x), block.batch_size, block.first) for block in blocks] == [(4, 4, 0)] * 3


def test_a_batch_without_samples_is_refused_since_steps_would_be_miscounted():
    stream = stream_from([*pairs(1), (np.zeros((0, 3)), np.zeros(0))])
    with pytest.raises(ValueError, match="no samples; leave it out"):
        list(stream)


def test_a_stream_describes_itself_for_records():
    stream = stream_from(pairs(2), n_classes=4, name="mine")
    shape = {"labelled": True, "input_shape": [3], "n_classes": 4, "n_batches": 2}
    assert stream.describe() == {"name": "mine", "batch_size": 4, **shape}


def test_an_empty_source_is_refused():
    with pytest.raises(ValueError, match="no batches"):
        stream_from([])


def test_tasks_can_be_given_for_evaluation():
    task = Task("only", (0, 1), torch.zeros(2, 3), torch.tensor([0, 1]))
    stream = stream_from(pairs(2), tasks=(task,), n_classes=2)
    assert stream.tasks == (task,) and stream.stage_tasks == ((0,),) and stream.stage_of(1) == 0


def test_drifting_clusters_are_endless_and_resumed_at_no_cost():
    stream = stream_from(drifting_clusters(period=10, seed=2), n_classes=4)
    assert stream.n_batches is None and stream.input_shape == (8,)
    far = next(stream.batches(10**9))
    assert torch.equal(far.x, next(stream.batches(10**9)).x)
    for a, b in zip(islice(stream.batches(), 25, 30), stream.batches(25), strict=False):
        assert torch.equal(a.x, b.x) and torch.equal(a.y, b.y)


def test_classes_of_drifting_clusters_come_go_and_drift():
    draw = drifting_clusters(period=50, spread=0.01, batch_size=50)
    assert set(draw(0)[1].tolist()) == {0, 1} and set(draw(50)[1].tolist()) == {2, 3}
    assert set(draw(100)[1].tolist()) == {0, 1}
    early, late = (draw(i)[0][draw(i)[1] == 0].mean(0) for i in (0, 100))
    assert (early - late).norm() > 0.2


@pytest.mark.parametrize("fields", [{"n_classes": 1}, {"spread": 0}, {"period": 0}])
def test_drifting_clusters_refuse_what_cannot_be(fields):
    with pytest.raises(ValueError, match="drifting_clusters needs"):
        drifting_clusters(**fields)


def test_what_a_torch_loader_yields_is_a_labelled_stream():
    data = torch.utils.data.TensorDataset(torch.rand(12, 3), torch.arange(12) % 2)
    stream = stream_from(torch.utils.data.DataLoader(data, batch_size=4))
    assert stream.labelled and stream.input_shape == (3,) and len(list(stream)) == 3
