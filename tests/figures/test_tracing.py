"""Numbers of hand-written pages are those of the cells that they name, or the check fails."""

import json
from pathlib import Path

import pytest
from figures.exchanges import exchanged, noticed
from figures.kinds import KindsTable
from figures.missing import MissingTable
from figures.paper import load_paper_tables
from figures.records import FigureError
from figures.tracing import TracedPage, load_traced

from figures import __main__ as command

ROOT = Path(__file__).resolve().parents[2]
PAGES = load_traced(ROOT)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_number_of_a_page_is_that_of_its_cell(page: TracedPage):
    assert page.lost() == [], "after a look at the page: python -m figures --name"


def test_the_check_notices_99_of_100_exchanges_of_two_numbers_of_a_page():
    tries = [one for page in PAGES for one in noticed(page)]
    assert len(tries) > 1000 and sum(tries) >= 0.99 * len(tries)


def test_readme_and_all_pages_that_are_written_by_hand_are_traced():
    traced = {page.path.relative_to(ROOT).as_posix() for page in PAGES}
    assert {"README.md", "docs/model_card.md", "docs/drift.md", "docs/howto/table.md"} <= traced
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "results").glob("*.md")} <= traced
    with_records = {page.name for page in PAGES if page._has_records}
    assert {"docs-results-drift", "README", "docs-model_card", "docs-results-gate"} <= with_records


def test_the_table_of_kinds_is_that_of_the_pages():
    table = KindsTable(ROOT)
    assert table.written() == table.path.read_text(encoding="utf-8"), "python -m figures writes it anew"


@pytest.fixture
def project(tmp_path: Path):
    """A project with one record; makes a traced page of a text, and names its numbers."""
    records = tmp_path / "docs" / "results" / "records"
    records.mkdir(parents=True)
    (tmp_path / "figures").mkdir()
    runs = [{"seed": seed, "accuracy": accuracy, "n": 1_234_567} for seed, accuracy in enumerate((90.0, 91.0, 95.0))]
    (records / "some.json").write_text(json.dumps({"scenario": "one", "mib": 3584, "runs": runs}))

    def make(text: str, more: str = "") -> TracedPage:
        (tmp_path / "page.md").write_text(text)
        (tmp_path / "page.toml").write_text(f"page = 'page.md'\nsources = ['some.json', 'paper: sharing']\n{more}")
        page = TracedPage.described(tmp_path / "page.toml", tmp_path)
        page.write_names()
        return page

    return make


def names(page: TracedPage) -> list[str]:
    return [cell for _, cell in page._lines()]


def test_values_means_and_errors_of_a_record_are_named(project):
    text = "# Here\n\n95.0, 92.00 ± 1.53 of three seeds, 1.23M numbers, 3.5 GiB; the paper has 93.23 ± 0.09.\n"
    page = project(text)
    assert page.lost() == []
    assert names(page)[:3] == ["some.json seed=2 accuracy", "some.json accuracy mean", "some.json accuracy error"]
    assert page.kinds() == (7, 0, 0)


@pytest.mark.parametrize("text", ["1.23 numbers", "1.23K numbers", "3.5 MiB", "95.1", "95.00 to 95.01"])
def test_no_digit_and_no_unit_is_allowed_to_differ(project, text):
    with pytest.raises(FigureError, match="Here: no record holds"):
        project(f"# Here\n\n{text}\n")


def test_a_number_that_stands_in_the_place_of_another_is_noticed_though_a_record_holds_it(project):
    page = project("# One\n\nseed 0 has 90.0, seed 1 has 91.0.\n")
    (other,) = exchanged(page.path.read_text())
    assert other == "# One\n\nseed 0 has 91.0, seed 1 has 90.0.\n"
    assert page.lost(other) == ["One, seed 0 has 91.0, seed 1 has 90.0.: 91.0 stands where 90.0 was named"]


def test_a_number_is_noticed_where_its_record_changes(project):
    page = project("# One\n\n90.0\n")
    record = page.path.parent / "docs" / "results" / "records" / "some.json"
    record.write_text(record.read_text().replace("90.0", "90.5"))
    again = TracedPage.described(page.path.with_suffix(".toml"), page.path.parent)
    assert again.lost() == ["One: 90.0 is said to be some.json seed=0 accuracy, which is 90.5"]


def test_numbers_are_printed_anew_where_their_cells_have_changed_and_their_sentences_are_shown(project):
    page = project("# One\n\n1.23M at 90.0, 91.0 and `90.0`\n\n`--lr 90.0`\n")
    record = page.path.parent / "docs" / "results" / "records" / "some.json"
    record.write_text(record.read_text().replace("90.0", "100.25").replace("1234567", "2_345_678".replace("_", "")))
    again = TracedPage.described(page.path.with_suffix(".toml"), page.path.parent)
    told = again.follow()
    assert page.path.read_text() == "# One\n\n2.35M at 100.2, 91.0 and `90.0`\n\n`--lr 90.0`\n"
    assert [line.partition(" now, ")[0] for line in told] == [
        "page.md, One: 1.23 is 2.35", "page.md, One: 90.0 is 100.2"
    ]  # fmt: skip
    assert again.lost() == [] and again.follow() == []


