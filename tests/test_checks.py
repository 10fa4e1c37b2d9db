"""Every learner keeps the contract; ``tests/checks`` has those that do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from cndpm.baselines.reservoir import Reservoir
from cndpm.checks import CHECKS, LearnerCase, check_learner
from cndpm.checks.promises import check_answers
from cndpm.experiments.learners import LEARNERS
from cndpm.experiments.presets import preset_settings

CNDPM = {
    "experts": "neural",
    "anytime": False,
    "memory_size": 12,
    "log_alpha": -60.0,
    "hidden_growth": 4,
    "latent_dim": 2,
    "n_latent_samples": 2,
    "density_sleep_steps": 20,
    "predictor_sleep_steps": 20,
    "sleep_batch_size": 8,
}
SMALL = {
    "cndpm": CNDPM,
    "cndpm-tasks": {name: value for name, value in CNDPM.items() if name != "log_alpha"} | {"novelty": "tasks"},
    "gdumb": {"epochs": 2, "batch_size": 4},
    "gss": {"references": 3},
    "iid-offline": {"epochs": 2, "batch_size": 8},
    "pec": {"teacher_hidden": 8, "outputs": 6},
    "slda": {"n_features": 20, "chunk": 7},
}
WITH_MEMORY = {"reservoir", "gss", "gem", "a-gem", "mir", "der", "der++", "er-ace", "scr", "gdumb"}
BOUNDS = {"ewc": 200, "online-ewc": 200, "mas": 200, "finetune": 0, "si": 0, "lwf": 0, "dgr": 0, "slda": 0, "pec": 0}
UNLABELLED = ["finetune", "reservoir", "iid-online", "iid-offline"]
IDS = [check.__name__ for check in CHECKS]
# Answers are checked for class labels alone: values have no probabilities, and before anything was learned there
# is no density.
OF_ROWS = [("classes", check) for check in CHECKS] + [
    (target, check) for target in ("values", "none") for check in CHECKS if check is not check_answers
]


def make_case(name: str, *, n_classes: int | None = 4) -> LearnerCase:
    small: dict[str, object] = dict(SMALL.get(name, {}))
    if name in WITH_MEMORY:
        small["memory_size"] = 12
    if name != "slda":
        small["hidden"] = 8
    settings = LEARNERS[name].Settings(**small)
    return LearnerCase(LEARNERS[name], settings, n_classes=n_classes, memory_bound=BOUNDS.get(name))


@pytest.mark.parametrize("check", CHECKS, ids=IDS)
@pytest.mark.parametrize("name", LEARNERS)
def test_learner_keeps_the_contract(name: str, check: Callable[[LearnerCase], None]):
    check(make_case(name))


@pytest.mark.parametrize("check", CHECKS, ids=IDS)
def test_the_default_of_the_command_line_keeps_the_contract(check: Callable[[LearnerCase], None]):
    ours = preset_settings("default", "cndpm", "split-fashion") | {"memory_size": 12, "n_patches": 4}
    check(LearnerCase(LEARNERS["cndpm"], LEARNERS["cndpm"].Settings(**ours)))


@pytest.mark.parametrize(("target", "check"), OF_ROWS, ids=[f"{target}-{check.__name__}" for target, check in OF_ROWS])
def test_the_default_for_rows_keeps_the_contract(target: str, check: Callable[[LearnerCase], None]):
    settings = LEARNERS["cndpm"].Settings(memory_size=12, n_fourier=8, target=target)
    n_classes = None if target == "none" else 4
    bound = 12 if target == "none" else 12 + settings.representations.kept_rows  # type: ignore[attr-defined]
    check(LearnerCase(LEARNERS["cndpm"], settings, input_shape=(4,), n_classes=n_classes, memory_bound=bound))


@pytest.mark.parametrize("check", CHECKS, ids=IDS)
@pytest.mark.parametrize("name", UNLABELLED)
def test_learner_keeps_the_contract_without_labels(name: str, check: Callable[[LearnerCase], None]):
    check(make_case(name, n_classes=None))


def test_a_convolutional_learner_is_restored_with_its_batch_statistics():
    settings = Reservoir.Settings(network="resnet18", memory_size=6)
    learner, other = (Reservoir(settings, input_shape=(3, 8, 8), n_classes=2, seed=seed) for seed in (0, 1))
    x = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    learner.learn(x, torch.tensor([0, 1, 0, 1]))
    other.load_state_dict(learner.state_dict())
    assert torch.equal(learner.predict_log_proba(x), other.predict_log_proba(x))


def test_check_learner_runs_with_default_settings_and_vectors():
    check_learner(LEARNERS["slda"], LEARNERS["slda"].Settings(n_features=10), input_shape=(3,), n_classes=2)
