"""The paper's tables on their page, the cells that they lack, and the runs that would fill them."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from benchmarks.paper import planned
from figures.missing import MissingRuns, MissingTable, missing_runs
from figures.paper import cell_of, load_paper_tables, recorded_runs, table_experiments

from cndpm.experiments import configure
from cndpm.paper.experiment import Cell
from cndpm.paper.reproduction import cell_folder
from cndpm.reports.tables import TableEntry

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "docs" / "results" / "records"


@pytest.mark.parametrize("table", [*load_paper_tables(ROOT), MissingTable(ROOT)], ids=lambda table: table.name)
def test_a_table_of_the_paper_is_what_the_records_say(table):
    assert table.written() == table.path.read_text(encoding="utf-8"), "python -m figures writes it anew"


def test_every_cell_that_a_record_names_is_one_of_the_paper():
    known = {str(cell_folder(cell, "paper")) for experiment in table_experiments() for cell in experiment.cells}
    assert recorded_runs(RECORDS).keys() <= known


def test_every_difference_beyond_noise_is_discussed_and_nothing_else():
    recorded, marked = recorded_runs(RECORDS), set()
    for cell in (cell for experiment in table_experiments() for cell in experiment.cells):
        name = str(cell_folder(cell, "paper"))
        for metric, published in cell.published.items():
            if metric != "n_parameters" and TableEntry.of(recorded.get(name, []), metric, published).beyond_noise:
                marked.add(name)
    table = tomllib.loads((ROOT / "figures" / "differences.toml").read_text(encoding="utf-8"))["table"]
    assert set(re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)) == marked


def test_a_configuration_is_known_by_its_cell_and_a_changed_one_by_none():
    config = configure("split-cifar10", learner="finetune", preset="paper", device="cpu", fraction=0.2, seed=7)
    assert cell_of(config.to_json()) == "split-cifar10/finetune-paper-fraction=0.2"
    other = configure(
        "split-cifar10", learner="finetune", preset="paper", device="cpu", overrides=["learner.learning_rate=0.1"]
    )
    assert cell_of(other.to_json()) is None


@pytest.fixture
def project(tmp_path):
    """A project whose records hold three seeds of one cell and one seed of another."""
    folder = tmp_path / "docs" / "results" / "records"
    folder.mkdir(parents=True)
    facts = {"machine": "NVIDIA H200", "seconds": 10.0}
    lines = [facts | {"cell": "split-cifar10/finetune-paper", "seed": seed} for seed in range(3)]
    lines.append(facts | {"cell": "split-cifar10/reservoir-paper", "seed": 1})
    (folder / "some.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def test_what_is_missing_costs_what_its_relatives_did(project):
    missing = {one.name: one for one in missing_runs(project)}
    assert "split-cifar10/finetune-paper" not in missing
    assert missing["split-cifar10/reservoir-paper"].seeds == (0, 2)
    assert missing["split-cifar10/finetune-paper-epochs=10"].seconds == 100.0
    assert missing["split-cifar10/finetune-paper-fraction=0.2"].total == pytest.approx(6.0)
    assert missing["iid-split-cifar10/iid-online-paper"].seconds == 10.0, "the steps are those of fine-tuning"
    assert missing["split-cifar100/finetune-paper"].seconds is None
    assert missing["split-cifar10/finetune-paper-epochs=10"].n_numbers == 2, "two tables print it"
    costs = [one.total for one in missing_runs(project) if one.total is not None]
    assert costs == sorted(costs)


def test_a_plan_says_in_which_part_a_run_ends():
    cell = Cell("A", "one", "split-mnist", "finetune")
    missing = [MissingRuns(cell, "a", (0, 1, 2), 1, 40.0), MissingRuns(cell, "b", (0,), 1, None)]
    assert [part for part, _ in planned(missing, 60.0)] == [1, 2, 2, None]
