"""A source gives the numbers of the rows and fields that it names, and no others."""

import json
from pathlib import Path

import pytest
from figures.records import FigureError
from figures.sources import Source, cells_of, published_cells

from cndpm.paper import EXPERIMENTS

ROWS = [
    {"learner": "a", "commit": "one", "seed": 0, "accuracy": 90.0, "tasks": [1.0, 4.0], "seconds": 7.0},
    {"learner": "a", "commit": "two", "seed": 1, "accuracy": 92.0, "tasks": [3.0, 8.0], "seconds": 9.0},
    {"learner": "b", "commit": "one", "seed": 0, "accuracy": -50.0, "seconds": 2.0},
]


def numbers_of(folder: Path, sources: list[Source]) -> list[float]:
    return sorted(set(cells_of(folder, sources).values()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "some.json").write_text(json.dumps(ROWS))
    return tmp_path


def test_rows_and_fields_are_chosen(folder: Path):
    source = {"record": "some.json", "where": {"learner": "b"}, "fields": ["accuracy"]}
    assert numbers_of(folder, [source]) == [50.0]
    unlike = {"record": "some.json", "unlike": {"learner": "a"}}
    assert numbers_of(folder, [unlike]) == [2.0, 50.0]


def test_means_are_over_seeds_of_one_learner_though_commits_differ(folder: Path):
    found = numbers_of(folder, [{"record": "some.json", "fields": ["accuracy"]}])
    assert found == [1.0, 50.0, 90.0, 91.0, 92.0]  # no mean of learners


def test_rows_of_one_seed_are_told_apart_by_their_commits(folder: Path):
    again = [{**ROWS[0], "accuracy": 80.0, "commit": "two"}]
    (folder / "some.json").write_text(json.dumps([*ROWS, *again]))
    found = numbers_of(folder, [{"record": "some.json", "fields": ["accuracy"]}])
    assert 86.0 in found  # of the second commit
    assert 85.0 not in found  # of seed 0 twice


def test_pooled_rows_may_differ_in_anything(folder: Path):
    assert 44.0 in numbers_of(folder, [{"record": "some.json", "fields": ["accuracy"], "pooled": True}])


def test_lists_are_averaged_by_position(folder: Path):
    source = {"record": "some.json", "where": {"learner": "a"}, "fields": ["tasks"]}
    assert numbers_of(folder, [source]) == [1.0, 2.0, 3.0, 4.0, 6.0, 8.0]


def test_published_values_are_those_of_one_experiment(folder: Path):
    assert 93.23 in numbers_of(folder, ["paper: sharing"])
    assert 45.21 not in numbers_of(folder, ["paper: sharing"])
    with pytest.raises(FigureError, match="no experiment"):
        numbers_of(folder, ["paper: nothing"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"record": "some.json", "where": {"learner": "c"}}, "has no rows"),
        ({"record": "some.json", "fields": ["loss"]}, "has loss"),
        ({"record": "some.json", "wher": {}}, "wher mean nothing"),
    ],
)
def test_a_source_that_names_nothing_is_refused(folder: Path, source, message: str):
    with pytest.raises(FigureError, match=message):
        numbers_of(folder, [source])


def test_a_cell_is_named_by_what_tells_its_rows_from_others(folder: Path):
    cells = cells_of(folder, [{"record": "some.json", "fields": ["accuracy", "tasks"]}])
    assert cells["some.json learner=b accuracy"] == 50.0
    assert cells["some.json commit=two accuracy"] == 92.0
    assert cells["some.json learner=a accuracy mean"] == 91.0
    assert cells["some.json learner=a accuracy error"] == 1.0
    assert cells["some.json learner=a tasks.1 mean"] == 6.0
    assert cells["some.json learner=a commit=one tasks.1"] == 4.0


def test_rows_that_nothing_tells_apart_are_named_by_their_places(folder: Path):
    (folder / "some.json").write_text(json.dumps([{"accuracy": 1.5}, {"accuracy": 2.5}]))
    cells = cells_of(folder, ["some.json"])
    assert cells["some.json rows 1 accuracy"] == 2.5


def test_published_cells_have_names_of_their_own(folder: Path):
    for experiment in EXPERIMENTS:
        names = [name for name, _ in published_cells(experiment)]
        assert len(set(names)) == len(names)
