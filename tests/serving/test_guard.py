import asyncio
import json

import pytest

from cndpm.serving import Limits
from cndpm.serving.guard import LOOPBACK, Guard

TOKEN = "0123456789abcdef"


async def echo(scope, receive, send):
    """Answers with the number of bytes of the body; words any error of reading it in its own way."""
    n_bytes, more = 0, True
    try:
        while more:
            message = await receive()
            n_bytes, more = n_bytes + len(message["body"]), message["more_body"]
        status = 200
    except Exception:
        status = 400
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(n_bytes).encode()})


def call(path="/predict", *, headers=(), pieces=(b"",), **options):
    """Returns status and body of the answer to one request."""
    waiting = [{"type": "http.request", "body": one, "more_body": True} for one in pieces]
    waiting[-1]["more_body"] = False
    sent = []

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": path, "headers": [(name.encode(), value.encode()) for name, value in headers]}
    asyncio.run(Guard(echo, Limits(body_bytes=10), **options)(scope, receive, send))
    start, body = sent
    return start["status"], json.loads(body["body"])


def test_a_body_in_pieces_is_stopped_at_the_limit():
    assert call(pieces=[b"12345", b"67890"]) == (200, 10)
    status, answer = call(pieces=[b"12345", b"67890", b"1"])
    assert (status, answer["detail"][:34]) == (413, "the body of a request has at most ")


def test_bodies_of_all_requests_together_are_bounded():
    guard, gate, sent = Guard(echo, Limits(body_bytes=10, held_bytes=12)), asyncio.Event(), []

    def messages(*pieces):
        waiting = [{"type": "http.request", "body": one, "more_body": True} for one in pieces]
        waiting[-1]["more_body"] = False
        return waiting

    async def ask(waiting, *, held=False):
        async def receive():
            if held and len(waiting) == 1:
                await gate.wait()
            return waiting.pop(0)

        async def send(message):
            sent.append(message.get("status"))

        await guard({"type": "http", "path": "/predict", "headers": []}, receive, send)

    async def together():
        first = asyncio.create_task(ask(messages(b"12345678", b"9"), held=True))
        await asyncio.sleep(0)
        await ask(messages(b"12345"))  # beside the eight bytes that are held
        gate.set()
        await first
        await ask(messages(b"1234567890"))

    asyncio.run(together())
    assert [status for status in sent if status] == [503, 200, 200]


@pytest.mark.parametrize(
    ("length", "status"), [("10", 200), ("11", 413), ("many", 413), ("-1", 413), ("9" * 5000, 413), ("\u00b2", 413)]
)
def test_a_body_that_is_announced_too_large_is_not_read(length, status):
    assert call(headers=[("content-length", length)])[0] == status


@pytest.mark.parametrize(
    ("given", "status"), [(f"Bearer {TOKEN}", 200), (f"Bearer {TOKEN}x", 401), (TOKEN, 401), ("", 401)]
)
def test_only_the_token_opens(given, status):
    assert call(headers=[("authorization", given)], token=TOKEN)[0] == status


def test_health_needs_no_token():
    assert call("/health", token=TOKEN)[0] == 200
    assert call("/metrics", token=TOKEN)[0] == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8000", 200), ("localhost", 200), ("[::1]:8000", 200), ("evil.example:8000", 421), ("", 421)],
)
def test_a_server_on_loopback_is_asked_for_by_its_own_name(host, status):
    assert call(headers=[("host", host)], hosts=LOOPBACK)[0] == status


@pytest.mark.parametrize(
    ("origin", "status"), [("http://localhost:8000", 200), ("https://evil.example", 403), ("null", 403)]
)
def test_pages_of_other_sites_are_turned_away_on_loopback(origin, status):
    assert call(headers=[("host", "localhost:8000"), ("origin", origin)], hosts=LOOPBACK)[0] == status


def test_every_request_is_told_of_under_a_path_that_exists():
    told = []
    options = {"requested": lambda *values: told.append(values[:2]), "paths": ["/predict"], "token": TOKEN}
    call("/predict", **options)
    call("/a/path/that/somebody/made/up", headers=[("authorization", f"Bearer {TOKEN}")], **options)
    assert told == [("/predict", 401), ("other", 200)]


@pytest.mark.parametrize("given", ["", "Bearer ", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}0", TOKEN])
def test_a_part_of_the_token_is_not_enough(given):
    assert call(headers=[("authorization", given)], token=TOKEN)[0] == 401


def test_a_body_that_does_not_come_is_not_waited_for():
    sent = []

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    guard = Guard(echo, Limits(body_seconds=0.01))
    asked = guard({"type": "http", "path": "/predict", "headers": []}, receive, send)
    asyncio.run(asyncio.wait_for(asked, timeout=60))
    assert sent[0]["status"] == 408
