"""A log is read back as it was written; what is damaged in it is told, what a crash cut off is not."""

import json
from random import Random

import pytest
from torture.mutations import mutate

from cndpm.experiments.record_files import Log, LogFile, digest_of, read_log


def written(path, n=6):
    log = LogFile(path)
    for step in range(1, n + 1):
        log.append("progress", step, {"value": step * 1.5})
    log.close()
    return path.read_bytes()


def steps(path):
    return [row["step"] for row in read_log(path).rows]


def test_a_log_says_how_long_it_is_and_what_it_holds(tmp_path):
    log = LogFile(tmp_path / "log")
    log.append("progress", 1, {})
    size, digest = log.size, log.digest
    log.append("progress", 2, {})
    log.close()
    assert digest_of(tmp_path / "log", size) == digest
    assert digest_of(tmp_path / "log", 10_000) is None


def test_a_changed_line_is_named_and_the_others_are_read(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(written(path).replace(b"4.5", b"4.6"))
    assert read_log(path).problems == ("line 3 is damaged",)
    assert steps(path) == [1, 2, 4, 5, 6]


def test_a_missing_line_is_named(tmp_path):
    path = tmp_path / "log"
    lines = written(path).splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert read_log(path).problems == ("lines are missing or repeated before line 3",)


def test_a_line_cut_off_at_the_end_is_no_damage(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(written(path)[:-7])
    assert read_log(path).problems == ()
    assert steps(path) == [1, 2, 3, 4, 5]


def test_what_lies_beyond_the_checkpoint_of_a_resumption_is_dropped_damaged_or_not(tmp_path):
    path = tmp_path / "log"
    content = written(path)
    start = len(b"".join(content.splitlines(keepends=True)[:2]))
    path.write_bytes(content.replace(b"6.0", b"6.6")[:-7])
    log = LogFile(path)
    log.append("resume", 2, {"from": start})
    log.append("progress", 3, {"value": 0})
    log.close()
    read = read_log(path)
    assert read.problems == ()
    assert [(row["event"], row["step"]) for row in read.rows][2:] == [("resume", 2), ("progress", 3)]


def test_no_mutation_changes_a_row_unseen(tmp_path):
    path, other = tmp_path / "log", tmp_path / "other"
    content, spliced = written(path), written(other, n=8)
    rows = [json.dumps(row) for row in read_log(path).rows]
    for i in range(400):
        path.write_bytes(mutate(content, spliced, Random(i))[1])
        read = read_log(path)
        found = [json.dumps(row) for row in read.rows]
        assert set(found) <= {*rows, *(json.dumps(row) for row in read_log(other).rows)}
        assert read.problems or found == rows[: len(found)] or found[: len(rows)] == rows


@pytest.mark.parametrize(
    "line", ["[]", '{"event": 1, "step": 2}', '{"event": "x", "step": true}', "[" * 5000, "\udcff"]
)
def test_lines_that_are_no_events_are_named(tmp_path, line):
    (tmp_path / "log").write_text(f"{line}\n", errors="surrogateescape")
    assert read_log(tmp_path / "log") == Log([], ("line 1 is damaged",))


def test_lines_of_another_run_do_not_fit(tmp_path):
    log = LogFile(tmp_path / "log", salt=5)
    log.append("progress", 1, {})
    log.close()
    assert [row["step"] for row in read_log(tmp_path / "log", salt=5).rows] == [1]
    assert read_log(tmp_path / "log", salt=6) == Log([], ("line 1 is damaged",))
