import pytest
from tests.serving.client import Client

from cndpm.serving import Server
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
