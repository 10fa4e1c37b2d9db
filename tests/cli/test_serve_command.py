"""What is said to ``cndpm serve`` reaches the server."""

import pytest

import cndpm.serving

TOKEN = "0123456789abcdef"


@pytest.fixture
def served(monkeypatch):
    """What servers were made with; none of them serves."""
    made = []

    class Server:
        url = "http://here"

        def __init__(self, *arguments, **options):
            made.append((arguments, options))

        def run(self):
            raise KeyboardInterrupt

    monkeypatch.setattr(cndpm.serving, "Server", Server)
    return made


def test_every_option_reaches_the_server(cndpm, served, monkeypatch):
    monkeypatch.setenv("CNDPM_TOKEN", TOKEN)
    where = ("--folder", "kept", "--host", "0.0.0.0", "--port", "8123", "--checkpoint-rows", "77", "--salvage")
    limits = ("--max-rows", "5", "--max-mib", "3", "--max-labels", "9", "--window-ms", "20")
    outcome = cndpm("serve", "model.cndpm", *where, *limits)
    assert outcome.code == 0, outcome.err
    assert "serving model.cndpm: open http://here/ to try it" in outcome.out
    ((arguments, options),) = served
    assert arguments == ("model.cndpm",)
    found = options.pop("limits")
    assert (found.rows, found.body_bytes, found.labels, found.window) == (5, 3 * 2**20, 9, 0.02)
    assert options == {
        "folder": "kept",
        "host": "0.0.0.0",
        "port": 8123,
        "token": TOKEN,
        "checkpoint_rows": 77,
        "salvage": True,
    }


def test_without_options_the_server_is_on_loopback_and_has_no_token(cndpm, served, monkeypatch):
    monkeypatch.delenv("CNDPM_TOKEN", raising=False)
    assert cndpm("serve", "model.cndpm").code == 0
    ((_, options),) = served
    assert (options["host"], options["port"], options["token"], options["salvage"]) == ("127.0.0.1", 8000, None, False)
