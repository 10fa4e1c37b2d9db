import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from cndpm.names import UnknownNameError
from cndpm.streams import stream_from
from cndpm.streams.row_files import NamedBatches

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


def test_batches_of_named_columns_are_pairs():
    rows = [{"pixels": x, "label": int(y), "id": str(i)} for i, (x, y) in enumerate(zip(X, Y, strict=True))]
    stream = stream_from(DataLoader(rows, batch_size=4), x_column="pixels")
    first = next(stream.batches())
    assert torch.equal(first.x, X[:4]) and torch.equal(first.y, Y[:4])


def test_columns_that_cannot_be_guessed_are_asked_for():
    with pytest.raises(ValueError, match=r"x_column=.*there are a, b"):
        NamedBatches(None, None).pair({"a": 1, "b": 2, "label": 3})
    with pytest.raises(UnknownNameError, match="Did you mean label"):
        NamedBatches(None, "lable").pair({"a": 1, "label": 3})
    assert NamedBatches("label", None).pair({"label": [1.0], "a": [2]}) == [1.0]  # what was named is no label


def test_words_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match="Text has to become rows"):
        stream_from([(["a word"], [0])])


def test_images_of_bytes_become_channels_first():
    grey, colour = np.zeros((2, 8, 9), np.uint8), np.zeros((2, 8, 9, 3), np.uint8)
    assert NamedBatches("i", None).pair({"i": grey}).shape == (2, 1, 8, 9)
    assert NamedBatches("i", None).pair({"i": colour}).shape == (2, 3, 8, 9)
    assert NamedBatches("i", None).pair({"i": np.zeros((2, 8, 9))}).shape == (2, 8, 9)


def test_a_dataset_of_hugging_face_is_a_stream():
    datasets = pytest.importorskip("datasets")
    if not hasattr(datasets, "Features"):
        pytest.skip("a folder of this name was found, not the package")
    features = datasets.Features(
        {"pixels": datasets.Sequence(datasets.Value("float32")), "label": datasets.ClassLabel(names=["a", "b", "c"])}
    )
    rows = datasets.Dataset.from_dict({"pixels": X.tolist(), "label": Y.tolist()}, features=features)
    stream = stream_from(rows, batch_size=5)
    assert (stream.n_classes, stream.n_batches, stream.input_shape) == (3, 3, (2,))
    assert torch.equal(torch.cat([batch.x for batch in stream.batches()]), X)
    (last,) = stream.batches(start=2)
    assert torch.equal(last.y, Y[10:])
    flowing = stream_from(rows.to_iterable_dataset(), batch_size=5)
    assert flowing.n_batches is None and torch.equal(next(flowing.batches(start=1)).x, X[5:10])


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
