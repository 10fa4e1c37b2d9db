import http.client
import json
import shutil
import threading
from contextlib import contextmanager

import pytest

from cndpm.experiments import RecordError
from cndpm.reports.watching import make_server


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
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
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
