import hashlib
import io
import pickle
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import requests

from cndpm.datasets import FetchError, fetch_dataset
from cndpm.datasets.catalogue import Download, Entry, Layout, catalogue, catalogue_entry
from cndpm.datasets.fetching import fetch_entry
from cndpm.names import UnknownNameError


def batch(n: int) -> bytes:
    """A file of CIFAR10 with n images."""
    pixels = np.arange(n * 3072).astype(np.uint8).reshape(n, 3072)
    return pickle.dumps({b"data": pixels, b"labels": [4] * n}, protocol=2)


CONTENT = batch(100)


class Handler(BaseHTTPRequestHandler):
    """Serves `server.files`; the path's folder says how.

    /broken/ breaks off in the middle, /norange/ ignores ranges, /long/ announces more than there is,
    /endless/ sends more, /short/ less without saying how much, /page/ answers with a page of text instead.
    """

    def do_GET(self):
        folder, _, name = self.path.lstrip("/").rpartition("/")
        content = self.server.files.get(name)
        wanted = self.headers.get("Range")
        self.server.requests.append((self.path, wanted))
        if content is None or folder == "empty":
            return self.send_error(404)
        if folder == "corrupt":
            content = b"\xff" + content[1:]
        if folder == "page":
            content = b"<html>Please log in.</html>"
        if folder in ("long", "endless"):
            content = content + bytes(1 << 20)
        begin = int(wanted[len("bytes=") : -1]) if wanted and folder != "norange" else 0
        if begin >= len(content):
            return self.send_error(416)
        self.send_response(206 if begin else 200)
        if folder not in ("endless", "short"):
            self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        end = len(content) // 2 if folder in ("broken", "short") else len(content)
        self.wfile.write(content[begin:end])
        return None

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.requests = {"part.bin": CONTENT}, []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def address(server, folder: str) -> str:
    return f"http://127.0.0.1:{server.server_port}/{folder}/"


def make_entry(*, file="part.bin", content=CONTENT, unpack=False) -> Entry:
    sha256 = hashlib.sha256(content).hexdigest()
    return Entry(
        name="made-up",
        summary="",
        n_train=100,
        n_test=100,
        classes=tuple("0123456789"),
        layouts=(Layout(format="cifar", folders=("made-up",), train=("part.bin",), test=("part.bin",)),),
        downloads=(Download(file=file, folder="made-up", sha256=sha256, size=len(content), unpack=unpack),),
    )


def fetch(entry: Entry, folder: Path, *mirrors: str, progress=None, force=False) -> Path:
    fetch_entry(entry, folder, mirrors=mirrors, progress=progress, force=force)
    return folder / "made-up" / "part.bin"


def test_a_file_arrives_whole_and_progress_ends_at_its_size(server, tmp_path):
    told = []
    path = fetch(make_entry(), tmp_path, address(server, "good"), progress=lambda *news: told.append(news))
    assert path.read_bytes() == CONTENT
    assert told[-1] == ("part.bin", len(CONTENT), len(CONTENT))
    assert [have for _, have, _ in told] == sorted(have for _, have, _ in told)
    assert [file.name for file in path.parent.iterdir()] == ["part.bin"]


def test_what_is_on_disk_is_not_fetched_again(server, tmp_path):
    fetch(make_entry(), tmp_path, address(server, "good"))
    fetch(make_entry(), tmp_path, address(server, "good"))
    assert len(server.requests) == 1


def test_a_corrupted_file_is_refused_and_leaves_nothing(server, tmp_path):
    with pytest.raises(FetchError, match=r"part\.bin could not be fetched.*corrupt/part\.bin.*sha256"):
        fetch(make_entry(), tmp_path, address(server, "corrupt"))
    assert list((tmp_path / "made-up").iterdir()) == []


