"""Streams of rows: every row comes once, in order, and batches end where the stream changes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.streams import stream_of_rows


def rows(n, changes=(), batch_size=10, **options):
    return stream_of_rows(np.arange(3.0 * n).reshape(n, 3), np.arange(n) % 2, batch_size=batch_size, changes=changes)


@settings(deadline=None, max_examples=40)
@given(n=st.integers(1, 1300), batch_size=st.integers(1, 13), data=st.data())
def test_all_rows_come_once_and_in_order_wherever_one_starts(n, batch_size, data):
    changes = sorted(data.draw(st.sets(st.integers(1, max(1, n - 1)), max_size=3))) if n > 1 else []
    stream = rows(n, changes, batch_size)
    batches = list(stream)
    assert len(batches) == stream.n_batches
    assert torch.equal(torch.cat([batch.x for batch in batches]), stream.x)
    start = data.draw(st.integers(0, stream.n_batches))
    rest = list(stream.batches(start))
    assert len(rest) == stream.n_batches - start
    assert all(torch.equal(a.x, b.x) for a, b in zip(rest, batches[start:], strict=True))


def test_a_batch_ends_and_a_stage_begins_where_the_stream_changes():
    stream = rows(50, changes=(25, 40))
    assert [len(batch.x) for batch in stream] == [10, 10, 5, 10, 5, 10]
    assert stream.changes == (25, 40) and stream.stage_starts == (0, 3, 5)
    assert [stream.stage_of(i) for i in range(6)] == [0, 0, 0, 1, 1, 2]


def test_blocks_are_cut_at_the_same_places_whatever_the_start():
    stream = rows(1200)
    whole = [tuple(block.x.shape) for block in stream.blocks()]
    assert whole == [(500, 3), (500, 3), (200, 3)]
    late = next(stream.blocks(60))
    assert (tuple(late.x.shape), late.first) == ((500, 3), 100)


def test_labels_become_indices_and_real_values_columns():
    x = np.zeros((4, 2))
    classes, values = stream_of_rows(x, [0, 1, 2, 0]), stream_of_rows(x, [0.5, 1.0, 2.0, 0.0])
    assert (classes.target, classes.n_classes, classes.y.dtype, tuple(classes.y.shape)) == (
        "classes",
        3,
        torch.int64,
        (4,),
    )
    assert (values.target, values.n_classes, values.y.dtype, tuple(values.y.shape)) == (
        "values",
        None,
        torch.float32,
        (4, 1),
    )
    assert stream_of_rows(x, np.array([True, False, True, False])).n_classes == 2
    assert stream_of_rows(x, [0, 1, 2, 0], n_classes=5).n_classes == 5


@pytest.mark.parametrize("changes", [(0,), (50,), (30, 20), (20, 20)])
def test_changes_outside_the_rows_or_out_of_order_are_refused(changes):
    with pytest.raises(ValueError, match="changes must ascend and lie inside the 50 rows"):
        rows(50, changes)


def test_rows_without_labels_for_each_are_refused():
    with pytest.raises(ValueError, match="got 3 and 2"):
        stream_of_rows(np.zeros((3, 2)), [0, 1])
