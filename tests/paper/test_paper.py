"""The paper's experiments as data: complete, valid, and with the published values."""

import pytest

from cndpm.names import UnknownNameError
from cndpm.paper.paper import EXPERIMENTS, find_experiment
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
    with pytest.raises(ValueError, match="finetune"):
        select_cells(EXPERIMENTS["table1"], ["nobody"])


def test_an_unknown_experiment_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="concentration"):
        find_experiment("concentraton")
