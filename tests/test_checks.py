"""Every learner keeps the contract, and the checks notice one that does not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
import torch
from torch import Tensor

from cndpm.baselines.finetune import FineTune
from cndpm.baselines.reservoir import Reservoir
from cndpm.checks import (
    CHECKS,
    ContractError,
    LearnerCase,
    check_answers,
    check_block_agrees,
    check_block_resumes,
    check_global_random_state,
    check_inputs_unchanged,
    check_learner,
    check_memory_bound,
    check_no_task_identity,
    check_predict_has_no_effect,
    check_prepare,
    check_save_and_load,
    check_seed_repeats,
)
from cndpm.experiments.learners import LEARNERS
from cndpm.experiments.presets import preset_settings
from cndpm.learner import Footprint

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
    bound = 12 if target == "none" else 12 + settings.representations.kept_rows
    check(LearnerCase(LEARNERS["cndpm"], settings, input_shape=(4,), n_classes=n_classes, memory_bound=bound))


@pytest.mark.parametrize("check", CHECKS, ids=IDS)
@pytest.mark.parametrize("name", UNLABELLED)
def test_learner_keeps_the_contract_without_labels(name: str, check: Callable[[LearnerCase], None]):
    check(make_case(name, n_classes=None))


def test_a_convolutional_learner_keeps_the_contract_through_its_batch_statistics():
    settings = Reservoir.Settings(network="resnet18", memory_size=6)
    case = LearnerCase(Reservoir, settings, input_shape=(3, 8, 8), n_batches=1)
    check_save_and_load(case)


class ChangesItsInput(FineTune):
    def learn(self, x: Tensor, y: Tensor | None) -> None:
        super().learn(x, y)
        x.mul_(0.5)


class LearnsFromQuestions(FineTune):
    def predict_log_proba(self, x: Tensor) -> Tensor:
        self.random.normal(1)
        return super().predict_log_proba(x)


class DrawsGlobally(FineTune):
    def learn(self, x: Tensor, y: Tensor | None) -> None:
        super().learn(x + 0.1 * torch.rand_like(x), y)


class ForgetsItsMoments(FineTune):
    def load_state_dict(self, state: dict[str, object]) -> None:
        super().load_state_dict(state)
        self.trainer.optimizer.state.clear()


class HoardsSamples(Reservoir):
    def footprint(self) -> Footprint:
        return Footprint(1, 1, memory_samples=self.memory.n_seen, memory_bytes=1)


class HearsOfTasks(FineTune):
    def begin_task(self, task: int) -> None:
        self.task = task


class ForgetsToNormalise(FineTune):
    def predict_log_proba(self, x: Tensor) -> Tensor:
        return super().predict_log_proba(x) + 1


class AnswersByTheBatch(FineTune):
    def predict_log_proba(self, x: Tensor) -> Tensor:
        return super().predict_log_proba(x - x.mean(0))


class LearnsBlocksAtOnce(FineTune):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        super().learn_block(x.flip(0), y.flip(0), batch_size, start=start, after_batch=after_batch)


class KeepsSilent(FineTune):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        super().learn_block(x, y, batch_size, start=start)


class BeginsAgain(FineTune):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        super().learn_block(x, y, batch_size, after_batch=after_batch)


class CannotBeStopped(FineTune):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        with suppress(Exception):
            super().learn_block(x, y, batch_size, start=start, after_batch=after_batch)


class PreparesOtherInputs(FineTune):
    def prepare(self, x: Tensor) -> Tensor:
        return x + 1e-3


class LearnsFromPreparing(FineTune):
    def prepare(self, x: Tensor) -> Tensor:
        self.random.normal(1)
        return x


@pytest.mark.parametrize(
    ("learner_class", "check", "message"),
    [
        (ChangesItsInput, check_inputs_unchanged, "learn changed its input x"),
        (LearnsFromQuestions, check_predict_has_no_effect, "answering changed the learner's state"),
        (DrawsGlobally, check_global_random_state, "global random state was moved"),
        (DrawsGlobally, check_seed_repeats, "the same seed gave another state"),
        (ForgetsItsMoments, check_save_and_load, "resumed after step"),
        (HoardsSamples, check_memory_bound, "exceed 12"),
        (HearsOfTasks, check_no_task_identity, "begin_task but no task_listener"),
        (ForgetsToNormalise, check_answers, "probabilities sum to"),
        (AnswersByTheBatch, check_answers, "depends on the rest of its batch"),
        (LearnsBlocksAtOnce, check_block_agrees, "differ by"),
        (KeepsSilent, check_block_agrees, r"must call after_batch with \[4, 8, 12, .*, 28, 30\]; it did with \[\]"),
        (BeginsAgain, check_block_resumes, "resumed within a block after 15 samples"),
        (CannotBeStopped, check_block_resumes, "did not end where after_batch raised"),
        (PreparesOtherInputs, check_prepare, "prepared before learning differ"),
        (LearnsFromPreparing, check_prepare, "preparing inputs changed what was learned"),
    ],
)
def test_checks_notice_a_broken_promise(
    learner_class: type[FineTune], check: Callable[[LearnerCase], None], message: str
):
    small = {"memory_size": 12} if issubclass(learner_class, Reservoir) else {}
    with pytest.raises(ContractError, match=message):
        check(LearnerCase(learner_class, learner_class.Settings(hidden=8, **small)))


def test_check_learner_runs_with_default_settings_and_vectors():
    check_learner(LEARNERS["slda"], LEARNERS["slda"].Settings(n_features=10), input_shape=(3,), n_classes=2)
