import json
import socket
import time
from contextlib import suppress

import pytest
from tests.serving.client import Client
from uvicorn.protocols.http.h11_impl import H11Protocol

from cndpm.serving import Limits, Server
from cndpm.serving.server import _Bounded
from cndpm.validation import ConfigError


def test_others_need_a_token(model_file):
    with pytest.raises(ConfigError, match=r"others can reach 0\.0\.0\.0, so a token is needed"):
        Server(model_file, host="0.0.0.0", port=0)


@pytest.mark.parametrize("token", ["short", "with\nnewline-and-more-of-it", "ümlaut-and-much-more-of-it"])
def test_a_token_is_long_and_printable(model_file, token):
    with pytest.raises(ConfigError, match="at least 16 printable ASCII characters"):
        Server(model_file, port=0, token=token)


def test_a_token_that_is_given_is_asked_for_on_loopback_too(model_file):
    with Server(model_file, port=0, token="0123456789abcdef") as server:
        stranger, friend = Client(server.url), Client(server.url, token="0123456789abcdef")
        assert stranger.get("/model")[0] == 401
        assert friend.get("/model")[0] == 200
        stranger.close()
        friend.close()


def test_a_port_that_is_taken_is_named(model_file, tmp_path):
    with Server(model_file, port=0) as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(ConfigError, match=f"cannot listen at 127.0.0.1, port {port}"):
            Server(model_file, port=port, folder=tmp_path / "another")


def opened(server):
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=120)


def heard(connection, said):
    """What comes back until the connection is closed, which may be before all is said."""
    received = b""
    with connection, suppress(ConnectionError):
        connection.sendall(said)
        while piece := connection.recv(1000):
            received += piece
    return received


@pytest.mark.parametrize("begun", [b"", b"POST /predict HT", b"POST /predict HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_head_that_does_not_end_is_not_waited_for(model_file, begun):
    with Server(model_file, port=0, limits=Limits(head_seconds=0.05)) as server:
        assert heard(opened(server), begun) == b""


def test_a_second_head_that_does_not_end_is_not_waited_for(model_file):
    with Server(model_file, port=0, limits=Limits(head_seconds=120)) as server:
        connection = opened(server)
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = connection.recv(1000)
        assert received.startswith(b"HTTP/1.1 200")
        server._server.config.http.limits = Limits(head_seconds=0.05)  # of heads that begin from now on
        received += heard(connection, b"GET /hea")
        assert received.count(b"HTTP/1.1") == 1


def test_a_body_that_does_not_end_is_not_waited_for(model_file):
    with Server(model_file, port=0, limits=Limits(body_seconds=0.05)) as server:
        said = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
        assert heard(opened(server), said).startswith(b"HTTP/1.1 408")


def test_connections_are_bounded(model_file):
    with Server(model_file, port=0, limits=Limits(connections=3)) as server:
        clients = [Client(server.url) for _ in range(3)]
        assert [client.get("/health")[0] for client in clients] == [200] * 3
        fourth = opened(server)
        assert fourth.recv(1000).startswith(b"HTTP/1.1 503")
        fourth.close()
        for client in clients:
            assert client.get("/health")[0] == 200
            client.close()


class Counted(set):
    """Connections, and how many there were at most."""

    most = 0

    def add(self, connection):
        super().add(connection)
        self.most = max(self.most, len(self))


@pytest.mark.parametrize("end", [b"", b"Connection: close\r\n"])
def test_an_answer_that_nobody_takes_is_not_waited_for(model_file, end):
    body = json.dumps({"X": [[0.5] * 4] * 1500}).encode()
    head = b"POST /explain HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (end, len(body))
    server = Server(model_file, port=0, limits=Limits(answer_seconds=0.1))
    server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # what does not fit waits in the server
    connections = server._server.server_state.connections = Counted()
    with server, socket.socket() as silent:
        client, begun = Client(server.url), time.monotonic()
        client.get("/health")  # before the other, who may be gone at any time
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        silent.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        silent.sendall(head + body)
        while time.monotonic() < begun + 120 and (connections.most < 2 or len(connections) > 1):
            client.get("/health")
        n_last = len(connections)
        client.close()
        assert (connections.most, n_last) == (2, 1)


def test_an_answer_that_is_taken_slowly_comes_whole(model_file):
    body = json.dumps({"X": [[0.5] * 4] * 1500}).encode()
    head = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += b"Content-Length: %d\r\n\r\n" % len(body)
    server = Server(model_file, port=0, limits=Limits(answer_seconds=60))
    server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with server, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        slow.settimeout(120)
        slow.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
        slow.sendall(head + body)
        received = b""
        while piece := slow.recv(1000):
            received += piece
        assert len(json.loads(received.partition(b"\r\n\r\n")[2])["expert"]) == 1500


def test_a_head_without_end_is_refused_whatever_parsers_are_installed(model_file):
    assert issubclass(_Bounded, H11Protocol)  # that of httptools takes heads of any length
    with Server(model_file, port=0) as server:
        connection = opened(server)
        with pytest.raises(ConnectionError):
            connection.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
            while True:
                connection.sendall(b"a" * 8000)
        connection.close()
