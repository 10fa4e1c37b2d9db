"""Every mutant of the lists can be applied, and one that cannot is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutants.catalogue import MutantError, follow, load_mutants, mutated

ROOT = Path(__file__).resolve().parents[2]
LISTS = sorted((ROOT / "mutants").glob("*.toml"))


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_every_fragment_occurs_once_and_its_replacement_is_valid_python(file: Path):
    for mutant in load_mutants([file]):
        assert mutated(mutant, ROOT) != mutant.path(ROOT).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", LISTS, ids=lambda file: file.stem)
def test_no_change_is_listed_twice(file: Path):
    changes = [(mutant.module, mutant.find, mutant.replace) for mutant in load_mutants([file])]
    assert len(set(changes)) == len(changes)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one module and one test file."""
    (tmp_path / "src" / "cndpm").mkdir(parents=True)
    (tmp_path / "src" / "cndpm" / "sums.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "test_sums.py").write_text("")
    return tmp_path


def entry(**changed: str) -> str:
    fields = {"module": "sums.py", "claim": "sums add", "find": "a + b", "replace": "a - b", **changed}
    lines = [f"{name} = '{value}'" for name, value in fields.items()]
    return "\n".join(["[[mutant]]", *lines, 'tests = ["test_sums.py"]', ""])


def load(project: Path, text: str) -> str:
    (project / "room.toml").write_text(text)
    (mutant,) = load_mutants([project / "room.toml"])
    return mutated(mutant, project)


def test_a_mutant_replaces_its_fragment_and_leaves_the_file_alone(project: Path):
    assert load(project, entry()) == "def add(a, b):\n    return a - b\n"
    assert (project / "src" / "cndpm" / "sums.py").read_text() == "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"find": "a * b"}, r"room-1 \(sums add\): its fragment should occur once in sums.py and occurs 0 times"),
        ({"find": "a"}, "occurs 3 times"),
        ({"replace": "a + b"}, r"room-1 \(sums add\) changes nothing"),
        ({"replace": "a +"}, r"room-1 \(sums add\) leaves no valid Python"),
        ({"module": "products.py"}, "there is no file src/cndpm/products.py"),
    ],
)
def test_a_mutant_that_cannot_be_applied_is_named_with_the_reason(project: Path, changed: dict[str, str], message: str):
    with pytest.raises(MutantError, match=message):
        load(project, entry(**changed))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (entry().replace("claim", "reason"), "room-1 .* needs the fields module, claim"),
        (entry().replace('["test_sums.py"]', "[]"), "room-1 .* needs a list of test files"),
    ],
)
def test_an_entry_of_another_form_is_named(project: Path, text: str, message: str):
    with pytest.raises(MutantError, match=message):
        load(project, text)


def test_a_mutant_follows_its_fragment_to_another_file_and_is_told_where_there_is_none(project: Path):
    (project / "room.toml").write_text("# Sums.\n\n" + entry() + "\n" + entry(find="a * b", replace="b", claim="gone"))
    (project / "src" / "cndpm" / "sums.py").rename(project / "src" / "cndpm" / "adding.py")
    n_moved, (lost,) = follow([project / "room.toml"], project)
    assert (n_moved, lost.claim) == (1, "gone")
    first, second = load_mutants([project / "room.toml"])
    assert (first.module, second.module) == ("adding.py", "sums.py")
    assert (project / "room.toml").read_text().startswith("# Sums.\n\n[[mutant]]\nmodule = 'adding.py'\nclaim")
