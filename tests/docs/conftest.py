"""The built site, once for all tests of the room, on a server of its own, and a browser."""

import http.server
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from release.screenshot import find_browser
from tests.docs.browser import Browser

ROOT = Path(__file__).parents[2]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site: CNDPM_SITE, or one that is built here."""
    if "CNDPM_SITE" in os.environ:
        return Path(os.environ["CNDPM_SITE"])
    pytest.importorskip("furo", reason="the site needs cndpm[docs]")
    folder = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--keep-going", "--fresh-env", "--builder", "html"]
    subprocess.run([sys.executable, "-m", "sphinx", *options, ROOT / "docs", folder], check=True, cwd=ROOT)
    return folder


@pytest.fixture(scope="session")
def address(site):
    handler = partial(_Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def browser():
    if find_browser() is None:
        pytest.skip("no Chromium on this machine")
    browser = Browser()
    yield browser
    browser.close()