@pytest.mark.parametrize("bad", ["corrupt", "empty", "broken", "long", "endless", "page"])
def test_the_next_mirror_is_asked_where_one_fails(server, tmp_path, bad):
    path = fetch(make_entry(), tmp_path, address(server, bad), address(server, "good"))
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("folder", ["broken", "short"])
def test_a_transfer_that_broke_off_is_resumed_where_it_stopped(server, tmp_path, folder):
    with pytest.raises(FetchError, match=r"broke off|Connection broken"):
        fetch(make_entry(), tmp_path, address(server, folder))
    arrived = (tmp_path / "made-up" / "part.bin.part").read_bytes()
    assert len(arrived) > 65_536 and CONTENT.startswith(arrived)
    path = fetch(make_entry(), tmp_path, address(server, "good"))
    assert path.read_bytes() == CONTENT
    assert server.requests[-1] == ("/good/part.bin", f"bytes={len(arrived)}-")


def test_a_server_without_ranges_is_asked_for_everything(server, tmp_path):
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / "part.bin.part").write_bytes(CONTENT[:1000])
    assert fetch(make_entry(), tmp_path, address(server, "norange")).read_bytes() == CONTENT


@pytest.mark.parametrize("length", [1000, len(CONTENT), len(CONTENT) + 7])
def test_a_part_that_is_no_beginning_of_the_file_is_dropped(server, tmp_path, length):
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / "part.bin.part").write_bytes(bytes(length))
    assert fetch(make_entry(), tmp_path, address(server, "good")).read_bytes() == CONTENT


def test_a_mirror_that_announces_more_than_the_file_has_is_refused_before_a_byte_is_read(server, tmp_path):
    told = []
    with pytest.raises(FetchError, match=rf"announces {len(CONTENT) + (1 << 20)} bytes where {len(CONTENT)} should"):
        fetch(make_entry(), tmp_path, address(server, "long"), progress=lambda *news: told.append(news))
    assert told == [] and list((tmp_path / "made-up").iterdir()) == []


def test_a_mirror_that_sends_more_than_the_file_has_is_cut_off(server, tmp_path):
    told = []
    with pytest.raises(FetchError, match=f"sends more than the {len(CONTENT)} bytes"):
        fetch(make_entry(), tmp_path, address(server, "endless"), progress=lambda *news: told.append(news))
    assert max(have for _, have, _ in told) <= len(CONTENT)
    assert all(file.stat().st_size == 0 for file in (tmp_path / "made-up").iterdir())


def test_a_mirror_that_is_too_slow_is_given_up(server, tmp_path, monkeypatch):
    monkeypatch.setattr("cndpm.datasets.fetching._SLOWEST", 1 << 60)
    seconds = iter(range(0, 10_000, 31))
    monkeypatch.setattr("cndpm.datasets.fetching.time.monotonic", lambda: next(seconds))
    with pytest.raises(FetchError, match=r"too slow: \d+ of"):
        fetch(make_entry(), tmp_path, address(server, "good"))


def test_requests_wait_only_so_long_for_an_answer(server, tmp_path, monkeypatch):
    asked = {}

    def get(url, **options):
        asked.update(options)
        raise requests.Timeout("no answer")

    monkeypatch.setattr("cndpm.datasets.fetching.requests.get", get)
    with pytest.raises(FetchError, match="no answer"):
        fetch(make_entry(), tmp_path, address(server, "good"))
    assert 0 < asked["timeout"] <= 60


@pytest.mark.parametrize("left", [b"", CONTENT[:1000], CONTENT + b"1", b"\xff" + CONTENT[1:]])
def test_a_damaged_file_on_disk_is_fetched_anew(server, tmp_path, left):
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / "part.bin").write_bytes(left)
    assert fetch(make_entry(), tmp_path, address(server, "good")).read_bytes() == CONTENT


def test_a_damaged_file_on_disk_stays_until_another_has_arrived(server, tmp_path):
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / "part.bin").write_bytes(CONTENT[:1000])
    with pytest.raises(FetchError):
        fetch(make_entry(), tmp_path, address(server, "empty"))
    assert (tmp_path / "made-up" / "part.bin").read_bytes() == CONTENT[:1000]


def test_what_can_be_read_but_is_not_what_was_published_is_replaced_on_request_alone(server, tmp_path):
    (tmp_path / "made-up").mkdir()
    part = batch(40)  # of a hundred
    (tmp_path / "made-up" / "part.bin").write_bytes(part)
    assert fetch(make_entry(), tmp_path, address(server, "good")).read_bytes() == part
    assert fetch(make_entry(), tmp_path, address(server, "good"), force=True).read_bytes() == CONTENT


