"""A small version of ``python -m torture.readers``, and that it would notice what it looks for."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from torture.formats import formats, write_files
from torture.mutations import mutate
from torture.reader_worker import damage, read_one
from torture.readers import BAD, Tally, attack, table

from cndpm.datasets import DamagedFileError
from torture import readers

PER_FORMAT = 200


def test_no_damaged_file_ends_the_process_or_raises_anything_foreign():
    tally = attack(seed=0, n=PER_FORMAT * len(formats()))
    assert tally.bad == []
    assert {name: counts.total() for name, counts in tally.counts.items()} == {f.name: PER_FORMAT for f in formats()}
    assert tally.total("refused") > tally.total("changed") + tally.total("equal")


@pytest.mark.parametrize("chosen", formats(), ids=lambda chosen: chosen.name)
def test_a_file_that_was_not_damaged_is_read_as_equal_and_an_empty_one_refused(tmp_path: Path, chosen):
    write_files(chosen.files, tmp_path)
    assert read_one(tmp_path, chosen, chosen.files[chosen.target], False) == ("equal", "")
    assert read_one(tmp_path, chosen, b"", False)[0] == "refused"


def worker_of(monkeypatch, script: str) -> None:
    """Has every worker run `script`, which finds its first attempt and the end in `first` and `end`."""

    def start(seed: int, first: int, end: int, folder: str):
        command = [sys.executable, "-c", f"import os, sys; first, end = {first}, {end}\n{script}"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE)

    monkeypatch.setattr(readers, "_start", start)


LINE = "print(i, 'refused', '0.1', '', sep='\\t', flush=True)"


def test_a_death_is_counted_named_and_gone_beyond(monkeypatch):
    worker_of(monkeypatch, f"for i in range(first, end):\n    if i in (2, 5): os.abort()\n    {LINE}")
    tally = attack(seed=0, n=8)
    assert (tally.total("deaths"), tally.total("refused")) == (2, 6)
    assert tally.bad[0] == f"deaths: attempt 2, {formats()[2].name}, the process ended with -6"


def test_a_worker_that_does_not_answer_is_ended_and_counted(monkeypatch):
    monkeypatch.setattr(readers, "_PATIENCE", 0.3)
    worker_of(monkeypatch, f"for i in range(first, end):\n    if i == 1: sys.stdin.read()\n    {LINE}")
    monkeypatch.setattr(readers, "_MOST_DEATHS", 1)
    assert attack(seed=0, n=3).bad == [f"deaths: attempt 1, {formats()[1].name}, the process ended with -9"]


@pytest.mark.parametrize("outcome", BAD)
def test_every_bad_outcome_ends_with_1(monkeypatch, capsys, outcome):
    tally = Tally()
    tally.add("PNG", 7, outcome, 0.5, "what was done")
    monkeypatch.setattr(readers, "attack", lambda seed, n: tally)
    assert readers.main(["--n", "1"]) == 1
    assert f"{outcome}: attempt 7, PNG, what was done" in capsys.readouterr().out


def test_outcomes_that_are_allowed_end_with_0(monkeypatch, capsys):
    tally = Tally({"PNG": Counter(refused=3, equal=1, changed=2)})
    monkeypatch.setattr(readers, "attack", lambda seed, n: tally)
    assert readers.main(["--n", "6", "--seed", "5"]) == 0
    assert "| PNG | 6 | 0 | 0 | 0 | 0 | 2 | 1 | 3 |" in table(tally)
    assert "seed 5" in capsys.readouterr().out


def test_foreign_and_unnamed_errors_and_silent_changes_are_told_apart(tmp_path: Path, monkeypatch):
    chosen, alpha = (next(f for f in formats() if f.name == name) for name in ("PNG grey", "PNG alpha"))
    write_files(chosen.files, tmp_path)
    content, other = chosen.files[chosen.target], alpha.files[alpha.target]
    assert read_one(tmp_path, chosen, other, False)[0] == "changed"  # all its checksums fit
    assert read_one(tmp_path, chosen, b"", False)[0] == "refused"
    monkeypatch.setattr("torture.formats._seal_png", lambda content: b"")
    assert read_one(tmp_path, chosen, other, False)[0] == "silent"
    assert read_one(tmp_path, chosen, other, True)[0] == "changed"
    for error, outcome in ((KeyError("x"), "foreign"), (DamagedFileError("elsewhere"), "unnamed")):

        def load(*_, error=error):
            raise error

        monkeypatch.setattr("torture.reader_worker.load_dataset", load)
        assert read_one(tmp_path, chosen, content, False)[0] == outcome


def test_attempts_are_functions_of_seed_and_number():
    assert damage(3, 40) == damage(3, 40)
    assert len({damage(3, 40 + len(formats()) * i)[1] for i in range(20)}) > 15


def test_mutations_change_nearly_every_file():
    content, other = bytes(range(256)) * 4, bytes(reversed(range(256))) * 4
    changed = [mutate(content, other, Random(i))[1] != content for i in range(300)]
    assert sum(changed) > 280


def test_an_attempt_is_written_to_be_looked_at(tmp_path: Path, capsys):
    assert readers.main(["--seed", "0", "--show", "4", "--keep", str(tmp_path)]) == 0
    chosen, content, _, _ = damage(0, 4)
    assert (tmp_path / chosen.target).read_bytes() == content
    assert chosen.target in capsys.readouterr().out
