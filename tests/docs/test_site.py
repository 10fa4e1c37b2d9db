"""The documentation site, built strictly and read in a real browser."""

import re
import zlib
from pathlib import Path

import pytest
from benchmarks.house import House

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow

PAGES = [
    "index",
    "start",
    "play",
    "notebooks/first-stream",
    "overview",
    "concept-drift",
    "river",
    "coming-from",
    "limits",
    "howto/table",
    "method",
    "settings",
    "howto/images",
    "results/gate",
    "reference/cndpm.estimators",
]
SIZE = "[document.documentElement.scrollWidth, innerWidth]"
GROUND = "getComputedStyle(document.body).backgroundColor"
SIDEWAYS = """[...document.querySelectorAll("article pre")]
    .filter((pre) => pre.scrollWidth > pre.clientWidth + 1).map((pre) => pre.textContent.slice(0, 60))"""
FOUND = "[...document.querySelectorAll('#search-results li > a')].map((a) => a.href.split('?')[0])"
WORDS = ["concept drift", "data drift", "catastrophic forgetting", "class-incremental", "outlier", "anomaly"]
LOOSE = "[...document.images].filter((image) => !image.complete || !image.naturalWidth).map((image) => image.src)"


def lightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def test_search_finds_the_page_about_a_word(browser, address):
    browser.open(f"{address}/search.html?q=anomalies")
    found = browser.wait_for("[...document.querySelectorAll('#search-results li a')].map((a) => a.href).join(' ')")
    assert "howto/unlabelled.html" in found
    assert browser.messages == []


@pytest.mark.parametrize("words", WORDS)
def test_words_that_people_search_lead_to_the_page_about_them(browser, address, words):
    browser.open(f"{address}/search.html?q={words.replace(' ', '+')}")
    browser.wait_for("/finished/i.test(document.querySelector('#search-results')?.innerText ?? '')")
    found = browser.evaluate(FOUND)
    assert any(url.endswith(("/concept-drift.html", "/unlabelled.html")) for url in found[:3]), found[:6]
    assert "/reference/" not in found[0]


def test_the_first_page_has_a_picture(browser, address):
    browser.open(f"{address}/index.html")
    assert browser.evaluate("document.querySelector('article img').getBoundingClientRect().height") > 100


def test_search_is_reached_from_the_first_page_by_typing(browser, address):
    browser.open(f"{address}/index.html")
    browser.evaluate("document.querySelector('input[name=q]').value = 'log_responsibilities'")
    browser.evaluate("document.querySelector('input[name=q]').form.submit()")
    found = browser.wait_for("[...document.querySelectorAll('#search-results li a')].map((a) => a.href).join(' ')")
    assert "reference/cndpm.mixture.html" in found


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_error_asks_nobody_else_and_fits_a_phone(browser, address, page):
    browser.open(f"{address}/{page}.html")
    assert browser.evaluate(LOOSE) == []
    if not page.startswith("reference"):
        assert browser.evaluate(SIDEWAYS) == []
    browser.open(f"{address}/{page}.html", width=390)
    wide, screen = browser.evaluate(SIZE)
    assert wide <= screen == 390
    assert browser.messages == []
    assert [url for url in browser.requests if not url.startswith((address, "about:", "data:"))] == []


def test_no_code_of_a_page_written_by_hand_scrolls_sideways(browser, address):
    folders = ("", "howto/", "results/")
    pages = [
        path.relative_to(ROOT / "docs").with_suffix("") for f in folders for path in (ROOT / "docs" / f).glob("*.md")
    ]
    wide = {}
    for page in pages:
        browser.open(f"{address}/{page}.html")
        wide[str(page)] = browser.evaluate(SIDEWAYS)
    assert len(wide) > 50
    assert {page: blocks for page, blocks in wide.items() if blocks} == {}


def test_the_site_is_light_or_dark_as_the_reader_wants(browser, address):
    browser.open(f"{address}/index.html")
    assert lightness(browser.evaluate(GROUND)) > 200
    browser.open(f"{address}/index.html", dark=True)
    assert lightness(browser.evaluate(GROUND)) < 60
    browser.evaluate(
        "document.querySelector('.theme-toggle').click()"
    )  # by hand: the other one, whatever the system says
    assert browser.wait_for("['light', 'dark'].includes(document.body.dataset.theme)")
    assert browser.messages == []


def test_formulas_are_drawn(browser, address):
    browser.open(f"{address}/method.html")
    boxes = browser.evaluate("[...document.querySelectorAll('math')].map((m) => m.getBoundingClientRect().width)")
    assert len(boxes) > 20
    assert min(boxes) > 0
    assert browser.evaluate("document.querySelector('math mfrac').getBoundingClientRect().height") > 20


def test_every_public_name_is_in_the_reference(site, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    from extensions.reference import all_names

    head, _, packed = (site / "objects.inv").read_bytes().partition(b"zlib.\n")
    assert head.startswith(b"# Sphinx inventory version 2")
    known = {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}
    wanted = all_names()
    sources = [source for source in House.of(ROOT).sources if not source.name.startswith("cli/")]
    listed = {name for source in sources for name in source.public_names}
    assert {name.rpartition(".")[2] for name in wanted} == listed
    assert [name for name in wanted if name not in known] == []


def test_every_page_is_reached_from_the_table_of_contents(site):
    first = (site / "index.html").read_text()
    pages = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").glob("*.md")]
    pages += [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs" / "howto").glob("*.md")]
    assert [str(page) for page in pages if page.name != "index.html" and f'href="{page}"' not in first] == []


def test_search_puts_pages_before_names_of_the_reference(site):
    assert (ROOT / "docs" / "static" / "scorer.js").read_text() in (site / "_static" / "language_data.js").read_text()


def test_the_reference_opens_with_the_three_estimators(site):
    links = re.findall(r'title="cndpm\.estimators\.\w+\.(\w+)"', (site / "reference" / "index.html").read_text())
    assert links[:3] == ["CNDPMClassifier", "CNDPMRegressor", "CNDPMDensity"]
    page = (site / "reference" / "cndpm.estimators.html").read_text()
    names = ("classifier", "regressor", "density", "base")
    places = [page.index(f'id="module-cndpm.estimators.{name}"') for name in names]
    assert places == sorted(places)
