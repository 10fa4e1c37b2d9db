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
