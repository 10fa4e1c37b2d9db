"""What the page asks of its server, without a browser."""

import http.client
import json
import threading

import pytest

from cndpm.play.serving import make_play_server

SLASH = [[[0, 0], [10, 10]]]


@pytest.fixture
def ask():
    """Returns status and answer for a path and what is sent to it; None only reads."""
    with make_play_server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()

        def asked(path, sent=None):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
            headers = {"Host": f"127.0.0.1:{server.server_port}", "Content-Type": "application/json"}
            connection.request("GET" if sent is None else "POST", path, sent, headers)
            answer = connection.getresponse()
            content = answer.read().decode()
            connection.close()
            return answer.status, json.loads(content) if content.startswith("{") else content

        yield asked
        server.shutdown()
        thread.join()


def test_the_page_is_at_one_address_alone(ask):
    status, page = ask("/")
    assert status == 200 and "<canvas" in page
    assert ask("/other")[0] == 404
    assert ask("/other", "{}")[0] == 404


def test_drawings_are_learned_guessed_and_forgotten(ask):
    assert ask("/guess", json.dumps({"strokes": SLASH})) == (
        200, {"names": [], "experts": [], "memory": 0.0, "is_new": True},
    )  # fmt: skip
    status, told = ask("/learn", json.dumps({"strokes": SLASH, "name": "slash"}))
    assert (status, told["n_drawings"], told["drawing"]["name"]) == (200, 1, "slash")
    assert ask("/guess", json.dumps({"strokes": SLASH}))[1]["names"][0]["name"] == "slash"
    assert ask("/state", "{}")[1]["n_drawings"] == 1
    assert ask("/forget", "{}")[1]["n_drawings"] == ask("/state", "{}")[1]["n_drawings"] == 0


@pytest.mark.parametrize(
    "sent",
    ["[]", "ink", '{"strokes": []}', "{}", "[" * 100_000, b'{"name": "\xff"}', '{"strokes": %s}' % ("1" * 5000)],
)
def test_what_is_no_drawing_is_an_error_with_its_reason(ask, sent):
    status, told = ask("/learn", sent)
    assert status == 400 and told["error"]
    assert ask("/state", "{}")[1]["n_drawings"] == 0
