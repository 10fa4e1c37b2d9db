"""Figures of README and docs/results are those of the records."""

import json
import subprocess
from pathlib import Path

import pytest
from figures.__main__ import main
from figures.ages import changes_since
from figures.pages import Page, load_pages
from figures.records import Figure, FigureError, commits_of, read_rows, select

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", load_pages(ROOT), ids=lambda page: page.name)
def test_the_table_of_a_page_is_what_its_records_say(page: Page):
    assert page.written() == page.path.read_text(encoding="utf-8"), "python -m figures writes it anew"


def test_the_check_passes():
    assert main(["--check"]) == 0


@pytest.fixture
def project(tmp_path: Path):
    """A project with one record of three seeds; makes its page of a template."""
    records = tmp_path / "docs" / "results" / "records"
    records.mkdir(parents=True)
    runs = [{"seed": seed, "accuracy": 90.0 + seed} for seed in range(3)]
    lines = [{"scenario": "one", "runs": runs}, {"scenario": "two", "seed": 5, "accuracy": 7.125, "order": [1, 0]}]
    (records / "some.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "page.md").write_text("before\n<!-- figures: page -->\nold\n<!-- end -->\nafter\n")

    def make(table: str, figure: str = 'value = "accuracy"\nby = "scenario"') -> Page:
        text = f"page = 'page.md'\ntable = '{table}'\n[figures.a]\nrecord = 'some.jsonl'\n{figure}\n"
        (tmp_path / "page.toml").write_text(text)
        return Page(tmp_path / "page.toml", tmp_path)

    return make


def test_means_errors_and_seeds_come_from_the_runs(project):
    page = project("| {a one}, {a one:seeds} | {a two}, {a two:seeds} | {=93.23 ± 0.09} |")
    assert page.table() == "| 91.00 ± 0.58, three seeds | 7.12, one seed | 93.23 ± 0.09 |"
    assert page.written().startswith("before\n<!-- figures: page -->\n\n| 91.00")
    assert page.written().endswith("|\n\n<!-- end -->\nafter\n")


def test_a_number_from_nowhere_is_refused(project):
    with pytest.raises(FigureError, match=r"91\.5 come from nowhere"):
        project("| {a one} | 91.5 |")


def test_what_the_paper_did_not_publish_must_be_explained(project):
    given = 'value = "accuracy"\nby = "scenario"\n[given]\n"0.125" = "a threshold"'
    assert project("| {a one} at {=0.125} |", given).table() == "| 91.00 ± 0.58 at 0.125 |"
    with pytest.raises(FigureError, match=r"did not publish 0\.125"):
        project("| {a one} at {=0.125} |")
    with pytest.raises(FigureError, match=r"0\.125 are explained and not in the table"):
        project("| {a one} |", given)


@pytest.mark.parametrize(
    ("table", "figure", "message"),
    [
        ("{b}", 'value = "accuracy"', "no figure 'b'"),
        ("{a}", 'value = "loss"', "has loss"),
        ("{a}", 'value = "accuracy"\nwhere = { scenario = "three" }', "no row"),
        ("{a}", 'value = "accuracy"\nunlike = { order = [1, 0], scenario = "one" }', "no row"),
    ],
)
def test_a_figure_without_a_source_is_refused(project, table, figure, message):
    with pytest.raises(FigureError, match=message):
        project(table, figure).table()


def test_two_rows_of_one_seed_are_no_figure(tmp_path):
    (tmp_path / "some.json").write_text(json.dumps([{"seed": 0, "accuracy": a} for a in (1.0, 2.0)]))
    entry = {"record": "some.json", "value": "accuracy"}
    with pytest.raises(FigureError, match="name one of each"):
        Figure.of("a", tmp_path, entry, {})
    pooled = {**entry, "pooled": True, "form": "mean", "decimals": 1}
    assert Figure.of("a", tmp_path, pooled, {}).text == "1.5"


def test_a_part_of_a_record_is_found_by_names_and_positions(tmp_path):
    (tmp_path / "some.json").write_text(json.dumps({"later": [{"mnist": {"accuracy": 3.0}}]}))
    assert read_rows(tmp_path / "some.json", ["later", "0", "mnist"]) == [{"accuracy": 3.0}]


def test_a_range_is_one_number_where_all_agree():
    assert Figure("experts", (5, 5, 5), (0, 1, 2), decimals=0, form="range").text == "5"
    assert Figure("experts", (5, 7, 6), (0, 1, 2), decimals=0, form="range").text == "5 to 7"


def test_rows_of_the_same_seed_are_compared(tmp_path):
    here, there = ((0, 90.0), (1, 92.0), (2, 50.0)), ((1, 91.5), (0, 91.0), (7, 1.0))
    rows = [
        {"seed": seed, "machine": machine, "accuracy": accuracy}
        for machine, runs in (("here", here), ("there", there))
        for seed, accuracy in runs
    ]
    (tmp_path / "some.json").write_text(json.dumps(rows))
    against = {"record": "some.json", "where": {"machine": "there"}}
    entry = {"record": "some.json", "where": {"machine": "here"}, "value": "accuracy", "against": against}
    figure = Figure.of("a", tmp_path, entry | {"form": "range"}, {})
    assert (figure.values, figure.seeds, figure.text) == ((1.0, 0.5), (0, 1), "0.50 to 1.00")
    with pytest.raises(FigureError, match="no seed"):
        Figure.of("a", tmp_path, entry | {"where": {"seed": 2}}, {})


def test_gains_are_over_the_partner_of_the_same_seed_and_field(tmp_path):
    rows = [
        {"rule": rule, "dataset": dataset, "seed": seed, "accuracy": accuracy}
        for rule, dataset, seed, accuracy in [
            ("old", "a", 0, 50.0), ("old", "b", 0, 90.0), ("old", "a", 1, 60.0),
            ("new", "a", 1, 63.0), ("new", "b", 0, 91.0), ("new", "a", 0, 52.0),
        ]
    ]  # fmt: skip
    (tmp_path / "some.json").write_text(json.dumps(rows))
    like = {"record": "some.json", "value": "accuracy", "by": "dataset"}
    new, old = ({**like, "where": {"rule": rule}} for rule in ("new", "old"))
    figure = Figure.gain("a", tmp_path, new, old)
    assert sorted(figure.values) == [1.0, 2.5]  # a dataset counts once, whatever the number of its seeds
    assert figure.text == "1.75 ± 0.75"
    with pytest.raises(FigureError, match="no partners"):
        Figure.gain("a", tmp_path, new, {**old, "where": {"rule": "old", "dataset": "a"}})


def test_a_figure_of_groups_is_the_mean_of_their_means(tmp_path):
    rows = [{"dataset": d, "seed": seed, "gained": g} for d, seed, g in [("a", 0, 1.0), ("a", 1, 3.0), ("b", 0, 6.0)]]
    (tmp_path / "some.json").write_text(json.dumps(rows))
    entry = {"record": "some.json", "value": "gained", "pooled": True, "each": "dataset", "form": "error"}
    figure = Figure.of("a", tmp_path, entry, {})
    assert (figure.values, figure.text) == ((2.0, 6.0), "4.00 ± 2.00")


def test_a_template_asks_for_a_gain_by_the_names_of_two_figures(project):
    page = project("{a over a}", 'value = "accuracy"\nwhere = { scenario = "one" }')
    assert page.table() == "0.00 ± 0.00"
    with pytest.raises(FigureError, match="no figure 'b'"):
        project("{a over b}").table()


def test_a_table_names_whole_numbers_of_a_record_as_they_are_written():
    rows = [{"labels": 10}, {"labels": 100}, {"labels": "10"}, {"labels": True}]
    assert select(rows, {}, labels="10") == [rows[0], rows[2]]
    assert select(rows, {"where": {"labels": 100}}) == [rows[1]]


def test_a_table_names_the_commits_of_its_rows_whether_they_stand_beside_or_around_them(tmp_path):
    (tmp_path / "runs.jsonl").write_text(
        '{"commit": "abc1234567", "seed": 0, "accuracy": 1.0}\n{"commit": "def", "seed": 1, "accuracy": 2.0}\n'
    )
    (tmp_path / "one.json").write_text('{"environment": {"commit": "fed"}, "models": [{"seed": 0, "accuracy": 1.0}]}')
    assert commits_of(tmp_path, {"record": "runs.jsonl", "where": {"seed": 1}}) == ["def"]
    assert commits_of(tmp_path, {"record": "one.json", "inside": ["models"]}) == ["fed"]
    both = {"from": [{"record": "one.json"}, {"record": "runs.jsonl"}, {"record": "one.json"}]}
    assert commits_of(tmp_path, both) == ["fed", "abc1234", "def"]


def test_the_age_of_a_figure_is_how_often_the_package_has_changed_since(tmp_path):
    def git(*words):
        own = ["-c", "user.name=one", "-c", "user.email=one@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", "-C", tmp_path, *own, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    names = []
    for path in ("src/cndpm/one.py", "docs/page.md", "src/cndpm/two.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
        git("add", "-A")
        git("commit", "-qm", path)
        names.append(git("rev-parse", "--short", "HEAD"))
    assert [changes_since(tmp_path, name) for name in names] == [1, 1, 0]
    assert changes_since(tmp_path, "0000000") is None
    assert changes_since(tmp_path / "docs" / "nowhere", names[0]) is None
