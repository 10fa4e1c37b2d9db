"""The paper's experiments as data: complete, valid, and with the published values."""

import pytest

from cndpm.names import UnknownNameError
from cndpm.paper.experiment import EXPERIMENTS, find_experiment
from cndpm.paper.reproduction import cell_config, cell_folder, select_cells
from cndpm.streams import scenario_names

NAMES = (
    "table1 cifar10 dissect task-based fuzzy samples longer-mnist longer-cifar10 longer-cifar100 memory "
    "concentration sharing pruning graphs"
)


def test_all_experiments_of_the_paper_are_there():
    assert list(EXPERIMENTS) == NAMES.split()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_cell_is_a_valid_configuration(name):
    for cell in EXPERIMENTS[name].cells:
        assert cell.scenario in scenario_names()
        config = cell_config(cell, "paper", "cpu")
        assert config.learner == cell.learner
        assert set(cell.published) <= set(EXPERIMENTS[name].metrics) | {"n_parameters"}


def test_cells_with_the_same_folder_are_the_same_run():
    configs = {}
    for experiment in EXPERIMENTS.values():
        for cell in experiment.cells:
            config = cell_config(cell, "paper", "cpu")
            assert configs.setdefault(cell_folder(cell, "paper"), config) == config
    assert len({str(config.to_json()) for config in configs.values()}) == len(configs)


@pytest.mark.parametrize(
    ("experiment", "label", "column", "metric", "value"),
    [
        ("table1", "CN-DPM", "Split-MNIST", "accuracy", 93.23),
        ("table1", "iid-offline", "Split-MNIST (Gen.)", "bits_per_dim", 0.1806),
        ("table1", "Reservoir", "MNIST-SVHN", "accuracy", 94.12),
        ("cifar10", "Fine-tune", "0.2 Epoch", "accuracy", 12.68),
        ("dissect", "CN-DPM", "Split-CIFAR100", "gating_accuracy", 31.14),
        ("longer-mnist", "CN-DPM", "1 Epoch x10", "n_parameters", 616e3),
        ("longer-cifar10", "Reservoir", "1 Epoch x10", "accuracy", 51.44),
        ("memory", "CN-DPM, memory 500", "Split-CIFAR10, 10 Epochs", "accuracy", 47.01),
        ("concentration", "log α = 80", "Split-MNIST", "n_experts", 14.4),
        ("sharing", "CN-DPM w/o PS", "Split-MNIST", "n_parameters", 839e3),
        ("fuzzy", "Reservoir", "Fuzzy Split-MNIST", "n_parameters", 478e3),
    ],
)
def test_published_values_are_those_of_the_paper(experiment, label, column, metric, value):
    found = [c for c in EXPERIMENTS[experiment].cells if (c.label, c.column) == (label, column)]
    assert len(found) == 1
    assert found[0].published[metric].value == value


def test_a_selection_keeps_the_named_learners_or_scenarios():
    cells = select_cells(EXPERIMENTS["table1"], ["cndpm"])
    assert {cell.learner for cell in cells} == {"cndpm"}
    assert len(cells) == 4
    assert {cell.learner for cell in select_cells(EXPERIMENTS["fuzzy"], ["fuzzy-split-mnist"])} > {"cndpm", "reservoir"}
    with pytest.raises(ValueError, match="finetune"):
        select_cells(EXPERIMENTS["table1"], ["nobody"])


def test_an_unknown_experiment_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="concentration"):
        find_experiment("concentraton")


def test_dissected_accuracies_and_errors_are_those_of_the_paper():
    (cell,) = (c for c in EXPERIMENTS["dissect"].cells if c.column == "Split-CIFAR10")
    names = ("classifier_accuracy_init", "classifier_accuracy_final", "gating_accuracy")
    assert [cell.published[name].value for name in names] == [88.20, 88.20, 48.18]
    errors = {c.label: c.published["accuracy"].error for c in EXPERIMENTS["fuzzy"].cells}
    assert errors == {"Fine-tune": 0.52, "Reservoir": 0.48, "CN-DPM": 0.07}
    assert all(c.published["n_parameters"].error is None for c in EXPERIMENTS["fuzzy"].cells)
    (plain,) = (c for c in EXPERIMENTS["table1"].cells if (c.label, c.column) == ("CN-DPM", "Split-MNIST"))
    assert plain.published["accuracy"].error is None


def test_data_in_random_order_are_those_of_a_stream_and_graphs_have_a_stream():
    for experiment in EXPERIMENTS.values():
        for cell in experiment.cells:
            assert (cell.learner == "iid-online") == cell.scenario.startswith("iid-")
    assert all(cell.learner != "iid-offline" for cell in EXPERIMENTS["graphs"].cells)


def test_what_is_said_on_the_command_line_comes_after_what_a_cell_says():
    cell = next(cell for cell in EXPERIMENTS["memory"].cells if cell.overrides)
    assert cell.overrides == (f"learner.memory_size={cell_config(cell, 'paper', 'cpu').settings.memory_size}",)
    assert cell_config(cell, "paper", "cpu", ["learner.memory_size=77"]).settings.memory_size == 77
