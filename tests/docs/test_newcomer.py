"""A newcomer's paths: the files and commands of a page, carried out as the page prints them."""

import json
import re
import shlex
from pathlib import Path

import pytest

from cndpm.cli import main

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command)[1:])
        assert not ended.value.code, command
    return commands


def follow_python(page: str) -> None:
    """Runs a page's Python."""
    names: dict[str, object] = {"__name__": "__example__"}
    for kind, text in BLOCK.findall((DOCS / page).read_text()):
        if kind == "python":
            exec(compile(text, page, "exec"), names)
    assert names["accuracy"].get() > 0.5  # type: ignore[attr-defined]


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
    assert follow(page)
    assert Path(result, "result.json").exists()
    assert Path(result, "report", "index.html").exists()
    assert json.loads(Path(result, "result.json").read_text())["accuracy"] > 80


def test_the_readme_leads_to_a_first_result():
    """Its Python runs, and the commands of its list that need no download."""
    text = (DOCS.parent / "README.md").read_text()
    names: dict[str, object] = {"__name__": "__example__"}
    for kind, block in BLOCK.findall(text):
        if kind == "python":
            exec(compile(block, "README.md", "exec"), names)
    typed = [line.strip().partition("  #")[0].strip() for line in text.splitlines() if line.startswith("    cndpm ")]
    for command in ("cndpm list", "cndpm run split-digits", "cndpm run drift-flip", "cndpm report runs/*"):
        assert command in typed
        words = [part for word in shlex.split(command)[1:] for part in (sorted(map(str, Path().glob(word))) or [word])]
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert not ended.value.code, command
    assert json.loads(Path("runs/split-digits-cndpm/result.json").read_text())["accuracy"] > 90
    assert Path("report/index.html").exists()


def test_the_page_about_river_leads_to_a_pipeline():
    follow_python("river.md")
