"""Files that the pages on the code's structure name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = {path.relative_to(ROOT).as_posix() for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")}


@pytest.mark.parametrize("page", ["architecture", "drift", "method"])
def test_every_file_that_a_page_names_exists(page):
    named = set(re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / f"{page}.md").read_text()))
    assert named
    assert {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in FILES)} == set()
