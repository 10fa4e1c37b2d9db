"""Every line of a record names the command, commit, machine and seeds of its figures."""

import json
import sys
from pathlib import Path

import pytest
from figures.facts import append, facts, main, missing_facts

RECORDS = sorted((Path(__file__).resolve().parents[2] / "docs" / "results" / "records").iterdir())
WHOLE = {"command": "python -m a", "commit": "abc1234", "machine": "a machine", "seed": 0}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_record_names_command_commit_machine_and_seeds(record: Path):
    assert missing_facts(record) == []


def test_a_command_is_told_without_where_things_lie():
    words = ["python", "-m", "a", "--n", "3", "--out", "here", "--data=there", "--commit", "abc1234", "two words"]
    told = facts(commit="abc1234", words=words)
    assert told["command"] == "python -m a --n 3 'two words'"
    assert told["commit"] == "abc1234"
    assert "cores, Python" in told["machine"]


def test_what_a_command_prints_is_kept_with_its_facts(tmp_path: Path, capsys):
    words = ["python", "-c", "print('words'); print('{\"ratio\": 1.5}'); raise SystemExit(3)"]
    out = tmp_path / "kept.jsonl"
    code = main(["--out", str(out), "--commit", "abc1234", "--seeds", "0", "1", "--", *words])
    (line,) = map(json.loads, out.read_text().splitlines())
    assert (code, line["ratio"], line["seeds"], line["commit"]) == (3, 1.5, [0, 1], "abc1234")
    assert line["command"].startswith("python -c")
    assert missing_facts(out) == []
    assert json.loads(capsys.readouterr().out) == line


@pytest.mark.parametrize(
    ("fact", "field"), [("command", "command"), ("commit", "commit"), ("machine", "machine"), ("seeds", "seed")]
)
def test_a_row_without_a_fact_is_noticed(tmp_path: Path, fact: str, field: str):
    append(tmp_path / "some.jsonl", [WHOLE, {name: value for name, value in WHOLE.items() if name != field}])
    assert missing_facts(tmp_path / "some.jsonl") == [fact]


def test_facts_may_stand_around_the_runs_or_in_their_environment(tmp_path: Path):
    environment = {"command": "python -m a", "commit": "abc1234", "device": "a machine"}
    append(tmp_path / "some.jsonl", [{"environment": environment, "runs": [{"seed": 0}, {"seed": 1}]}])
    assert missing_facts(tmp_path / "some.jsonl") == []


def test_the_command_of_a_process_is_its_module_and_arguments(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/a.py", "--n", "3"])
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", type("Spec", (), {"name": "torture.calls"})())
    assert facts()["command"] == "python -m torture.calls --n 3"
