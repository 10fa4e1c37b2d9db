"""Notebooks run as they are, print what they are stored with, and become pages."""

import json
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
NEEDS = {"comparing-learners": "rich", "frozen-backbone": "safetensors"}
"""Those that need an extra; they also take longer."""


@pytest.fixture
def notebooks(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(DOCS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    from extensions import notebooks

    return notebooks


def outputs(notebook, kind):
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [output for cell in cells for output in cell["outputs"] if output["output_type"] == kind]


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in NEEDS)) for path in NOTEBOOKS]
)
def test_a_notebook_runs_and_prints_and_draws(path, notebooks):
    if path.stem in NEEDS:
        pytest.importorskip(NEEDS[path.stem])
    notebook = json.loads(path.read_text())
    stored = [len(outputs(notebook, kind)) for kind in ("stream", "display_data")]
    notebooks.carry_out(notebook, path.name)
    assert [len(outputs(notebook, kind)) for kind in ("stream", "display_data")] == stored
    assert min(stored) >= 1


def test_a_page_holds_the_words_the_code_and_what_came_of_it(notebooks):
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {"cell_type": "code", "source": ["print(1)\n", "2 + 2"], "outputs": []},
    ]
    notebook = {"cells": cells}
    notebooks.carry_out(notebook, "small")
    page = notebooks.to_markdown(notebook)
    assert page == "# Title\nwords\n\n```python\nprint(1)\n2 + 2\n```\n\n```text\n1\n```"


def test_there_are_the_five_notebooks_and_all_are_in_the_table_of_contents():
    assert len(NOTEBOOKS) == 5 and "sphinx" not in sys.modules
    contents = (DOCS / "index.md").read_text().splitlines()
    assert [path.stem for path in NOTEBOOKS if f"notebooks/{path.stem}" not in contents] == []
