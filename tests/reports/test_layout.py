from cndpm.paper.experiment import Published
from cndpm.reports.layout import lay_out
from cndpm.reports.tables import Row, Table, TableEntry


def row(label, column, value=None, paper=None, *, n_seeds=1, best=False):
    published = None if paper is None else Published(paper)
    return Row(
        label, column, n_seeds, {"accuracy": TableEntry(value, None, published, best), "bits_per_dim": TableEntry()}
    )


def table(*rows):
    return Table("T", ("accuracy", "bits_per_dim"), rows)


def test_learners_in_several_columns_of_the_paper_have_them_side_by_side():
    layout = lay_out(
        table(
            row("A", "1 Epoch", 90.0, 91.0, n_seeds=3),
            row("B", "1 Epoch", paper=20.0, n_seeds=0),
            row("A", "10 Epochs", 95.0, best=True),
        )
    )
    assert layout.header == ["learner", "seeds", "1 Epoch: accuracy (%)", "paper", "10 Epochs: accuracy (%)"]
    assert layout.rows == [["A", "1–3", "90.00", "91.00", "95.00"], ["B", "0", "–", "20.00", "–"]]
    assert layout.best[0] == [False, False, False, False, True]


def test_configurations_that_stand_once_have_a_row_each_and_the_difference():
    layout = lay_out(table(row("A", "one", 90.0, 91.0), row("B", "two", 80.0)))
    assert layout.header[:6] == ["learner", "scenario", "seeds", "accuracy (%)", "paper", "difference"]
    assert [texts[:6] for texts in layout.rows] == [
        ["A", "one", "1", "90.00", "91.00", "−1.00"],
        ["B", "two", "1", "80.00", "–", "–"],
    ]
