import io

from rich.console import Console

from cndpm.cli.show import show_results
from cndpm.experiments.printed_tables import FoldingTable

HEADER = ["learner", "preset", "seeds", "accuracy %", "experts", "parameters", "numbers kept", "memory", "seconds"]
ROWS = [
    ["cndpm", "default", "1", "97.75", "5", "32,768", "123,456", "100", "3.2"],
    ["reservoir", "default", "3", "87.75 ± 0.12", "1", "1,132,768", "1,123,456", "500", "123.2"],
]


def printed(table, width):
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    return console.file.getvalue().splitlines()


def test_no_heading_and_no_value_is_cut_off_however_narrow_the_terminal_is():
    for width in (200, 93, 80, 76, 60, 40):
        lines = printed(FoldingTable("title", HEADER, ROWS, right=width % 2 == 0), width)
        assert max(map(len, lines)) <= width
        text = "\n".join(lines)
        for value in ["title", *(word for name in HEADER for word in name.split()), *(v for row in ROWS for v in row)]:
            assert value in text, (width, value)


def test_every_part_begins_with_the_name_of_its_rows():
    lines = printed(FoldingTable("", HEADER, ROWS), 60)
    parts = FoldingTable("", HEADER, ROWS).parts(60)
    assert len(parts) == 2 and [part[0] for part in parts] == [0, 0]
    assert sorted({column for part in parts for column in part}) == list(range(len(HEADER)))
    assert sum(line.split()[:1] == ["reservoir"] for line in lines) == 2


def test_a_table_that_fits_stays_in_one_part():
    assert FoldingTable("", HEADER, ROWS).parts(200) == [list(range(len(HEADER)))]


def test_sentences_are_wrapped_beside_their_names_and_long_words_broken():
    sentence = "Photographs of a hundred kinds of things in twenty superclasses"
    lines = printed(FoldingTable("", ["name", ""], [["cifar100", sentence]]), 40)
    assert " ".join(" ".join(line for line in lines if "─" not in line).split()) == f"name cifar100 {sentence}"
    path = "/a/very/long/path/" + "x" * 60
    lines = printed(FoldingTable("", ["dataset", "where"], [["mnist", path]]), 40)
    assert max(map(len, lines)) <= 40
    assert "".join(line.split()[-1] for line in lines if "x" in line or "/" in line) == path


def test_results_show_their_accuracy_at_60_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    values = {"accuracy": 87.75, "n_experts": 5, "n_parameters": 1132768, "n_numbers_kept": 1123456, "seconds": 12.5}
    result = {"learner": "reservoir", "preset": "default", "runs": [{}], "standard_error": {}, **values}
    show_results([result], "split-digits", {}, as_json=False)
    out = capsys.readouterr().out
    assert "accuracy" in out and "87.75" in out and "1.12M" in out and "…" not in out
