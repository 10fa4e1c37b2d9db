"""The disk that forgets forgets what POSIX allows it to, and no more."""

from pathlib import Path
from random import Random

from torture.disk import FATES, survivors

A, B, FOLDER = Path("/d/a"), Path("/d/b"), Path("/d")
WRITTEN = [("create", A, 1), ("write", 1, b"12"), ("sync", 1), ("write", 1, b"34")]
NAMED = [*WRITTEN, ("sync folder", FOLDER), ("rename", A, B)]


def left(operations, fate, seed=0):
    return survivors(operations, fate, Random(seed))


def test_what_was_not_synced_may_be_lost_or_kept():
    assert left(WRITTEN, "kept") == {A: b"1234"}
    assert left(WRITTEN, "lost") == {}
    assert left(WRITTEN, "names kept") == {A: b"12"}
    assert left(NAMED, "lost") == {A: b"12"}
    assert left(NAMED, "names kept") == {B: b"12"}
    assert left(NAMED, "content kept") == {A: b"1234"}


def test_what_was_synced_is_never_lost():
    safe = [*NAMED, ("sync", 1), ("sync folder", FOLDER)]
    assert [left(safe, fate) for fate in FATES] == [{B: b"1234"}] * len(FATES)
    assert left([*safe, ("unlink", B), ("sync folder", FOLDER)], "lost") == {}


def test_by_chance_every_part_may_survive():
    found = [left(NAMED, "chance", seed) for seed in range(40)]
    assert {content for files in found for content in files.values()} == {b"12", b"123", b"1234"}
    assert {path for files in found for path in files} == {A, B}
