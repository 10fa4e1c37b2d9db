"""What labels cost, on a small scale."""

import json

import pytest

from benchmarks import labels


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_every_number_of_labels_is_measured_and_recorded(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(labels, "_N_BLOCKS", 2)
    record = tmp_path / "labels.jsonl"
    assert labels.main(["--labels", "12", "4", "--out", str(record), "--commit", "abc1234"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    written = [json.loads(line) for line in record.read_text().splitlines()]
    assert [row["labels"] for row in printed] == [4, 12]
    assert [{name: line[name] for name in row} for line, row in zip(written, printed, strict=True)] == printed
    assert (written[0]["seed"], written[0]["commit"]) == (0, "abc1234")
    assert printed[0]["file_kib"] < printed[1]["file_kib"]
