import json
import zlib
from base64 import b64encode

import numpy as np
import pytest

from cndpm.serving.row_log import (
    Acknowledgement,
    LogError,
    Record,
    RowLog,
    WrittenLog,
    _linked,
    rows_digest,
    witness_of,
)
from cndpm.storage import Appended


def record(number, *, n_rows=2):
    X = np.random.default_rng(number).normal(size=(n_rows, 3)).astype(np.float32)
    return Record(number, X, ["a", 1, None, 2.5, True][:n_rows], ((None, 1), (f"request {number}", n_rows - 1)))


@pytest.fixture
def log(tmp_path):
    """A file of three records, the first number 7."""
    made = RowLog(tmp_path / "log", 7, {"before": Acknowledgement(6, 4, "digest")}, "link")
    for number in (7, 8, 9):
        made.append(record(number))
    made.close()
    return tmp_path / "log"


def same(a, b):
    return (a.number, a.y, a.requests) == (b.number, b.y, b.requests) and np.array_equal(a.X, b.X)


def test_records_are_read_as_they_were_written(log):
    read = WrittenLog(log)
    assert (read.first, read.before, read.known) == (7, "link", {"before": Acknowledgement(6, 4)})
    assert read.known["before"].digest == "digest"
    assert all(same(one, record(number)) for one, number in zip(read, (7, 8, 9), strict=True))


def test_every_label_comes_back_with_its_type(tmp_path):
    made = RowLog(tmp_path / "log", 0, {})
    made.append(record(0, n_rows=5))
    made.close()
    (read,) = WrittenLog(tmp_path / "log")
    assert [(type(label), label) for label in read.y] == [(type(label), label) for label in ["a", 1, None, 2.5, True]]


def test_a_last_line_without_its_end_is_left_out(log):
    witness_of(log).unlink()  # the process was killed before it had seen the record
    whole = log.read_bytes()
    start = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for length in range(start, len(whole)):
        log.write_bytes(whole[:length])
        assert [one.number for one in WrittenLog(log)] == [7, 8]


def test_a_log_that_ends_before_what_was_acknowledged_is_refused(log):
    whole = log.read_bytes()
    for length in (0, whole.index(b"\n") + 1, whole.rindex(b"\n", 0, len(whole) - 1) + 1, len(whole) - 1):
        log.write_bytes(whole[:length])
        with pytest.raises(LogError, match="records up to 9 were acknowledged"):
            list(WrittenLog(log))
    log.unlink()
    with pytest.raises(LogError, match="records up to 9 were acknowledged"):
        list(WrittenLog(log))


