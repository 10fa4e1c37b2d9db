"""The loop of attempts counts every attempt once, in any number of processes, and every death."""

import json
import subprocess

import pytest
from figures.facts import missing_facts
from torture.attempts import Attack, Count, carry_out, main

from torture import attempts

NAMES = ["a", "b", "c"]
BODY = {
    "fine": "yield Outcome(i, 'refused', 'said')",
    "deadly": "os.abort() if i in (2, 5) else None; yield Outcome(i, 'refused')",
    "silent": "sys.stdin.read() if i == 1 else None; yield Outcome(i, 'refused')",
    "broken": "yield Outcome(i, 'foreign' if i == 4 else 'refused', f'argument {arguments[0]}')",
    "many": "yield Outcome(i, 'answers', times=10); yield Outcome(i, 'copies', times=i)",
    "files": "(folder / str(i)).write_text(str(seed)); yield Outcome(i, 'refused')",
}


@pytest.fixture
def attack(tmp_path, monkeypatch):
    """Returns an attack whose worker does what one of the bodies above says."""
    source = "import os, sys\nfrom torture.attempts import Outcome\n"
    for name, body in BODY.items():
        loop = f"    for i in range(first, end):\n        {body}\n"
        (tmp_path / f"{name}_worker.py").write_text(
            f"{source}def attempts(seed, first, end, folder, *arguments):\n{loop}"
        )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return lambda name: Attack("files", f"{name}_worker", 8, ("foreign",), ("refused",), NAMES, ("x",))


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_attempt_is_counted_once_in_any_number_of_processes(attack, jobs):
    count = carry_out(Count(attack("fine")), 0, range(3, 11), jobs=jobs)
    assert count.made == set(range(3, 11))
    assert {name: dict(outcomes) for name, outcomes in count.by_name.items()} == {
        "a": {"refused": 3}, "b": {"refused": 3}, "c": {"refused": 2}
    }  # fmt: skip


def test_a_death_is_counted_named_and_gone_beyond(attack):
    count = carry_out(Count(attack("deadly")), 0, range(8))
    assert (count.total("deaths"), count.total("refused")) == (2, 6)
    assert count.lines[0] == "deaths: attempt 2 on c, the process ended with -6"


def test_a_worker_that_does_not_answer_is_ended_and_counted(attack, monkeypatch):
    count = Count(attack("silent"))

    def add(outcome, seconds=0.0):
        Count.add(count, outcome, seconds)
        monkeypatch.setattr(attempts, "_PATIENCE", 0.1)  # once it has begun, which takes as long as it takes

    monkeypatch.setattr(count, "add", add)
    monkeypatch.setattr(attempts, "_MOST_DEATHS", 1)
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: popen(*a, stdin=subprocess.PIPE, **k))
    assert carry_out(count, 0, range(3)).lines == ["deaths: attempt 1 on b, the process ended with -9"]


def test_when_the_time_is_over_no_death_is_counted(attack):
    count = carry_out(Count(attack("fine")), 0, range(10**9), seconds=1.0)
    assert count.lines == []
    assert len(count.made) < 10**9


def test_outcomes_that_came_several_times_are_summed(attack):
    count = carry_out(Count(attack("many")), 0, range(4))
    assert (count.total("answers"), count.total("copies"), len(count.made)) == (40, 6, 4)


def test_a_bad_outcome_ends_with_1_and_is_shown(attack, capsys):
    assert main(attack("broken"), ["--seed", "5"]) == 1
    shown = capsys.readouterr().out
    assert "| b | 0 | 1 | 2 |" in shown
    assert "8 of the attempts 0 to 8, seed 5: deaths 0, foreign 1, refused 7" in shown
    assert "foreign: attempt 4 on b, argument x" in shown
    assert main(attack("broken"), ["--n", "4"]) == 0


def test_one_attempt_can_be_made_alone_and_leaves_its_files(attack, capsys, tmp_path):
    assert main(attack("files"), ["--only", "7", "--seed", "3", "--keep", str(tmp_path / "kept")]) == 0
    assert [(file.name, file.read_text()) for file in (tmp_path / "kept").rglob("*") if file.is_file()] == [("7", "3")]
    assert "refused: attempt 7 on b" in capsys.readouterr().out


def test_the_whole_is_the_sum_of_its_parts(attack, capsys):
    for part in (["--from", "0", "--to", "4"], ["--from", "4", "--to", "8"]):
        main(attack("broken"), part)
    shown = capsys.readouterr().out
    assert "foreign 0, refused 4" in shown and "foreign 1, refused 3" in shown


def test_the_counts_become_a_line_of_a_record(attack, capsys, tmp_path):
    main(attack("broken"), ["--seed", "5", "--commit", "abc1234", "--out", str(tmp_path / "record.jsonl")])
    (line,) = map(json.loads, (tmp_path / "record.jsonl").read_text().splitlines())
    wanted = {"attack": "files", "attempts": 8, "harm": 1, "deaths": 0, "foreign": 1, "refused": 7, "seed": 5}
    assert wanted.items() <= line.items()
    assert line["by_name"]["b"] == {"refused": 2, "foreign": 1}
    assert missing_facts(tmp_path / "record.jsonl") == []
    assert "foreign 1" in capsys.readouterr().out
