import numpy as np
import pytest

from cndpm.serving.row_log import Acknowledgement, LogError, Record, RowLog, read_log


def record(number, *, n_rows=2):
    X = np.random.default_rng(number).normal(size=(n_rows, 3)).astype(np.float32)
    return Record(number, X, ["a", 1, None, 2.5, True][:n_rows], ((None, 1), (f"request {number}", n_rows - 1)))


@pytest.fixture
def log(tmp_path):
    """A file of three records, the first number 7."""
    made = RowLog(tmp_path / "log", 7, {"before": Acknowledgement(6, 4)})
    for number in (7, 8, 9):
        made.append(record(number))
    made.close()
    return tmp_path / "log"


def same(a, b):
    return (a.number, a.y, a.requests) == (b.number, b.y, b.requests) and np.array_equal(a.X, b.X)


def test_records_are_read_as_they_were_written(log):
    known, records = read_log(log)
    assert known == {"before": Acknowledgement(6, 4)}
    assert all(same(read, record(number)) for read, number in zip(records, (7, 8, 9), strict=True))


def test_every_label_comes_back_with_its_type(tmp_path):
    made = RowLog(tmp_path / "log", 0, {})
    made.append(record(0, n_rows=5))
    made.close()
    (read,) = read_log(tmp_path / "log")[1]
    assert [(type(label), label) for label in read.y] == [(type(label), label) for label in ["a", 1, None, 2.5, True]]


def test_a_last_line_that_was_cut_off_anywhere_is_left_out(log):
    whole = log.read_bytes()
    start = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for length in range(start, len(whole)):
        log.write_bytes(whole[:length])
        assert [one.number for one in read_log(log)[1]] == [7, 8]


def test_damage_before_the_last_line_is_refused(log):
    lines = log.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"number":8', b'"number":5')
    log.write_bytes(b"".join(lines))
    with pytest.raises(LogError, match=r"line 3 .* acknowledged rows follow"):
        list(read_log(log)[1])


def test_requests_are_found_in_their_record():
    first, second = record(4, n_rows=3).acknowledgements()
    assert (first, second) == ((None, Acknowledgement(4, 0)), ("request 4", Acknowledgement(4, 1)))
