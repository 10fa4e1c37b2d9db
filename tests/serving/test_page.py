"""The page at `/`: whole, without others, and its requests as they are printed."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from release.screenshot import find_browser
from tests.docs.browser import Browser

from cndpm import CNDPMDensity
from cndpm.serving import Server
from cndpm.serving import server as server_module


def fetched(url):
    with urllib.request.urlopen(url) as answer:
        return answer.headers, answer.read().decode()


def test_the_page_comes_whole_needs_no_token_and_asks_nobody_else(model_file):
    with Server(model_file, port=0, token="a secret of sixteen") as server:
        for path in ("/", "/docs"):
            headers, text = fetched(server.url + path)
            assert (
                headers["Content-Type"].startswith("text/html")
                and "default-src 'none'" in headers["Content-Security-Policy"]
            )
            assert re.findall(r"https?://", text) == []
        with pytest.raises(urllib.error.HTTPError, match="401"):
            fetched(server.url + "/model")


def test_no_page_of_fastapi_is_left_and_programs_still_find_the_schema(served):
    assert served.get("/redoc")[0] == 404
    status, schema = served.get("/openapi.json")
    assert status == 200 and {"/predict", "/learn"} < set(schema["paths"]) and "/" not in schema["paths"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
def test_the_lines_of_the_documentation_work(model_file):
    text = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    lines = re.findall(r"^curl .*", text, re.MULTILINE)
    assert len(lines) == 3
    with Server(model_file, port=0) as server:
        for line in lines:
            command = line.replace("http://127.0.0.1:8000", server.url)
            said = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout
            assert "detail" not in json.loads(said)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node")
def test_the_form_sends_categories_as_they_are_and_rows_of_any_width():
    text = (Path(server_module.__file__).parent / "page.html").read_text()
    functions = re.search(r"^const valueOf = .*?(?=^function row)", text, re.MULTILINE | re.DOTALL)[0]
    asked = """console.log(JSON.stringify([
        valueOf("7", ["7", "8"]), valueOf("7", [7, 8]), valueOf("other", ["7"]), valueOf("", ["7"]),
        valueOf("1.5"), valueOf("word"), valueOf(""),
        example({n_features: 3, categories: [null, ["red", "blue"], null]}), example({n_features: 500}).length]))"""
    said = subprocess.run(["node", "-e", functions + asked], capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == ["7", 7, "other", None, 1.5, "word", None, [0, "red", 0], 500]


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
def test_one_asks_and_teaches_on_the_page(model_file):
    browser = Browser()
    with Server(model_file, port=0) as server:
        browser.open(server.url + "/")
        assert "90 samples" in browser.wait_for("document.querySelector('#columns input') && document.body.innerText")
        browser.evaluate("document.querySelector('#target').value = 'new'")
        browser.evaluate("document.querySelector('#form button').click()")
        assert browser.wait_for("document.querySelector('#answer').innerText.includes('learned')")
        assert "91 samples" in browser.wait_for("/91 samples/.test(document.body.innerText) && document.body.innerText")
        assert browser.messages == []
    browser.close()


@pytest.mark.slow
@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
def test_the_page_of_a_density_asks_for_no_label(tmp_path):
    CNDPMDensity(memory_size=30, random_state=0).fit(np.random.default_rng(0).normal(size=(60, 2))).save(tmp_path / "d")
    browser = Browser()
    with Server(tmp_path / "d", port=0) as server:
        browser.open(server.url + "/")
        browser.wait_for("document.querySelectorAll('#requests pre').length === 6")
        assert browser.evaluate("document.querySelector('#target').offsetParent === null")
        assert "learn it as" not in browser.evaluate("document.body.innerText")
        assert '"y"' not in browser.evaluate("document.body.innerText")
    browser.close()
