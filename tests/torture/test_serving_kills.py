"""A small version of ``python -m torture.serving``, and that it would notice."""

from torture.serving import attack

from cndpm.serving.row_log import RowLog
from cndpm.serving.store import Store


def test_a_killed_server_loses_nothing_that_it_acknowledged(tmp_path):
    n_kills, n_rows, bad = attack(tmp_path, n=4, seed=0)
    assert (n_kills, bad) == (4, [])
    assert n_rows > 0


def test_rows_that_are_acknowledged_and_not_written_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(RowLog, "append", lambda *_: None)
    monkeypatch.setattr(Store, "checkpoint", lambda _: None)
    assert attack(tmp_path, n=2, seed=0)[2]
