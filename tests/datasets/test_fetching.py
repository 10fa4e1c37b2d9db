import hashlib
import io
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cndpm.datasets import FetchError, fetch_dataset
from cndpm.datasets.catalogue import Download, Entry, Layout
from cndpm.datasets.fetching import fetch_entry
from cndpm.names import UnknownNameError

CONTENT = bytes(range(256)) * 1200


class Handler(BaseHTTPRequestHandler):
    """Serves `server.files`; paths under /broken/ break off in the middle, those under /norange/ ignore ranges."""

    def do_GET(self):
        folder, _, name = self.path.lstrip("/").rpartition("/")
        content = self.server.files.get(name)
        wanted = self.headers.get("Range")
        self.server.requests.append((self.path, wanted))
        if content is None or folder == "empty":
            return self.send_error(404)
        if folder == "corrupt":
            content = b"\xff" + content[1:]
        begin = int(wanted[len("bytes=") : -1]) if wanted and folder != "norange" else 0
        if begin >= len(content):
            return self.send_error(416)
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        end = len(content) // 2 if folder == "broken" else len(content)
        self.wfile.write(content[begin:end])
        return None

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.files, server.requests = {"part.bin": CONTENT}, []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def address(server, folder: str) -> str:
    return f"http://127.0.0.1:{server.server_port}/{folder}/"


def make_entry(*, file="part.bin", content=CONTENT, unpack=False, size=None) -> Entry:
    folder = "made-up"
    layout = Layout(format="idx", folders=(folder,), train=("part.bin",), test=())
    download = Download(file=file, folder=folder, sha256=hashlib.sha256(content).hexdigest(), size=size, unpack=unpack)
    return Entry(name="made-up", summary="", n_train=0, n_test=0, classes=(), layouts=(layout,), downloads=(download,))


def fetch(entry: Entry, folder: Path, *mirrors: str, progress=None) -> Path:
    fetch_entry(entry, folder, mirrors=mirrors, progress=progress)
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
    with pytest.raises(FetchError, match=r"part\.bin could not be fetched.*corrupt/part\.bin.*SHA256"):
        fetch(make_entry(), tmp_path, address(server, "corrupt"))
    assert list((tmp_path / "made-up").iterdir()) == []


@pytest.mark.parametrize("bad", ["corrupt", "empty", "broken"])
def test_the_next_mirror_is_asked_where_one_fails(server, tmp_path, bad):
    path = fetch(make_entry(), tmp_path, address(server, bad), address(server, "good"))
    assert path.read_bytes() == CONTENT


def test_a_transfer_that_broke_off_is_resumed_where_it_stopped(server, tmp_path):
    with pytest.raises(FetchError, match=r"broke off|Connection broken"):
        fetch(make_entry(), tmp_path, address(server, "broken"))
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
@pytest.mark.parametrize("size", [None, len(CONTENT)])
def test_a_part_that_is_no_beginning_of_the_file_is_dropped(server, tmp_path, length, size):
    (tmp_path / "made-up").mkdir()
    (tmp_path / "made-up" / "part.bin.part").write_bytes(bytes(length))
    assert fetch(make_entry(size=size), tmp_path, address(server, "good")).read_bytes() == CONTENT


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
    with pytest.raises(tarfile.OutsideDestinationError):
        fetch(make_entry(file="archive", content=archive, unpack=True), tmp_path, address(server, "good"))
    assert not (tmp_path / "escaped").exists()


def test_a_dataset_of_the_catalogue_is_fetched_by_name_and_checked(server, tmp_path):
    server.files["train-images-idx3-ubyte.gz"] = b"not the published bytes"
    with pytest.raises(FetchError, match="SHA256"):
        fetch_dataset("mnist", tmp_path, mirrors=(address(server, "good"),))
    with pytest.raises(UnknownNameError, match="mnist"):
        fetch_dataset("mnits", tmp_path)
