"""Experiments of one's own through the machinery that runs the paper's."""

import json

import pytest

from cndpm.experiments import Monitor
from cndpm.experiments.evaluation import Evaluation
from cndpm.experiments.printed_tables import format_value
from cndpm.paper import reproduce, reproduction
from cndpm.paper.experiment import Cell, Experiment, Published
from cndpm.streams import load_scenario

SMALL = (
    "learner.experts=neural",
    "learner.log_alpha=-100",
    "learner.memory_size=100",
    "learner.density_sleep_steps=60",
    "learner.predictor_sleep_steps=60",
    "learner.n_latent_samples=1",
    "learner.predictor_lr=0.01",
    "learner.density_lr=0.01",
)


def cell(learner, label, *overrides, **options):
    return Cell(label, "digits", "split-digits", learner, options, overrides, {"accuracy": Published(50.0, 1.0)})


class Counting:
    """Counts the runs that really ran."""

    def __init__(self):
        self.started = []

    def __call__(self, folder):
        counting = self

        class Counter(Monitor):
            def started(self, title, *, step, n_batches):
                counting.started.append(folder.name)

        return Counter()


def test_only_what_is_missing_is_run(tmp_path):
    experiment = Experiment("mine", "Mine", (cell("finetune", "A"), cell("reservoir", "B")), ("accuracy",), n_seeds=1)
    first, second, third = Counting(), Counting(), Counting()
    reproduce(experiment, tmp_path, preset="default", monitor_of=first)
    reproduce(experiment, tmp_path, preset="default", monitor_of=second)
    reproduce(experiment, tmp_path, preset="default", n_seeds=2, monitor_of=third)
    assert (first.started, second.started, third.started) == (["seed-0"] * 2, [], ["seed-1"] * 2)


def test_ours_stands_beside_the_papers(tmp_path):
    experiment = Experiment("mine", "Mine", (cell("finetune", "A"),), ("accuracy",), n_seeds=2)
    summary = reproduce(experiment, tmp_path, preset="default")
    ours = summary["cells"][0]
    assert (ours["label"], ours["published"]["accuracy"]) == ("A", {"value": 50.0, "error": 1.0})
    assert json.loads((tmp_path / "mine" / "summary.json").read_text())["cells"][0]["accuracy"] == ours["accuracy"]


def test_a_mistake_in_the_last_cell_is_found_before_the_first_run(tmp_path):
    experiment = Experiment("mine", "Mine", (cell("finetune", "A"), cell("nobody", "B")))
    with pytest.raises(ValueError, match="nobody"):
        reproduce(experiment, tmp_path, preset="default")
    assert not any(tmp_path.iterdir())


def test_cells_keep_their_order_and_seeds_begin_where_they_are_told_to(tmp_path):
    experiment = Experiment("mine", "Mine", (cell("finetune", "A"), cell("reservoir", "B")), ("accuracy",), n_seeds=1)
    summary = reproduce(experiment, tmp_path, preset="default", seed=3)
    assert [(one["label"], one["learner"]) for one in summary["cells"]] == [("A", "finetune"), ("B", "reservoir")]
    assert {folder.name for folder in tmp_path.glob("runs/*/*/*") if folder.is_dir()} == {"seed-3"}


def test_pruning_works_on_a_trained_mixture(tmp_path, monkeypatch):
    cells = (cell("cndpm", "CN-DPM", *SMALL, fraction=0.7),)
    pruned = Experiment("pruned", "Pruning", cells, ("accuracy", "n_experts"), 1, "pruning")
    summary = reproduce(pruned, tmp_path, preset="default", n_seeds=2)
    before, after = (summary["analysis"]["runs"][0][when] for when in ("before", "after"))
    assert before["accuracy"] == summary["cells"][0]["runs"][0]["accuracy"]
    assert after["n_experts"] <= before["n_experts"]
    assert summary["analysis"]["threshold"] == 0.9  # as in the paper
    assert [run["seed"] for run in summary["analysis"]["runs"]] == [0, 1]
    assert json.loads((tmp_path / "pruned" / "summary.json").read_text())["analysis"] == summary["analysis"]
    measured = iter([60.0, 50.0])
    monkeypatch.setattr(reproduction, "evaluate", lambda *_: Evaluation(accuracy=next(measured)))
    (again,) = reproduction.prune_experts([next(tmp_path.rglob("seed-0"))], tmp_path, None)["runs"]
    assert (again["before"]["accuracy"], again["after"]["accuracy"]) == (60.0, 50.0)


def test_experts_are_compared_on_samples_of_the_whole_stream():
    x, y = reproduction._spread_samples(load_scenario("split-digits").build(seed=0), 200)
    assert 150 < len(x) == len(y) < 250
    assert set(y.tolist()) == set(range(10))


@pytest.mark.parametrize(
    ("metric", "value", "error", "text"),
    [
        ("accuracy", 93.234, 0.089, "93.23 ± 0.09"),
        ("bits_per_dim", 0.21101, None, "0.2110"),
        ("n_parameters", 524000.0, 12.0, "524K"),
        ("n_experts", None, None, "–"),
        ("n_experts", 5.0, None, "5"),
        ("n_experts", 5.0, 0.0, "5"),
        ("n_experts", 4.67, 0.33, "4.67 ± 0.33"),
        ("n_experts", 15.5, None, "15.50"),
    ],
)
def test_values_are_printed_as_the_paper_prints_them(metric, value, error, text):
    assert format_value(metric, value, error) == text
