import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cndpm.datasets import DamagedFileError, files
from cndpm.datasets.files import check_memory, memory_limit, open_content, read_at_most, read_bytes


@given(st.binary(), st.booleans())
def test_reading_returns_what_was_written_gzipped_or_not(tmp_path_factory, content, zipped):
    path = tmp_path_factory.mktemp("files") / ("a.gz" if zipped else "a")
    path.write_bytes(gzip.compress(content) if zipped else content)
    assert read_bytes(path) == content


def test_the_limit_is_a_part_of_the_memory_that_there_is():
    assert 1 << 26 < memory_limit() < 1 << 45


def test_a_container_with_less_memory_lowers_the_limit(tmp_path: Path, monkeypatch):
    (tmp_path / "memory.max").write_text("1000000\n")
    monkeypatch.setattr(files, "_CONTAINER_LIMIT", tmp_path / "memory.max")
    assert memory_limit.__wrapped__() == 500_000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_limit.__wrapped__() == memory_limit()


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(files, "memory_limit", lambda: 5000)


def test_a_claim_above_the_limit_is_refused_with_both_numbers(tmp_path: Path, little_memory):
    check_memory(tmp_path / "a", 5000)
    with pytest.raises(DamagedFileError, match=r"a claims to hold 5001 bytes; at most 5000 are allowed"):
        check_memory(tmp_path / "a", 5001)


def test_a_small_file_that_would_grow_above_the_limit_is_refused(tmp_path: Path, little_memory):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(1_000_000)))
    assert path.stat().st_size < 5000
    with pytest.raises(DamagedFileError, match=r"bomb\.gz claims to hold 5001"):
        read_bytes(path)


def test_never_more_than_asked_for_is_read():
    file = io.BytesIO(bytes(3_000_000))
    assert len(read_at_most(file, 2_500_000)) == 2_500_000
    assert file.tell() == 2_500_000
    assert len(read_at_most(file, 1 << 60)) == 500_000


@pytest.mark.parametrize("name", ["folder", "absent", "absent.gz"])
def test_what_is_no_readable_file_is_refused_by_name(tmp_path: Path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(DamagedFileError, match=rf"{name} cannot be read"):
        read_bytes(tmp_path / name)


def test_memory_that_runs_out_while_reading_is_an_error_that_names_the_file(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(DamagedFileError, match="a does not fit into memory"), open_content(tmp_path / "a"):
        raise MemoryError