def test_a_flipped_bit_of_a_log_is_refused(log):
    whole = bytearray(log.read_bytes())
    for place in [*range(0, 8 * len(whole), 37), *range(8 * len(whole) - 16, 8 * len(whole))]:
        whole[place // 8] ^= 1 << place % 8
        log.write_bytes(whole)
        with pytest.raises(LogError, match=r"line \d+ of .* is damaged|ends before record 9"):
            list(WrittenLog(log))
        whole[place // 8] ^= 1 << place % 8


def test_a_flipped_bit_of_a_witness_does_no_harm(log):
    whole = bytearray(witness_of(log).read_bytes())
    for place in range(0, 8 * len(whole), 11):
        whole[place // 8] ^= 1 << place % 8
        witness_of(log).write_bytes(whole)
        assert [one.number for one in WrittenLog(log)] == [7, 8, 9]
        whole[place // 8] ^= 1 << place % 8


def test_lines_cannot_be_left_out_exchanged_or_taken_from_elsewhere(log, tmp_path):
    lines = log.read_bytes().splitlines(keepends=True)
    other = RowLog(tmp_path / "other", 7, {}, "elsewhere")
    other.append(record(7))
    other.close()
    foreign = (tmp_path / "other").read_bytes().splitlines(keepends=True)
    for chosen in ([0, 1, 3], [0, 2, 1, 3], [1, 2, 3], [0, 1, 1, 2, 3]):
        log.write_bytes(b"".join(lines[i] for i in chosen))
        with pytest.raises(LogError, match="is damaged"):
            list(WrittenLog(log))
    log.write_bytes(lines[0] + foreign[1] + b"".join(lines[2:]))
    with pytest.raises(LogError, match=r"line 2 .* is damaged"):
        list(WrittenLog(log))


@pytest.mark.parametrize(
    "wrong",
    [{"y": 5}, {"y": {}}, {"n": 3}, {"requests": []}, {"requests": [[None, 3]]}, {"requests": [["a", -1], ["b", 3]]},
     {"requests": [[None, 1.0], ["b", 1]]}, {"requests": [[["a"], 2]]}, {"requests": "ab"}],
)  # fmt: skip
def test_a_record_that_says_nonsense_is_refused_though_its_hash_is_right(tmp_path, wrong):
    made = RowLog(tmp_path / "log", 0, {})
    one = record(0)
    rows = {"number": 0, "n": 2, "d": 3, "X": b64encode(one.X.tobytes()).decode(), "y": one.y}
    made._write({**rows, "requests": one.requests, **wrong})
    with pytest.raises(LogError, match=r"line 2 of .* is no record"):
        list(WrittenLog(tmp_path / "log"))


@pytest.mark.parametrize("wrong", [{"first": float("inf")}, {"first": "x"}, {"known": [[[], 0, 0]]}, {"known": 3}])
def test_a_head_that_says_nonsense_is_refused_though_its_hash_is_right(tmp_path, wrong):
    text = json.dumps({"first": 0, "before": "", "model": "", "known": [], **wrong}).encode()
    (tmp_path / "log").write_bytes(b"%s %s\n" % (_linked("", text).encode(), text))
    with pytest.raises(LogError, match=r"line 1 of .* is no head of a log"):
        WrittenLog(tmp_path / "log")


@pytest.mark.parametrize("said", [b"x y", b"-1 00", b"9" * 5000 + b" 00", b"3.5 00", b""])
def test_a_witness_that_says_nonsense_does_no_harm_though_its_checksum_is_right(log, said):
    with witness_of(log).open("ab") as file:
        file.write(b"%s %08x\n" % (said, zlib.crc32(said)))
    assert [one.number for one in WrittenLog(log)] == [7, 8, 9]


def test_requests_are_found_in_their_record():
    first, second = record(4, n_rows=3).acknowledgements()
    assert (first, second) == ((None, Acknowledgement(4, 0)), ("request 4", Acknowledgement(4, 1)))


def test_a_digest_tells_rows_and_labels_apart():
    X = record(0, n_rows=3).X
    digests = [rows_digest(X, ["a", "b", "c"]), rows_digest(X, ["a", "b", 1]), rows_digest(X[::-1], ["a", "b", "c"])]
    assert len({*digests, rows_digest(X, None), rows_digest(X.reshape(-1, 1), None)}) == 5
    assert rows_digest(X.copy(), ("a", "b", "c")) == digests[0]
    assert record(0, n_rows=3).acknowledgements()[1][1].digest == rows_digest(X[1:], [1, None])


def test_a_record_is_on_the_disk_when_it_was_appended(tmp_path, monkeypatch):
    synced = []
    sync = Appended.sync
    monkeypatch.setattr(Appended, "sync", lambda file: (synced.append(file.size), sync(file)))
    made = RowLog(tmp_path / "log", 0, {})
    for number in (0, 1):
        made.append(record(number))
        assert synced[-1] == made.n_bytes
    made.close()


def test_a_record_that_is_left_out_is_missed(tmp_path):
    made = RowLog(tmp_path / "log", 7, {})
    for number in (7, 9):
        made.append(record(number))
    made.close()
    with pytest.raises(LogError, match="holds record 9 in place of 8"):
        list(WrittenLog(tmp_path / "log"))


def test_the_last_record_must_be_the_one_that_was_acknowledged(log, tmp_path):
    other = RowLog(tmp_path / "other", 7, {"before": Acknowledgement(6, 4, "digest")}, "link")
    for number, n_rows in ((7, 2), (8, 2), (9, 3)):
        other.append(record(number, n_rows=n_rows))
    other.close()
    witness_of(log).write_bytes(witness_of(tmp_path / "other").read_bytes())
    with pytest.raises(LogError, match=r"record 9 of .* is another one than was acknowledged"):
        list(WrittenLog(log))


def test_rows_of_requests_are_counted_on():
    X = np.zeros((6, 1), dtype=np.float32)
    places = Record(4, X, None, (("a", 2), ("b", 3), ("c", 1))).acknowledgements()
    assert [(name, place.row) for name, place in places] == [("a", 0), ("b", 2), ("c", 5)]
