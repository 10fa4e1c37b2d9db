"""Numbers of hand-written pages are in the records that are named for their sections, or the check fails."""

import json
from pathlib import Path

import pytest
from figures.chance import ChanceTable
from figures.missing import MissingTable
from figures.paper import load_paper_tables
from figures.records import FigureError
from figures.tracing import TracedPage, load_traced

from figures import __main__ as command

ROOT = Path(__file__).resolve().parents[2]

PAGES = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "results").glob("*.md")}


@pytest.mark.parametrize("page", load_traced(ROOT), ids=lambda page: page.name)
def test_every_number_of_a_page_has_a_record(page: TracedPage):
    assert page.missing() == []


def test_every_page_of_results_the_readme_and_the_model_card_are_traced():
    described = {page.path.relative_to(ROOT).as_posix() for page in load_traced(ROOT)}
    assert described == PAGES | {"README.md", "docs/model_card.md"}


def test_the_table_of_chances_is_that_of_the_pages():
    table = ChanceTable(ROOT)
    assert table.written() == table.path.read_text(encoding="utf-8"), "python -m figures writes it anew"


@pytest.fixture
def project(tmp_path: Path):
    """A project with one record; makes a traced page of a text."""
    records = tmp_path / "docs" / "results" / "records"
    records.mkdir(parents=True)
    runs = [{"seed": seed, "accuracy": accuracy, "n": 1_234_567} for seed, accuracy in enumerate((90.0, 91.0, 95.0))]
    (records / "some.json").write_text(json.dumps({"scenario": "one", "mib": 3584, "runs": runs}))

    def make(text: str, more: str = "") -> TracedPage:
        (tmp_path / "page.md").write_text(text)
        (tmp_path / "page.toml").write_text(f"page = 'page.md'\nsources = ['some.json', 'paper: sharing']\n{more}")
        return TracedPage(tmp_path / "page.toml", tmp_path)

    return make


def test_values_means_and_errors_of_a_record_are_known(project):
    text = "# Here\n\n95.0, 92.00 ± 1.53 of three seeds, 1.23M numbers, 3.5 GiB; the paper has 93.23 ± 0.09.\n"
    assert project(text).missing() == []


@pytest.mark.parametrize("text", ["1.23 numbers", "1.23K numbers", "3.5 MiB", "95.1", "95.00 to 95.01"])
def test_no_digit_and_no_unit_is_allowed_to_differ(project, text):
    (line,) = project(f"# Here\n\n{text}\n").missing()
    assert line.startswith("Here: no record holds ")


def test_numbers_without_a_record_are_named_by_their_section(project):
    page = project("94.0\n\n# One\n\n95.0 and 96.0, 96.0, 97.0.\n\n## Two\n\n95.0\n")
    assert page.missing() == ["before the first heading: no record holds 94.0", "One: no record holds 96.0, 97.0"]


def test_code_versions_and_written_tables_are_no_claims(project):
    text = "# One\n\n`0.25`\n\n    python --lr 0.75\n\ntorch 2.11\n\n<!-- figures: a -->\n0.5\n<!-- end -->\n"
    assert project(text).missing() == []


def test_a_section_may_have_sources_of_its_own(project):
    text = "# One\n\n95.0\n\n# Two\n\n95.0\n"
    assert project(text, "[sections]\nTwo = []\n").missing() == ["Two: no record holds 95.0"]
    with pytest.raises(FigureError, match="no section Three"):
        project(text, "[sections]\nThree = []\n").missing()


def test_what_is_given_must_be_there(project):
    assert project("# One\n\n0.25\n", "[given]\n'0.25' = 'a threshold'\n").missing() == []
    with pytest.raises(FigureError, match=r"0\.5 are explained and not on the page"):
        project("# One\n", "[given]\n'0.5' = 'a threshold'\n").missing()


def test_what_is_derived_must_follow_from_numbers_of_the_page(project):
    text = "# One\n\n95.0 and 91.0 differ by 4.0 points, of 1,000 it is 0.4 per cent.\n"
    right = "[derived]\n'4.0' = '95.0 - 91.0'\n'0.4' = '100 * (95.0 - 91.0) / 1,000'\n"
    assert project(text, right).missing() == []
    with pytest.raises(FigureError, match="which is 4"):
        project(text.replace("4.0", "4.1"), right.replace("4.0", "4.1")).missing()
    with pytest.raises(FigureError, match=r"90\.9 is not there"):
        project(text, right.replace("91.0'", "90.9'")).missing()
    with pytest.raises(FigureError, match="no sum, difference"):
        project(text, right.replace("95.0 - 91.0", "95.0 ** 91.0")).missing()


def test_the_chance_of_a_number_is_the_share_of_its_form_that_would_be_found(project):
    (chance,) = project("# One\n\n95.0\n").chances()  # of 90.0 to 99.9 it is 90.0, 91.0, 92.0, 93.2, 93.3 and 95.0
    assert chance == pytest.approx(0.06)
    assert project("# One\n\n0.25\n", "[given]\n'0.25' = 'a threshold'\n").chances() == []


def test_a_number_without_a_record_fails_the_command_even_where_it_writes(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "docs" / "results" / "records").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "index.md").write_text("<!-- figures: chance -->\n<!-- end -->\n")
    tables = [table.name for table in (*load_paper_tables(tmp_path), MissingTable(tmp_path))]
    marks = (f"<!-- figures: {name} -->\n<!-- end -->\n" for name in tables)
    (tmp_path / "docs" / "results" / "paper.md").write_text("".join(marks))
    (tmp_path / "figures" / "traced").mkdir(parents=True)
    (tmp_path / "figures" / "traced" / "page.toml").write_text("page = 'page.md'\n")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("# One\n\nnothing\n")
    assert (command.main(["--check"]), command.main([]), command.main(["--check"])) == (1, 0, 0)
    (tmp_path / "page.md").write_text("# One\n\n94.5\n")
    command.main([])
    assert command.main([]) == 2
    assert "One: no record holds 94.5" in capsys.readouterr().out
