"""Every example in a docstring and every block of Python in the documentation runs as it is written."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = sorted(module_name(file) for file in SOURCE.rglob("*.py") if ">>>" in file.read_text())
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_BLOCKS = [file for file in DOCUMENTS if file.name != "log.md" and BLOCK.search(file.read_text())]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CNDPM_DATA", raising=False)
    monkeypatch.setenv("MPLBACKEND", "agg")


def run_examples(name: str) -> str:
    """Runs the examples of a module's docstrings, each with the module's names alone; returns what failed."""
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)
    report: list[str] = []
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test, out=report.append)
    return "".join(report)


def run_blocks(file: Path) -> str:
    """Runs the blocks of a document one after another, with the names of those before; returns the first failure."""
    text = file.read_text()
    names: dict[str, object] = {"__name__": "__example__"}
    for block in BLOCK.finditer(text):
        lines = text[: block.start(1)].count("\n")  # so that an error names the document's own line
        try:
            exec(compile("\n" * lines + block[1], str(file), "exec"), names)
        except Exception as error:
            trace = error.__traceback__ and error.__traceback__.tb_next
            return f"{file.name}:{trace.tb_lineno if trace else lines + 1}: {type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name):
    failures = run_examples(name)
    assert not failures, failures


@pytest.mark.parametrize("file", WITH_BLOCKS, ids=lambda file: file.name)
def test_the_blocks_of_a_document_run(file):
    failure = run_blocks(file)
    assert not failure, failure
