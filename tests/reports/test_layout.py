from cndpm.paper.experiment import Published
from cndpm.reports.formats import markdown_table
from cndpm.reports.payload import table_values as laid_out
from cndpm.reports.tables import Row, Table, TableEntry


def row(label, column, value=None, paper=None, *, n_seeds=1, best=False):
    published = None if paper is None else Published(paper)
    return Row(
        label, column, n_seeds, {"accuracy": TableEntry(value, None, published, best), "bits_per_dim": TableEntry()}
    )


def table(*rows):
    return Table("T", ("accuracy", "bits_per_dim"), rows)


def test_learners_in_several_columns_of_the_paper_have_them_side_by_side():
    layout = laid_out(
        table(
            row("A", "1 Epoch", 90.0, 91.0, n_seeds=3),
            row("B", "1 Epoch", paper=20.0, n_seeds=0),
            row("A", "10 Epochs", 95.0, best=True),
        )
    )
    assert layout["header"] == ["learner", "runs", "1 Epoch: accuracy (%)", "paper", "10 Epochs: accuracy (%)"]
    assert layout["rows"] == [["A", "1–3", "90.00", "91.00", "95.00"], ["B", "0", "–", "20.00", "–"]]
    assert layout["best"][0] == [False, False, False, False, True]


def test_configurations_that_stand_once_have_a_row_each_and_the_difference():
    layout = laid_out(table(row("A", "one", 90.0, 91.0), row("B", "two", 80.0)))
    assert layout["header"][:6] == ["learner", "scenario", "runs", "accuracy (%)", "paper", "difference"]
    assert [texts[:6] for texts in layout["rows"]] == [
        ["A", "one", "1", "90.00", "91.00", "−1.00"],
        ["B", "two", "1", "80.00", "–", "–"],
    ]


def test_a_value_beyond_noise_has_an_arrow_towards_where_it_lies():
    published = Published(50.0, 1.0)
    values = {"above": (60.0, 1.0), "below": (40.0, 1.0), "alike": (50.5, 1.0)}
    rows = [
        Row(name, "one", 3, {"accuracy": TableEntry(*value, published, n_runs=3)}) for name, value in values.items()
    ]
    layout = laid_out(Table("T", ("accuracy",), tuple(rows)))
    assert [texts[2] for texts in layout["rows"]] == ["60.00 ± 1.00 ↑", "40.00 ± 1.00 ↓", "50.50 ± 1.00"]
    assert [marks[2] for marks in layout["differs"]] == [True, True, False]
    assert not any(mark for marks in layout["differs"] for mark in (*marks[:2], *marks[3:]))


def test_one_learner_in_several_columns_has_a_row_for_every_metric():
    metrics = ("classifier_accuracy_init", "gating_accuracy")
    rows = [
        Row("CN-DPM", column, n, {m: TableEntry(value + i) for i, m in enumerate(metrics)})
        for column, n, value in (("one", 1, 10.0), ("two", 3, 20.0))
    ]
    layout = laid_out(Table("T", metrics, tuple(rows)))
    assert layout["header"] == ["CN-DPM", "one, 1 run", "paper", "two, 3 runs", "paper"]
    assert layout["rows"] == [
        ["classifier, init (%)", "10.00", "–", "20.00", "–"],
        ["gating (%)", "11.00", "–", "21.00", "–"],
    ]


def test_values_are_links_to_the_records_that_hold_their_runs():
    runs = [{"accuracy": 1.0, "source": "a"}, {"accuracy": 2.0, "source": "b"}, {"accuracy": 3.0, "source": "b"}]
    entry = TableEntry.of([*runs, {"source": "c"}], "accuracy", None)
    assert (entry.value, entry.n_runs, entry.sources) == (2.0, 3, ("b", "a"))
    written = markdown_table(Table("T", ("accuracy",), (Row("A", "one", 3, {"accuracy": entry}),)))
    assert "| [2.00 ± 0.58](b) [2](a) |" in written
