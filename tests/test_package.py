"""What is said about the package in its files agrees with the package."""

import doctest
import re
import tomllib
from pathlib import Path

import benchmarks.compare
import pytest
import release.__main__
import release.readme
import yaml
from benchmarks.compare import compare
from release.__main__ import oldest
from release.readme import for_an_index

from cndpm import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_code_has_its_version_in_one_place():
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    files = [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *(ROOT / "src").rglob("*.py")]
    written = re.compile(rf'version\w* ?[:=] ?"?{re.escape(__version__)}"?')
    assert [file.name for file in files if written.search(file.read_text())] == ["version.py"]


def test_citation_and_changelog_name_the_version_and_its_date():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    newest = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None and newest[1] == f"{__version__} - {citation['date-released']}"


def test_an_index_shows_a_readme_without_links_to_files_beside_it():
    shown = for_an_index((ROOT / "README.md").read_text())
    assert [link for link in re.findall(r"\]\(([^)]*)\)", shown) if not link.startswith("https://")] == []
    assert "when not to use it" in shown and shown.startswith("# cndpm")


def test_the_policy_names_the_tag_of_this_version():
    assert f"`v{__version__}`" in (ROOT / "docs" / "policy.md").read_text()


def test_every_dependency_has_an_oldest_version_to_try():
    named = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cli"]]
    assert len(oldest(PROJECT)) == len(named)
    assert "numpy==1.26" in oldest(PROJECT)


def test_versions_that_are_tested_lie_in_the_ranges_that_should_work():
    """Those of extras that the suite installs; the others bring many packages of their own."""
    pinned = dict(line.lower().replace("_", "-").split("==") for line in (ROOT / "constraints.txt").read_text().split())
    extras = PROJECT["optional-dependencies"]
    pinned_extras = [bounds for extra, bounds in extras.items() if extra != "ray"]
    for one in [bound for bounds in pinned_extras for bound in bounds] + PROJECT["dependencies"]:
        if match := re.fullmatch(r"([\w-]+)>=([\d.]+)", one):
            tested = pinned[match[1].lower().replace("_", "-")]
            numbers = [tuple(map(int, re.findall(r"\d+", text)[:2])) for text in (tested, match[2])]
            assert numbers[0] >= numbers[1], one


@pytest.mark.parametrize(
    "file", [*sorted(ROOT.glob(".github/**/*.yml")), ROOT / ".pre-commit-config.yaml"], ids=lambda f: f.name
)
def test_files_for_a_forge_can_be_read(file):
    assert isinstance(yaml.safe_load(file.read_text()), dict)


def test_commands_of_the_workflow_exist():
    steps = (ROOT / ".github" / "workflows" / "checks.yml").read_text()
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {word for line in re.findall(r"run: make (.+)", steps) for word in line.split()} <= targets


@pytest.mark.parametrize("module", [benchmarks.compare, release.__main__, release.readme])
def test_the_examples_of_tools_run(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("before", "after", "is_worse"),
    [
        ({"rows_learn": 1.0}, {"rows_learn": 1.3}, False),
        ({"rows_learn": 1.0}, {"rows_learn": 1.4}, True),
        ({"rows_learn": 1.4}, {"rows_learn": 1.0}, False),
        ({"digits_accuracy": 98.0}, {"digits_accuracy": 98.1}, True),
        ({"digits_accuracy": 98.0}, {}, False),
    ],
)
def test_times_may_vary_and_results_may_not(before, after, is_worse):
    assert compare(before, after)[1] is is_worse
