"""Numbers of hand-written pages are in the records that are named for them, or the page says that they are not."""

import json
from pathlib import Path

import pytest
from figures.records import FigureError
from figures.tracing import TracedPage, load_traced

ROOT = Path(__file__).resolve().parents[2]

PAGES = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "results").glob("*.md")} | {"README.md"}


@pytest.mark.parametrize("page", load_traced(ROOT), ids=lambda page: page.name)
def test_a_page_names_what_no_record_holds(page: TracedPage):
    assert page.written() == page.path.read_text(encoding="utf-8"), "python -m figures names it"


def test_every_page_of_results_is_traced():
    described = {page.path.relative_to(ROOT).as_posix() for page in load_traced(ROOT)}
    assert PAGES - described == {"docs/results/index.md"}


@pytest.fixture
def project(tmp_path: Path):
    """A project with one record; makes a traced page of a text."""
    records = tmp_path / "docs" / "results" / "records"
    records.mkdir(parents=True)
    runs = [{"seed": seed, "accuracy": accuracy, "n": 1_234_567} for seed, accuracy in enumerate((90.0, 91.0, 95.0))]
    (records / "some.json").write_text(json.dumps({"scenario": "one", "runs": runs}))

    def make(text: str, more: str = "") -> TracedPage:
        (tmp_path / "page.md").write_text(text)
        (tmp_path / "page.toml").write_text(f"page = 'page.md'\nrecords = ['some.json']\n{more}")
        return TracedPage(tmp_path / "page.toml", tmp_path)

    return make


def test_values_means_and_errors_of_a_record_are_known(project):
    text = "# Here\n\n95.0, 92.00 ± 1.53 of three seeds, 1.23M numbers; the paper has 93.23 ± 0.09.\n"
    assert project(text).written() == text


def test_other_numbers_are_named_in_their_section_and_only_there(project):
    page = project("# One\n\n95.0 and 94.0, 94.0.\n\n## Two\n\n95.0\n")
    once = page.written()
    assert once == "# One\n\n95.0 and 94.0, 94.0.\n\n*Without a record: 94.0.*\n\n## Two\n\n95.0\n"
    assert page.without_record == ["94.0"]
    page.path.write_text(once)
    assert page.written() == once  # a second time changes nothing


def test_many_numbers_are_counted(project):
    text = "# One\n\n" + ", ".join(f"{n}.5" for n in range(20, 33)) + " and 95.0\n"
    assert project(text).written().endswith("*Without a record: 13 of 14 figures.*\n")


def test_code_versions_and_written_tables_are_no_claims(project):
    text = "# One\n\n`0.25`\n\n    python --lr 0.75\n\ntorch 2.11\n\n<!-- figures: a -->\n0.5\n<!-- end -->\n"
    assert project(text).written() == text


def test_a_section_may_have_records_of_its_own(project):
    text = "# One\n\n95.0\n\n# Two\n\n95.0\n"
    page = project(text, "[sections]\nTwo = []\n")
    assert page.written().endswith("# Two\n\n95.0\n\n*Without a record: 95.0.*\n")
    with pytest.raises(FigureError, match="no section Three"):
        project(text, "[sections]\nThree = []\n").written()


def test_what_is_given_must_be_there(project):
    assert project("# One\n\n0.25\n", "[given]\n'0.25' = 'a threshold'\n").without_record == []
    with pytest.raises(FigureError, match=r"0\.5 are given and not on the page"):
        project("# One\n", "[given]\n'0.5' = 'a threshold'\n").written()


def test_no_digit_is_allowed_to_differ(project):
    page = project("# One\n\n95.1\n")
    page.written()
    assert page.without_record == ["95.1"]
