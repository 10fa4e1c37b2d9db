import csv
import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cndpm.paper import find_experiment
from cndpm.paper.experiment import Published
from cndpm.paper.reproduction import cell_config
from cndpm.reports.collection import collect
from cndpm.reports.formats import to_csv, to_latex, to_markdown, to_terminal
from cndpm.reports.groups import Group, compare, published_values
from cndpm.reports.run import Run
from cndpm.reports.tables import Row, Table, TableEntry, _best, comparison_table, experiment_table


def render_terminal(table):
    """The table of the terminal as plain text."""
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(to_terminal(table))
    return console.file.getvalue()


def entry(value, error):
    return TableEntry(value, error)


def test_the_best_is_marked_only_beyond_the_errors():
    assert _best([entry(90.0, 1.0), entry(85.0, 1.0)], 1) == 0
    assert _best([entry(90.0, 3.0), entry(85.0, 2.0)], 1) is None
    assert _best([entry(0.21, 0.001), entry(0.18, 0.001)], -1) == 1
    assert _best([entry(90.0, None), entry(10.0, 0.1)], 1) is None
    assert _best([entry(90.0, 1.0)], 1) is None


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 20)), min_size=2, max_size=6))
def test_a_marked_value_is_ahead_of_every_other_by_more_than_both_errors(pairs):
    best = _best([entry(*pair) for pair in pairs], 1)
    clear = [
        i
        for i, (value, error) in enumerate(pairs)
        if all(value - other > error + e for j, (other, e) in enumerate(pairs) if j != i)
    ]
    assert clear == ([] if best is None else [best])


def test_a_comparison_holds_means_parameters_memory_and_time(records):
    table = comparison_table(compare(collect([records]).runs)[0])
    assert {"accuracy", "n_experts", "n_parameters", "memory_samples", "seconds"} <= set(table.metrics)
    assert [row.n_seeds for row in table.rows] == [2, 2]
    assert table.missing == ()


def test_a_seed_that_others_have_is_missing_with_the_command_that_makes_it(records):
    runs = [run for run in collect([records]).runs if run.learner != "finetune" or run.seed == 0]
    (gap,) = comparison_table(compare(runs)[0]).missing
    assert gap.reason == "seed 1 was not run"
    assert "--learner finetune --seed 1 --seeds 1 --out" in gap.command


def run_like(run, config, **summary):
    made = {**run.record.summary, **summary}
    return Run(replace(run.record, config=config, summary=made))


def test_an_experiment_shows_the_papers_value_the_difference_and_what_is_missing(records):
    experiment = find_experiment("concentration")
    config = cell_config(experiment.cells[1], "paper", "cpu").to_json()
    run = run_like(collect([records / "cndpm"]).runs[0], config, accuracy=93.0, n_experts=5)
    table = experiment_table(experiment, [Group("cndpm", (run,))], n_seeds=1)
    accuracy = table.rows[1].entries["accuracy"]
    assert (accuracy.value, accuracy.published) == (93.0, Published(93.23, 0.09))
    assert accuracy.difference == pytest.approx(-0.23)
    assert "−0.23" in render_terminal(table)
    assert [gap.label for gap in table.missing] == ["log α = -600, Split-MNIST", "log α = 80, Split-MNIST"]
    assert all(gap.command == "cndpm reproduce concentration --only cndpm --seeds 1" for gap in table.missing)


def test_published_values_belong_to_the_same_stream_and_settings_only():
    cell = next(cell for cell in find_experiment("table1").cells if cell.learner == "finetune")
    config = cell_config(cell, "paper", "cpu").to_json()
    assert published_values(config)["accuracy"].value == 19.43
    assert "accuracy" not in published_values({**config, "scenario": {**config["scenario"], "fraction": 0.5}})


NASTY = "<script>alert(1)</script> & 50% of_a|b `c` \\ $x$ {y} # ~^"
TABLE = Table(
    NASTY,
    ("accuracy",),
    (
        Row(NASTY, "one", 2, {"accuracy": TableEntry(90.125, 0.5, Published(91.0, 0.1), best=True)}),
        Row("other", "one", 2, {"accuracy": TableEntry(80.0, 0.5)}),
    ),
)


def test_names_are_text_in_markdown():
    text = to_markdown(TABLE)
    assert "<script>" not in text and "&lt;script&gt;" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.replace(r"\|", "").count("|") for line in rows}) == 1
    assert "**90.12 ± 0.50**" in text


def test_names_are_text_in_latex():
    text = to_latex(TABLE)
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0]
    assert r"\textless{}script\textgreater{}" in body
    assert r"50\% of\_a|b" in body and r"\$x\$ \{y\} \# \textasciitilde{}\textasciicircum{}" in body
    assert r"\textbf{90.12 $\pm$ 0.50}" in body
    assert body.count("&") - body.count(r"\&") == 2 * 4  # five columns in two rows


def test_csv_holds_unrounded_numbers_under_names_that_survive():
    rows = list(csv.DictReader(io.StringIO(to_csv(TABLE))))
    assert rows[0]["learner"] == NASTY
    assert float(rows[0]["accuracy"]) == 90.125
    assert (float(rows[0]["accuracy_paper"]), rows[1]["accuracy_paper"]) == (91.0, "")


def test_the_terminal_shows_markup_as_text():
    assert "[bold]x[/bold]" in render_terminal(replace(TABLE, title="[bold]x[/bold]"))
    command = "\x1b]0;owned\x07"
    rows = tuple(replace(row, label=command, column=command) for row in TABLE.rows)
    assert "\x1b" not in render_terminal(replace(TABLE, title=command, rows=rows))


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "=HYPERLINK(1)"])
def test_cells_that_a_spreadsheet_would_carry_out_are_quoted(name):
    table = replace(TABLE, rows=tuple(replace(row, label=name, column=name) for row in TABLE.rows))
    for row in csv.DictReader(io.StringIO(to_csv(table), newline="")):
        assert (row["learner"], row["scenario"]) == (f"'{name.strip()}",) * 2