def test_a_number_that_nobody_named_is_not_printed_anew(project):
    page = project("# One\n\n90.0\n")
    page.path.write_text("# One\n\n91.0\n")
    assert page.follow() == [] and page.path.read_text() == "# One\n\n91.0\n"


def test_names_are_kept_where_numbers_are_added(project):
    page = project("# One\n\n90.0 and 95.0\n")
    page.path.write_text("# One\n\n90.0, 91.0 and 95.0\n")
    assert page.lost() == ["One, 90.0, 91.0 and 95.0: 91.0 stands where 95.0 was named"]
    assert page.write_names() == ["page.md, One: 91.0 is some.json seed=1 accuracy"]
    assert page.lost() == []


def test_the_likeliest_cell_is_the_one_whose_words_stand_about_the_number(project):
    page = project("# One\n\n| seed | accuracy |\n|---|---|\n| 2 | 95.0 |\n")
    assert names(page) == ["some.json seed=2 accuracy"]


def test_numbers_of_a_page_without_records_say_so(project):
    root = project("# One\n").path.parent
    (root / "README.md").write_text("# Two\n\n5.5 and 6.5\n")
    page = TracedPage(root / "README.md", root)
    page.write_names()
    assert names(page) == ["no record", "no record"] and page.kinds() == (0, 0, 2) and page.lost() == []
    assert page.lost("# Two\n\n6.5 and 5.5\n") != []


def test_code_versions_and_written_tables_are_no_claims(project):
    text = "# One\n\n`0.25`\n\n    python --lr 0.75\n\ntorch 2.11\n\n<!-- figures: a -->\n0.5\n<!-- end -->\n"
    assert project(text).lost() == []


def test_a_section_may_have_sources_of_its_own(project):
    text = "# One\n\n95.0\n\n# Two\n\n95.0\n"
    with pytest.raises(FigureError, match=r"Two: no record holds 95\.0"):
        project(text, "[sections]\nTwo = []\n")
    with pytest.raises(FigureError, match="no section Three"):
        project(text, "[sections]\nThree = []\n").lost()


def test_what_is_given_must_be_there(project):
    assert project("# One\n\n0.25\n", "[given]\n'0.25' = 'a threshold'\n").lost() == []
    with pytest.raises(FigureError, match=r"0\.5 are explained and not on the page"):
        project("# One\n", "[given]\n'0.5' = 'a threshold'\n").lost()


def test_what_is_derived_must_follow_from_numbers_of_the_page(project):
    text = "# One\n\n95.0 and 91.0 differ by 4.0 points, of 1,000 it is 0.4 per cent.\n"
    right = "[derived]\n'4.0' = '95.0 - 91.0'\n'0.4' = '100 * (95.0 - 91.0) / 1,000'\n"
    assert project(text, right).lost() == []
    with pytest.raises(FigureError, match="which is 4"):
        project(text.replace("4.0", "4.1"), right.replace("4.0", "4.1")).lost()
    with pytest.raises(FigureError, match=r"90\.9 is not there"):
        project(text, right.replace("91.0'", "90.9'")).lost()
    with pytest.raises(FigureError, match="no sum, difference"):
        project(text, right.replace("95.0 - 91.0", "95.0 ** 91.0")).lost()


def test_a_number_without_a_record_fails_the_command_even_where_it_writes(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "docs" / "results" / "records").mkdir(parents=True)
    (tmp_path / "docs" / "results" / "index.md").write_text("<!-- figures: kinds -->\n<!-- end -->\n")
    tables = [table.name for table in (*load_paper_tables(tmp_path), MissingTable(tmp_path))]  # type: ignore[attr-defined]
    marks = (f"<!-- figures: {name} -->\n<!-- end -->\n" for name in tables)
    (tmp_path / "docs" / "results" / "paper.md").write_text("".join(marks))
    (tmp_path / "figures" / "traced").mkdir(parents=True)
    (tmp_path / "figures" / "traced" / "page.toml").write_text("page = 'page.md'\n")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text("# One\n\nnothing\n")
    assert (command.main(["--check"]), command.main([]), command.main(["--check"])) == (1, 0, 0)
    (tmp_path / "page.md").write_text("# One\n\n94.5\n")
    assert (command.main([]), command.main(["--name"])) == (2, 2)
    told = capsys.readouterr()
    assert "1 numbers, of which 0 are named" in told.out and "One: no record holds 94.5" in told.err
    (tmp_path / "figures" / "traced" / "page.toml").write_text("page = 'page.md'\n[given]\n'94.5' = 'a limit'\n")
    assert (command.main(["--name"]), command.main(["--check"])) == (0, 0)
