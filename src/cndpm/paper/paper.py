"""The paper's experiments by name: which cells they have, what they compare, how many seeds they take."""

from __future__ import annotations

from collections.abc import Mapping

from cndpm.names import UnknownNameError
from cndpm.paper.cells import (
    CIFAR10,
    LONGER_CIFAR10,
    LONGER_CIFAR100,
    LONGER_MNIST,
    PRUNING,
    SHARING,
    TABLE1,
    TASK_BASED,
    concentration_cell,
    dissected_cell,
    learner_cell,
    learner_column,
    memory_cells,
)
from cndpm.paper.experiment import Experiment, Published

__all__ = ["EXPERIMENTS", "find_experiment"]

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "table1", "Table 1: all learners on four scenarios", TABLE1, ("accuracy", "bits_per_dim", "n_parameters")
        ),
        Experiment("cifar10", "Table 2: Split-CIFAR10 at 0.2, 1 and 10 epochs", CIFAR10),
        Experiment(
            "dissect",
            "Table 3: classifier and gating accuracy of CN-DPM",
            (
                dissected_cell("split-cifar10", "Split-CIFAR10", 88.20, 88.20, 48.18),
                dissected_cell("split-cifar100", "Split-CIFAR100", 55.42, 55.24, 31.14),
            ),
            ("classifier_accuracy_init", "classifier_accuracy_final", "gating_accuracy"),
        ),
        Experiment("task-based", "Comparison with learners that are told the tasks", TASK_BASED, ("accuracy",)),
        Experiment(
            "fuzzy",
            "Fuzzy Split-MNIST: no boundaries between tasks",
            learner_column(
                "fuzzy-split-mnist",
                "Fuzzy Split-MNIST",
                {"finetune": (28.41, 0.52), "reservoir": (88.64, 0.48), "cndpm": (93.22, 0.07)},
            ),
        ),
        Experiment(
            "samples",
            "50 samples drawn from CN-DPM trained on Split-MNIST",
            (learner_cell("cndpm", "split-mnist", "Split-MNIST", 93.23, 0.09),),
            n_seeds=1,
            analysis="samples",
        ),
        Experiment("longer-mnist", "Split-MNIST, longer streams", LONGER_MNIST),
        Experiment("longer-cifar10", "Split-CIFAR10, longer streams", LONGER_CIFAR10),
        Experiment("longer-cifar100", "Split-CIFAR100, longer streams", LONGER_CIFAR100),
        Experiment("memory", "Memory of 500 and of 1000 samples", memory_cells(), ("accuracy",)),
        Experiment(
            "concentration",
            "The effect of the concentration α on Split-MNIST",
            (
                concentration_cell(-600, Published(54.04, 2.22), Published(3.20, 0.13), 362e3),
                concentration_cell(-400, Published(93.23, 0.09), Published(5.00, 0.00), 524e3),
                concentration_cell(80, Published(93.54, 0.21), Published(14.4, 1.35), 1.44e6),
            ),
            ("accuracy", "n_experts", "n_parameters"),
        ),
        Experiment(
            "sharing",
            "The effect of lateral sharing on Split-MNIST",
            SHARING,
            ("accuracy", "n_experts", "n_parameters"),
        ),
        Experiment(
            "pruning",
            "Pruning redundant experts on Split-MNIST (threshold 0.9)",
            (PRUNING,),
            ("accuracy", "n_experts"),
            n_seeds=1,
            analysis="pruning",
        ),
        Experiment(
            "graphs",
            "Training graphs of all learners on five scenarios",
            tuple(cell for cell in (*TABLE1, *CIFAR10) if cell.learner != "iid-offline" and not cell.options),
            ("accuracy", "bits_per_dim", "n_parameters"),
            analysis="curves",
        ),
    )
}
"""All experiments of the paper, by name."""


def find_experiment(name: str) -> Experiment:
    """Returns the experiment called `name`."""
    if name not in EXPERIMENTS:
        raise UnknownNameError("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
