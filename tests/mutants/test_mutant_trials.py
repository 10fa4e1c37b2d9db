"""The trials themselves, on a project of a few lines and on a few mutants of the lists."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVER = """
import sys
from pathlib import Path
from mutants.catalogue import load_mutants
from mutants.trials import check_tests_pass, project_copies, try_mutants
root = Path(sys.argv[1])
with project_copies(root, 2) as copies:
    check_tests_pass(["test_sums.py"], copies[0], limit=60)
    for outcome in try_mutants(load_mutants([root / "room.toml"]), copies, limit=int(sys.argv[2])):
        print(outcome.mutant.name, outcome.noticed, outcome.how.split("::")[-1])
    for copy in copies:
        assert (copy / "src/cndpm/sums.py").read_text() == (root / "src/cndpm/sums.py").read_text()
"""
CHANGES = ["a - b", "b + a", "undefined_name(a)", "sum([a, b]) if a else spin()"]
SOURCE = "def spin():\n    while True:\n        pass\n\n\ndef add(a, b):\n    return a + b\n"
TEST = "from cndpm.sums import add\n\n\ndef test_sum():\n    assert add(1, 2) == 3\n    assert add(0, 2) == 2\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one function and four mutants: one is wrong, one equivalent, one fails, one never ends."""
    (tmp_path / "src" / "cndpm").mkdir(parents=True)
    (tmp_path / "src" / "cndpm" / "__init__.py").write_text("")
    (tmp_path / "src" / "cndpm" / "sums.py").write_text(SOURCE)
    (tmp_path / "test_sums.py").write_text(TEST)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["src"]\n')
    entries = [
        f"[[mutant]]\nmodule = 'sums.py'\nclaim = 'sums add'\nfind = 'a + b'\nreplace = '{change}'\n"
        "tests = ['test_sums.py']\n"
        for change in CHANGES
    ]
    (tmp_path / "room.toml").write_text("".join(entries))
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False
    )


def test_wrong_sums_are_noticed_equal_ones_survive_and_endless_ones_run_out_of_time(project: Path):
    done = run("-c", DRIVER, str(project), "6")  # of processor time: importing pytest takes one of them
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "room-1 True test_sum",
        "room-2 False no test failed",
        "room-3 True test_sum",
        "room-4 True out of time",
    ]


def test_tests_that_fail_without_a_mutant_are_named(project: Path):
    (project / "test_sums.py").write_text(TEST.replace("== 3", "== 4"))
    done = run("-c", DRIVER, str(project), "4")
    assert "tests fail without any mutant: test_sums.py::test_sum" in done.stderr


def test_a_few_mutants_of_the_lists_are_noticed():
    done = run("-m", "mutants", "mutants/baselines.toml", "--only", "growing_samples.py", "finetune.py", "--jobs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SURVIVED" not in done.stdout


def test_a_name_without_a_mutant_is_refused():
    done = run("-m", "mutants", "--only", "nowhere.py", "--check")
    assert done.returncode == 2
    assert "no mutant is named nowhere.py" in done.stderr
