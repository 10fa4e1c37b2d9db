"""The page, drawn upon in headless Chromium with mouse, finger and keys."""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from release.screenshot import find_browser
from tests.docs.browser import Browser
from tests.play.symbols import drawn

from cndpm.play.serving import make_play_server

PLAN = ["ring", "tent", "ring", "cross", "tent", "ring", "cross", "cross", "tent", "ring"]


@pytest.fixture(scope="module")
def address():
    with make_play_server() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def chromium():
    if find_browser() is None:
        pytest.skip("no Chromium on this machine")
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def page(chromium, address):
    chromium.messages.clear()
    chromium.requests.clear()
    chromium.open(address)
    chromium.evaluate("call('/forget').then(show)")
    chromium.wait_for("state && state.n_drawings === 0")
    yield chromium
    assert chromium.messages == []
    assert [url for url in chromium.requests if not url.startswith((address, "about:", "data:"))] == []


def draw(page, kind, random, *, touch=False):
    left, top, size = page.evaluate("(({left, top, width}) => [left, top, width])(canvas.getBoundingClientRect())")
    for stroke in drawn(kind, random):
        page.drag(np.array([left, top]) + size * (0.5 + 0.3 * stroke[::3]), touch=touch)


def name(page, word):
    """Types the name and presses enter."""
    n = page.evaluate("state.n_drawings")
    page.evaluate("document.getElementById('name').focus()")
    page.press(*word, "Enter")
    page.wait_for(f"state.n_drawings === {n + 1} && !strokes.length")


def guessed(page):
    return page.wait_for("(latestGuess && !isAsking) ? document.querySelector('#guess .first span').textContent : null")


def test_ten_symbols_of_three_kinds_are_told_apart_afterwards(page):
    random = np.random.default_rng(0)
    for kind in PLAN:
        draw(page, kind, random)
        name(page, kind)
    assert page.evaluate("state.n_drawings") == 10
    assert page.evaluate("document.querySelectorAll('#experts .card:not(.memory)').length") >= 1
    assert page.evaluate("document.querySelectorAll('#story li').length") == 10
    answers = []
    for kind in ["ring", "tent", "cross"] * 2:
        draw(page, kind, random)
        answers.append(guessed(page))
        page.press("Escape")
    assert answers == ["ring", "tent", "cross"] * 2
    assert page.evaluate("paper.classList.contains('empty')")  # Escape cleared it


def test_a_birth_is_announced_and_its_dream_has_ink(page):
    random = np.random.default_rng(1)
    for _ in range(3):
        draw(page, "star", random)
        name(page, "star")
    assert "Expert 1 is born" in page.evaluate("says.textContent")
    dream = "document.querySelector('.dreams canvas').getContext('2d').getImageData(0, 0, 32, 32).data"
    assert page.evaluate(f"[...{dream}].filter((value, i) => i % 4 === 3 && value > 128).length") > 40
    draw(page, "star", random)
    assert guessed(page) == "star"
    assert page.evaluate("document.querySelector('.card.answers').dataset.expert") == "0"


def test_keys_alone_draw_and_name(page):
    page.evaluate("canvas.focus()")
    page.press(" ", *["ArrowDown"] * 5, *["ArrowRight"] * 5, " ", "Enter", *"ell", "Enter")
    page.wait_for("state.n_drawings === 1")
    page.evaluate("canvas.focus()")
    page.press(" ", *["ArrowUp"] * 5, " ", "1")  # the first name, by its number
    page.wait_for("state.n_drawings === 2")
    assert page.evaluate("state.names[0]") == {"name": "ell", "n": 2}


def test_a_finger_draws_on_a_phone_in_the_dark(page, address):
    page.open(address, width=390, dark=True)
    page.wait_for("document.body.dataset.ready")
    draw(page, "ring", np.random.default_rng(2), touch=True)
    assert page.evaluate("strokes.length") == 1
    name(page, "<b>o</b>")
    assert page.evaluate("document.querySelector('#names button').lastChild.textContent") == "<b>o</b>"
    wide, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen == 390
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 26)"


@pytest.mark.slow
def test_the_picture_of_the_documentation(page, tmp_path):
    """Draws a story and takes its picture; CNDPM_PICTURE names the file."""
    random = np.random.default_rng(5)
    for kind in ["ring"] * 3 + ["star"] * 3 + ["tent"] * 3 + ["ring", "cross", "star"]:
        draw(page, kind, random)
        name(page, kind)
    draw(page, "star", random)
    assert guessed(page) == "star"
    page.wait_for("!document.querySelector('.flying')")
    picture = Path(os.environ.get("CNDPM_PICTURE", tmp_path / "play.png"))
    page.picture(picture)
    assert picture.stat().st_size > 20_000


def test_ink_that_went_while_another_guess_was_made_is_not_asked_about(page):
    random = np.random.default_rng(3)
    draw(page, "ring", random)
    name(page, "ring")
    draw(page, "ring", random)
    page.evaluate("ask(), ask(), strokes.splice(0)")  # the second question waits for the answer to the first
    page.wait_for("!isAsking")
    assert "strokes" not in page.evaluate("says.textContent")
