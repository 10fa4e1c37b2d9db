import numpy as np
import pytest

from cndpm.datasets import load_dataset
from cndpm.engines import ShardError
from cndpm.engines.shards import ArrayShard, FileShard, as_shard, split

X = np.arange(50, dtype=np.float32).reshape(25, 2)
Y = [f"kind {k % 3}" for k in range(25)]


@pytest.fixture
def csv_file(tmp_path):
    lines = [f"{a},{kind},{b}" for (a, b), kind in zip(X.tolist(), Y, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["first,kind,second", *lines]) + "\n")
    return tmp_path / "rows.csv"


@pytest.fixture
def parquet_file(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    table = pyarrow.table({"first": X[:, 0], "kind": Y, "second": X[:, 1]})
    write_table(table, tmp_path / "rows.parquet", row_group_size=7)
    return tmp_path / "rows.parquet"


def joined(shard, size, start=0):
    pieces = list(shard.pieces(size, start))
    return (
        np.concatenate([X for X, _ in pieces]),
        [label for _, y in pieces for label in y],
        [len(X) for X, _ in pieces],
    )


@pytest.mark.parametrize("kind", ["arrays", "csv_file", "parquet_file"])
@pytest.mark.parametrize(("size", "start"), [(10, 0), (4, 0), (10, 20), (30, 0), (5, 15)])
def test_pieces_are_the_rows_from_any_multiple_on(kind, size, start, request):
    shard = ArrayShard(X, Y) if kind == "arrays" else FileShard(request.getfixturevalue(kind), "kind")
    rows, labels, lengths = joined(shard, size, start)
    assert np.array_equal(rows, X[start:]) and labels == Y[start:]
    assert lengths == [min(size, 25 - begin) for begin in range(start, 25, size)]
    assert len(shard) == 25


@pytest.mark.parametrize("kind", ["arrays", "csv_file", "parquet_file"])
def test_parts_of_a_shard_are_its_rows_one_after_another(kind, request):
    shard = ArrayShard(X, Y) if kind == "arrays" else FileShard(request.getfixturevalue(kind), "kind")
    parts = split([shard], 3, multiple=4)
    assert [len(part) for part in parts] == [8, 8, 9]
    rows, labels, _ = zip(*(joined(part, 5) for part in parts), strict=True)
    assert np.array_equal(np.concatenate(rows), X) and [*labels[0], *labels[1], *labels[2]] == Y


def test_shards_that_are_enough_stay_as_they_are():
    shards = [ArrayShard(X, None), ArrayShard(X, None)]
    assert split(shards, 2) == shards


def test_targets_are_numbers_where_they_are_asked_for(tmp_path):
    (tmp_path / "rows.csv").write_text("a,y\n1,2.5\n3,4\n")
    ((_, y),) = FileShard(tmp_path / "rows.csv", "y", as_numbers=True).pieces(10)
    assert y.tolist() == [2.5, 4.0]


def test_npz_files_and_datasets_are_shards(tmp_path):
    np.savez(tmp_path / "rows.npz", x=X, y=np.arange(25))
    rows, labels, _ = joined(as_shard(tmp_path / "rows.npz"), 10)
    assert np.array_equal(rows, X) and labels == list(range(25))
    assert len(as_shard(load_dataset("digits").train)) == 1442
    ((only, none),) = as_shard(X).pieces(100)
    assert np.array_equal(only, X) and none is None


def test_what_cannot_be_read_is_named(tmp_path, csv_file):
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n1,cat\n")
    for shard, words in {
        FileShard(csv_file, "colour"): "has no column 'colour'; it has first, kind, second",
        FileShard(tmp_path / "bad.csv"): "Every column but the target holds numbers",
        FileShard(tmp_path / "none.csv"): "cannot read .*none.csv",
        FileShard(tmp_path / "rows.txt"): "no file of rows",
    }.items():
        with pytest.raises(ShardError, match=words):
            list(shard.pieces(10))
    with pytest.raises(ValueError, match="25 rows and 3"):
        as_shard((X, [1, 2, 3]))


def test_rows_of_a_part_are_counted_from_the_part(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,kind\n" + "".join(f"{i},{i}\n" for i in range(10)))
    part = FileShard(path, "kind", start=2, stop=8).rows(1, 4)
    ((X, y),) = part.pieces(10)
    assert X[:, 0].tolist() == [3, 4, 5] and len(part) == 3
    assert y == ["3", "4", "5"]  # labels are text, also those that look like numbers


def test_a_part_of_an_npz_file_ends_where_it_should(tmp_path):
    np.savez(tmp_path / "rows.npz", x=np.arange(20.0).reshape(10, 2), y=np.arange(10))
    ((X, y),) = FileShard(tmp_path / "rows.npz", start=1, stop=4).pieces(10)
    assert (X[:, 0].tolist(), y.tolist()) == ([2, 4, 6], [1, 2, 3])


def test_shards_are_cut_into_whole_batches_and_at_least_as_many_as_wanted():
    whole = ArrayShard(np.arange(95.0)[:, None], None)
    assert [len(part) for part in split([whole], 2)] == [40, 55]
    parts = split([whole, whole], 3)
    assert len(parts) >= 3
    assert sorted(np.concatenate([part.X[:, 0] for part in parts])) == sorted(2 * list(range(95)))
