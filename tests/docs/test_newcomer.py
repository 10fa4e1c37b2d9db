"""A newcomer's paths: the files and commands of a page, carried out as the page prints them.

Each takes less than five minutes, its reading included: 238 words a minute, as adults read English prose on average
(Brysbaert, 2019), and time of the processor. Installing is not counted: what is downloaded depends on the line.
"""

import json
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cndpm.cli import main

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@contextmanager
def five_minutes(text: str) -> Iterator[None]:
    """Fails where reading `text` and what is done inside take five minutes or longer."""
    began = time.process_time()  # of this process: what else the machine does is nobody's reading
    yield
    reading, doing = 60 * len(text.split()) / 238, time.process_time() - began
    print(f"reading {reading:.0f} s, doing {doing:.0f} s")
    assert reading + doing < 300


def follow(page: str) -> list[str]:
    """Runs a page's Python, writes the files that it shows (named by their first line), then types its commands."""
    blocks = BLOCK.findall((DOCS / page).read_text())
    names: dict[str, object] = {"__name__": "__example__"}
    for kind, text in blocks:
        if kind == "python":
            exec(compile(text, page, "exec"), names)
        elif kind == "toml" and (named := re.match(r"# (\S+\.toml)\n", text)):
            Path(named[1]).write_text(text)
    lines = [line.partition("  #")[0] for kind, text in blocks if kind == "bash" for line in text.splitlines()]
    commands = [line for line in lines if line.startswith("cndpm ")]
    for command in commands:
        type_in(command)
    return commands


def type_in(command: str) -> None:
    """Runs a command as the shell does, which writes names in the place of a star."""
    typed = shlex.split(command)[1:]
    words = [part for word in typed for part in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert not ended.value.code, command


def follow_python(page: str) -> dict[str, object]:
    """Runs the Python of a page's text, and returns its names."""
    names: dict[str, object] = {"__name__": "__example__"}
    for kind, text in BLOCK.findall(page):
        if kind == "python":
            exec(compile(text, "page", "exec"), names)
    return names


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CNDPM_DATA", raising=False)
    monkeypatch.setenv("MPLBACKEND", "agg")


@pytest.mark.parametrize(
    ("page", "result"),
    [
        ("start.md", "runs/split-digits-cndpm"),
        ("howto/table.md", "runs/cars-cndpm"),
        ("howto/images.md", "runs/animals-cndpm"),
    ],
)
def test_a_page_leads_to_a_result(page, result):
    to_the_result, _, _ = (DOCS / page).read_text().partition("## Missing values")  # on one page only, after the result
    with five_minutes(to_the_result):
        assert follow(page)
    assert Path(result, "result.json").exists()
    assert Path(result, "report", "index.html").exists()
    assert json.loads(Path(result, "result.json").read_text())["accuracy"] > 80


def test_the_readme_leads_to_a_first_result():
    """Its Python runs, and the commands of its list that need no download."""
    text = (DOCS.parent / "README.md").read_text()
    names: dict[str, object] = {"__name__": "__example__"}
    first, *others = [found for found in BLOCK.finditer(text) if found[1] == "python"]
    with five_minutes(text[: first.end()]):  # up to there; `cndpm run split-digits` is mentioned before
        exec(compile(first[2], "README.md", "exec"), names)
        type_in("cndpm run split-digits")
    for block in others:
        exec(compile(block[2], "README.md", "exec"), names)
    typed = [line.strip().partition("  #")[0].strip() for line in text.splitlines() if line.startswith("    cndpm ")]
    for command in ("cndpm list", "cndpm run split-digits", "cndpm run drift-flip", "cndpm report runs/*"):
        assert command in typed
        if command != "cndpm run split-digits":
            type_in(command)
    assert json.loads(Path("runs/split-digits-cndpm/result.json").read_text())["accuracy"] > 90
    assert Path("report/index.html").exists()


def test_the_page_about_river_leads_to_a_pipeline():
    text = (DOCS / "river.md").read_text()
    with five_minutes(text.partition("## What a row costs")[0]):
        assert follow_python(text)["accuracy"].get() > 0.5  # type: ignore[attr-defined]


@pytest.mark.parametrize("page", ["concept-drift.md", "coming-from.md"])
def test_pages_with_plots_run(page):
    text = (DOCS / page).read_text()
    with five_minutes(text.partition("## Feature by feature")[0]):
        assert "model" in follow_python(text)
