"""A small version of ``python -m torture.readers``, and that it would notice what it looks for."""

from pathlib import Path
from random import Random

import pytest
from torture.attempts import Count, carry_out
from torture.formats import formats, write_files
from torture.mutations import mutate
from torture.reader_worker import damage, read_one

from cndpm.datasets import DamagedFileError
from torture import readers

PER_FORMAT = 50


def test_no_damaged_file_ends_the_process_or_raises_anything_foreign():
    count = carry_out(Count(readers.ATTACK), 0, range(PER_FORMAT * len(formats())))
    assert count.lines == []
    assert {name: counts.total() for name, counts in count.by_name.items()} == {f.name: PER_FORMAT for f in formats()}
    assert count.total("refused") > count.total("changed") + count.total("equal")


@pytest.mark.parametrize("chosen", formats(), ids=lambda chosen: chosen.name)
def test_a_file_that_was_not_damaged_is_read_as_equal_and_an_empty_one_refused(tmp_path: Path, chosen):
    write_files(chosen.files, tmp_path)
    assert read_one(tmp_path, chosen, chosen.files[chosen.target], False) == ("equal", "")
    assert read_one(tmp_path, chosen, b"", False)[0] == "refused"


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
