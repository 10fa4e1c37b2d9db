import http.client
import json
import shutil
import socket
import threading
from contextlib import contextmanager, suppress

import pytest

from cndpm.experiments import RecordError
from cndpm.reports import html
from cndpm.reports.anatomy import anatomy
from cndpm.reports.html import make_server


@contextmanager
def serving(folder, **options):
    with make_server([folder], **options) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def get(server, path, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{server.server_port}"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


def test_the_page_follows_a_run_as_it_goes_on(copied, tmp_path):
    folder = tmp_path / "live" / "seed-0"
    shutil.copytree(copied / "cndpm" / "seed-0", folder, ignore=shutil.ignore_patterns("summary.json", "portrait.npz"))
    lines = (folder / "log.jsonl").read_text().splitlines(keepends=True)
    (folder / "log.jsonl").write_text("".join(lines[:5]))
    with serving(tmp_path / "live") as server:
        before = json.loads(get(server, "/data.json")[1])["runs"][0]
        with (folder / "log.jsonl").open("a") as log:
            log.writelines(lines[5:])
        after = json.loads(get(server, "/data.json")[1])["runs"][0]
    assert before["progress"] != after["progress"]
    assert len(after["figures"]) > len(before["figures"])


def test_a_folder_without_a_record_yet_is_waited_for(tmp_path):
    with serving(tmp_path) as server:
        status, body = get(server, "/")
        assert status == 200 and b"No runs to show" in body


def test_it_answers_on_loopback_under_its_own_name_only(records):
    with serving(records) as server:
        assert server.server_address[0] == "127.0.0.1"
        assert get(server, "/", host="evil.example")[0] == 421
        assert get(server, "/../../etc/passwd")[0] == 404


def test_a_page_that_is_served_updates_itself(records, browse):
    with serving(records, refresh_seconds=0.2) as server:
        document, console = browse(f"http://127.0.0.1:{server.server_port}/")
    assert console == []
    assert document.count('data-drawn="true"') >= 4


def test_a_missing_folder_and_a_taken_port_are_reported(records, tmp_path):
    with pytest.raises(RecordError, match="no folder"):
        make_server([tmp_path / "absent"])
    with serving(records) as server, pytest.raises(RecordError, match="--port"):
        make_server([records], port=server.server_port)


def test_a_client_that_says_no_more_is_sent_away(tmp_path, monkeypatch):
    monkeypatch.setattr("cndpm.loopback._Handler.timeout", 0.2)
    with serving(tmp_path) as server:
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=120) as slow:
            slow.sendall(b"GET /")
            with suppress(ConnectionError):
                assert slow.recv(100) == b""
        monkeypatch.setattr("cndpm.loopback._Handler.timeout", 120)
        assert get(server, "/")[0] == 200


def test_a_record_that_cannot_be_drawn_does_not_take_the_page_down(records, monkeypatch):
    folder = records / "cndpm" / "seed-0"

    def draw(run):
        if run.record.folder == folder:
            raise IndexError("an expert that is not there")
        return anatomy(run)

    monkeypatch.setattr(html, "anatomy", draw)
    with serving(records) as server:
        values = json.loads(get(server, "/data.json")[1])
    assert len(values["runs"]) == 3
    assert values["problems"] == [
        {"folder": str(folder), "reason": "the record cannot be shown: IndexError: an expert that is not there"}
    ]
