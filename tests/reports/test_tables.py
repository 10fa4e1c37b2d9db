import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cndpm.paper import find_experiment
from cndpm.paper.experiment import Published
from cndpm.paper.reproduction import cell_config
from cndpm.reports.collection import collect
from cndpm.reports.content import find_prunings, pruning_table
from cndpm.reports.formats import to_csv, to_latex, to_markdown, to_terminal
from cndpm.reports.groups import Group, compare, published_values
from cndpm.reports.run import Run
from cndpm.reports.tables import (
    Row,
    Table,
    TableEntry,
    _best,
    _marked,
    _same_size,
    _stretches,
    comparison_table,
    experiment_table,
)


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
    assert gap.command.startswith("cndpm run") and "--seed 1 --seeds 1 --out" in gap.command


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


def row(label, column="one", *, reference=False, **values):
    return Row(label, column, 2, {m: TableEntry(float(v), 0.001) for m, v in values.items()}, reference)


def best_of(metric, *rows):
    return [row.label for row in _marked(rows, [metric]) if row.entries[metric].best]


@pytest.mark.parametrize(
    ("metric", "best"),
    [
        ("accuracy", "high"), ("prequential_accuracy", "high"), ("gating_accuracy", "high"),
        ("bits_per_dim", "low"), ("prequential_error", "low"), ("prequential_bits_per_dim", "low"),
    ],
)  # fmt: skip
def test_more_is_better_for_accuracies_and_less_for_errors_and_bits(metric, best):
    assert best_of(metric, row("high", **{metric: 2}), row("low", **{metric: 1})) == [best]


def test_every_column_has_a_best_of_its_own_and_references_are_none():
    columns = row("a", accuracy=90), row("b", accuracy=80), row("c", "two", accuracy=50), row("d", "two", accuracy=40)
    assert best_of("accuracy", *columns, row("upper", "two", reference=True, accuracy=99)) == ["a", "c"]


def test_numbers_kept_are_told_where_they_are_more_than_the_parameters():
    assert _same_size(row("a", n_numbers_kept=100.2, n_parameters=100))
    assert not _same_size(row("a", n_numbers_kept=110, n_parameters=100))


def test_seeds_that_lack_are_told_in_stretches():
    assert _stretches([0, 1, 2, 5, 7, 8]) == [(0, 2), (5, 5), (7, 8)]


def test_a_run_that_was_stopped_is_missing_with_how_far_it_came(records):
    whole, other = collect([records / "finetune"]).runs
    rows = [row for row in whole.record.rows if row["step"] <= 20]
    stopped = Run(replace(whole.record, rows=rows, summary=None, status="interrupted"))
    (gap,) = comparison_table(compare([stopped, other])[0]).missing
    assert gap.reason == f"seed {whole.seed} was stopped after batch {stopped.n_steps} of {whole.n_batches}"
    assert gap.command.endswith("--resume")


def test_runs_of_other_settings_are_in_no_cell_of_an_experiment(records):
    runs = collect([records / "cndpm"]).runs
    table = experiment_table(find_experiment("concentration"), [Group("cndpm", tuple(runs))], n_seeds=1)
    assert all(row.entries["accuracy"].value is None for row in table.rows) and len(table.missing) == 3


def test_pruning_tells_before_from_after_beside_the_paper(tmp_path):
    moments = {"before": {"n_experts": 7, "accuracy": 87.0}, "after": {"n_experts": 5, "accuracy": 86.0}}
    runs = [moments, {**moments, "after": {"n_experts": 4, "accuracy": 84.0}}]
    (tmp_path / "mine").mkdir()
    file = tmp_path / "mine" / "pruning.json"
    file.write_text(json.dumps({"threshold": 0.9, "runs": runs, "paper": moments}))
    assert find_prunings([tmp_path]) == [file]
    before, after = pruning_table(file).rows
    assert (before.entries["accuracy"].value, before.entries["accuracy"].error) == (87.0, 0.0)
    assert (after.entries["accuracy"].value, after.entries["accuracy"].error) == (85.0, 1.0)
    assert (after.entries["n_experts"].value, after.entries["n_experts"].published.value) == (4.5, 5.0)