def test_an_address_without_a_slash_at_its_end_will_do(server, tmp_path):
    assert fetch(make_entry(), tmp_path, address(server, "good").rstrip("/")).read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written_is_named(server, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FetchError, match=r"could not be written under .*file"):
        fetch(make_entry(), tmp_path / "file", address(server, "good"))


def test_every_mirror_that_is_not_encrypted_comes_after_one_that_is():
    for entry in catalogue().values():
        schemes = [mirror.partition(":")[0] for mirror in entry.mirrors]
        assert schemes == sorted(schemes, reverse=True) and set(schemes[:1]) <= {"https"}


def test_without_a_network_one_short_line_says_so(tmp_path, monkeypatch):
    def get(url, **_):
        raise requests.ConnectionError(f"HTTPSConnectionPool: Max retries exceeded with url {url} " + "and more " * 50)

    monkeypatch.setattr("cndpm.datasets.fetching.requests.get", get)
    with pytest.raises(FetchError) as raised:
        fetch(make_entry(), tmp_path, "https://one.example/files", "https://two.example")
    said = str(raised.value)
    assert "could not be fetched: no connection to one.example; no connection to two.example. Run again" in said
    assert len(said.replace(str(tmp_path), "")) < 200 and "\n" not in said


def test_when_no_mirror_answers_every_one_is_named(server, tmp_path):
    with pytest.raises(FetchError) as raised:
        fetch(make_entry(), tmp_path, address(server, "empty"), address(server, "corrupt"))
    assert "/empty/part.bin" in str(raised.value) and "/corrupt/part.bin" in str(raised.value)


def tar_of(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_an_archive_is_unpacked_and_removed(server, tmp_path, pack):
    archive = pack("part.bin", CONTENT)
    server.files["archive"] = archive
    path = fetch(make_entry(file="archive", content=archive, unpack=True), tmp_path, address(server, "good"))
    assert path.read_bytes() == CONTENT
    assert not (tmp_path / "made-up" / "archive").exists()


def test_an_archive_cannot_write_outside_its_folder(server, tmp_path):
    archive = tar_of("../escaped", b"x")
    server.files["archive"] = archive
    with pytest.raises(FetchError, match=r"archive cannot be unpacked: .*outside"):
        fetch(make_entry(file="archive", content=archive, unpack=True), tmp_path, address(server, "good"))
    assert not (tmp_path / "escaped").exists()


def test_an_archive_with_one_damaged_member_gives_none_of_the_others(server, tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("first.bin", b"whole")
        made.writestr("part.bin", b"damaged")
    archive = buffer.getvalue().replace(b"damaged", b"DAMAGED")
    server.files["archive"] = archive
    with pytest.raises(FetchError, match="cannot be unpacked"):
        fetch(make_entry(file="archive", content=archive, unpack=True), tmp_path, address(server, "good"))
    assert [file.name for file in (tmp_path / "made-up").iterdir()] == ["archive"]


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_an_archive_that_cannot_be_unpacked_changes_no_file(server, tmp_path, pack):
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / "part.bin").write_bytes(b"older")
    whole = pack("part.bin", CONTENT)
    archive = whole[: len(whole) // 2]
    server.files["archive"] = archive
    with pytest.raises(FetchError):
        fetch(make_entry(file="archive", content=archive, unpack=True), tmp_path, address(server, "good"))
    assert (tmp_path / "made-up" / "part.bin").read_bytes() == b"older"
    assert not [file for file in (tmp_path / "made-up").iterdir() if file.name.startswith(".unpacking")]


def test_a_dataset_of_the_catalogue_is_fetched_by_name_and_checked(server, tmp_path):
    server.files["train-images-idx3-ubyte.gz"] = bytes(catalogue_entry("mnist").downloads[0].size)
    with pytest.raises(FetchError, match=r"its sha256 is \w+, it should be 440fcabf"):
        fetch_dataset("mnist", tmp_path, mirrors=(address(server, "good"),))
    with pytest.raises(UnknownNameError, match="mnist"):
        fetch_dataset("mnits", tmp_path)
