"""Records are readable at any moment and in any state that a crash can leave."""

import json

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experiments.record import (
    CONFIG,
    LOCK,
    LOG,
    SCHEMA_VERSION,
    SUMMARY,
    RecordError,
    find_records,
    read_record,
)
from cndpm.experiments.record_files import LogFile, read_log, salt_of, write_json

HEAD = {"schema": SCHEMA_VERSION, "config": {"seed": 0}, "environment": {}}


@pytest.fixture
def folder(tmp_path):
    write_json(tmp_path / CONFIG, HEAD)
    return tmp_path


def log(folder, *rows):
    """Writes events; a resumption goes back to the end of the event that it names."""
    file = LogFile(folder / LOG, salt_of(HEAD["config"]))
    ends = []
    for row in rows:
        back = {"from": ends[row["after"]]} if "after" in row else {}
        file.append(row["event"], row["step"], {name: row[name] for name in row if name != "after"} | back)
        ends.append(file.size)
    file.close()


def evaluation(step, accuracy):
    return {"event": "evaluation", "step": step, "accuracy": accuracy}


def test_columns_hold_one_value_per_evaluation(folder):
    log(folder, {"event": "start", "step": 0}, evaluation(5, 50.0), {"event": "progress", "step": 6, "n_experts": 2})
    record = read_record(folder)
    assert record.column("step") == [5]
    assert record.column("accuracy") == [50.0]
    assert record.column("n_experts") == [None]
    assert record.column("n_experts", "progress") == [2]


def test_what_lies_beyond_a_resumption_is_dropped(folder):
    log(
        folder,
        evaluation(5, 50.0),
        evaluation(9, 60.0),
        {"event": "resume", "step": 5, "after": 0},
        evaluation(9, 60.0),
    )
    assert read_record(folder).column("step") == [5, 9]


def test_of_two_evaluations_at_one_step_the_later_counts(folder):
    log(folder, evaluation(9, 60.0), {"event": "resume", "step": 9, "after": 0}, evaluation(9, 61.0))
    assert read_record(folder).column("accuracy") == [61.0]


@given(st.data())
def test_a_log_cut_off_anywhere_gives_the_events_before_the_cut(tmp_path_factory, data):
    rows = [evaluation(step, step * 1.5) for step in range(1, 6)]
    folder = tmp_path_factory.mktemp("log")
    log(folder, *rows)
    path = folder / LOG
    text = path.read_bytes()
    cut = data.draw(st.integers(0, len(text)))
    path.write_bytes(text[:cut])
    complete = text[:cut].count(b"\n")
    # A line that lacks nothing but its end is complete too.
    assert read_log(path, salt=salt_of(HEAD["config"])).rows in (rows[:complete], rows[: complete + 1])


def test_status_follows_lock_and_summary(folder):
    assert read_record(folder).status == "interrupted"
    with FileLock(folder / LOCK):
        assert read_record(folder).status == "running"
    assert read_record(folder).status == "interrupted"
    write_json(folder / SUMMARY, {"accuracy": 1.0}, beside=HEAD["config"])
    record = read_record(folder)
    assert (record.status, record.summary) == ("complete", {"accuracy": 1.0})


def test_a_folder_without_record_is_named(tmp_path):
    with pytest.raises(RecordError, match=str(tmp_path)):
        read_record(tmp_path)


def test_a_record_of_another_schema_is_refused_with_both_numbers(folder):
    (folder / CONFIG).write_text(json.dumps(HEAD | {"schema": 99}))
    with pytest.raises(RecordError, match=r"schema 99; .* reads schema 2"):
        read_record(folder)


def test_a_damaged_configuration_is_refused(folder):
    (folder / CONFIG).write_text('{"schema": 2,')
    with pytest.raises(RecordError, match="damaged"):
        read_record(folder)


def test_records_are_found_at_any_depth(folder):
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / CONFIG).write_text(json.dumps(HEAD))
    assert find_records(folder) == [folder, folder / "a" / "b"]
