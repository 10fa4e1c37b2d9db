"""Files are replaced whole or not at all, and what is written is brought to the disk."""

import pytest
from torture.disk import recording

from cndpm import storage
from cndpm.storage import Appended, clear_leftovers, make_folder, replace_file


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_content_that_cannot_be_made_leaves_the_old_file_and_nothing_else(tmp_path):
    replace_file(tmp_path / "a", [b"old"])

    def pieces():
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(tmp_path / "a", pieces())
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_file_is_synced_before_it_is_renamed_and_its_folder_after(tmp_path):
    with recording() as recorded:
        replace_file(tmp_path / "a", [b"12", b"3"])
    assert [operation[0] for operation in recorded.operations] == [
        *("create", "write", "write", "sync", "rename", "sync folder")
    ]


def test_what_a_crash_left_is_cleared_and_the_file_stays(tmp_path):
    replace_file(tmp_path / "a", [b"whole"])
    (tmp_path / ".a.0123").write_bytes(b"half")
    (tmp_path / ".b.0123").write_bytes(b"of another file")
    clear_leftovers(tmp_path / "a")
    assert names(tmp_path) == [".b.0123", "a"]


def test_folders_are_made_with_those_above_them(tmp_path):
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "file")


def test_a_write_that_is_taken_in_parts_is_completed(tmp_path, monkeypatch):
    class Slow:
        def __getattr__(self, name):
            return getattr(original, name)

        def write(self, file, content):
            return original.write(file, content[:2])

    original = storage.os
    monkeypatch.setattr(storage, "os", Slow())
    log = Appended(tmp_path / "log")
    log.write(b"12345")
    log.close()
    assert ((tmp_path / "log").read_bytes(), log.size) == (b"12345", 5)
