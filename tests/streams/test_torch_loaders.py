import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from cndpm.streams import stream_from

X, Y = torch.arange(24.0).reshape(12, 2), torch.arange(12) % 3


def test_a_loader_of_torch_is_a_stream_that_can_be_read_again_from_any_batch():
    stream = stream_from(DataLoader(TensorDataset(X, Y), batch_size=5))
    assert [len(batch.x) for batch in stream.batches()] == [5, 5, 2]
    (last,) = stream.batches(start=2)
    assert torch.equal(last.x, X[10:]) and torch.equal(last.y, Y[10:])


def test_a_loader_without_labels_is_an_unlabelled_stream():
    stream = stream_from(DataLoader(TensorDataset(X), batch_size=6))
    assert stream.input_shape == (2,) and not stream.labelled
    assert torch.equal(torch.cat([batch.x for batch in stream.batches()]), X)


def test_words_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match="Text has to become rows"):
        stream_from([(["a word"], [0])])


def test_a_list_and_a_loader_say_how_many_batches_they_have_and_what_is_not_counted_does_not():
    assert stream_from(DataLoader(TensorDataset(X, Y), batch_size=5)).n_batches == -(-len(X) // 5)
    assert stream_from([(X[:2], Y[:2])] * 3).n_batches == 3
    assert stream_from([(X[:2], Y[:2])] * 3, n_batches=2).n_batches == 2
    assert stream_from((X[:2], Y[:2]) for _ in range(3)).n_batches is None
    assert stream_from(DataLoader(Counted(), batch_size=2)).n_batches is None


class Counted(IterableDataset):
    """Says that it has more samples than it gives."""

    def __len__(self):
        return 99

    def __iter__(self):
        return iter(list(X[:4]))
