import http.client
import threading
from contextlib import contextmanager

import pytest

from cndpm.loopback import Answer, ServingError, serve_on_loopback


@contextmanager
def serving(answer, **options):
    with serve_on_loopback(answer, **options) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def echo(request):
    return Answer(request.body) if request.body is not None else None


def post(server, body=b"{}", **changes):
    headers = {"Host": f"127.0.0.1:{server.server_port}", "Content-Type": "application/json", **changes}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.request("POST", "/", body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def test_what_a_page_sends_reaches_the_answer():
    with serving(echo, largest_body=100) as server:
        assert server.server_address[0] == "127.0.0.1"
        assert post(server, b'{"a": 1}') == (200, b'{"a": 1}')
        assert post(server, Origin=f"http://localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content_Type": "text/plain"}, 415),  # what a form of another page could send
        ({"Content_Length": "101"}, 413),
        ({"Content_Length": "-1"}, 413),
        ({"Content_Length": "9" * 5000}, 413),  # which Python does not read as a number
    ],
)
def test_what_does_not_come_from_the_page_is_refused(changes, status):
    reached = []
    with serving(lambda request: reached.append(request) or Answer(b""), largest_body=100) as server:
        headers = {name.replace("_", "-"): value for name, value in changes.items()}
        assert post(server, **headers)[0] == status
    assert reached == []


def test_a_page_that_only_reads_takes_nothing():
    with serving(echo) as server:
        assert post(server)[0] == 405


def test_an_error_is_an_answer_and_a_taken_port_is_said():
    def fail(request):
        raise KeyError("lost")

    with serving(fail, largest_body=10) as server:
        status, content = post(server)
        assert status == 500 and b"KeyError" in content
        with pytest.raises(ServingError, match="--port"):
            serve_on_loopback(echo, port=server.server_port)
