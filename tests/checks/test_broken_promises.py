"""Every promise is looked at: a learner that keeps all of them passes, and each that breaks one is told which."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from cndpm.checks import CHECKS, ContractError, LearnerCase, blocks, check_learner, promises
from cndpm.checks.blocks import check_block_agrees, check_block_resumes, check_prepare
from cndpm.checks.case import same
from cndpm.checks.promises import (
    check_answers,
    check_footprint,
    check_global_random_state,
    check_inputs_unchanged,
    check_memory_bound,
    check_no_task_identity,
    check_predict_has_no_effect,
    check_save_and_load,
    check_seed_repeats,
    check_settings_refused,
)
from cndpm.learner import Footprint, Learner, LearnerSettings, TaskBasedLearner

OPTIONS: dict[str, Any] = {"input_shape": (3,), "n_classes": 4, "memory_bound": 12}


class Means(Learner):
    """Answers by the nearest mean of a class; without labels by a bell about the mean of all. Keeps every promise."""

    class Settings(LearnerSettings):
        pass

    def __init__(self, settings: Any, **facts: Any) -> None:
        super().__init__(settings, **facts)
        n = self.n_classes or 1
        self.sums, self.counts, self.n_seen = torch.zeros(n, *self.input_shape), torch.zeros(n), 0

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        of = torch.zeros(len(x), dtype=torch.long) if y is None else y
        for row, label in zip(x, of, strict=True):
            self.sums[label] += row
            self.counts[label] += 1
        self.n_seen += len(x)

    def _energies(self, x: Tensor) -> Tensor:
        means = self.sums / self.counts.clamp_min(1)[:, None]
        return -(x[:, None] - means).square().sum(2)

    def predict_log_proba(self, x: Tensor) -> Tensor:
        return self._energies(x).log_softmax(1)

    def log_prob(self, x: Tensor) -> Tensor:
        return self._energies(x)[:, 0]

    def footprint(self) -> Footprint:
        return Footprint(n_parameters=0, n_numbers_kept=self.sums.numel(), memory_samples=0, memory_bytes=0)

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums.clone(), "counts": self.counts.clone(), "n_seen": self.n_seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sums, self.counts, self.n_seen = state["sums"].clone(), state["counts"].clone(), state["n_seen"]


class ChangesItsInput(Means):
    def learn(self, x, y):
        super().learn(x, y)
        x.mul_(0.5)


class ChangesItsLabels(Means):
    def learn(self, x, y):
        super().learn(x, y)
        y.zero_()


class ChangesWhatItIsAsked(Means):
    def predict_log_proba(self, x):
        return super().predict_log_proba(x.mul_(0.5))


class CountsQuestions(Means):
    def predict_log_proba(self, x):
        self.n_seen += 1
        return super().predict_log_proba(x)


class LearnsOtherwiseOnceAsked(Means):
    factor = 1.0

    def predict_log_proba(self, x):
        self.factor = 0.5
        return super().predict_log_proba(x)

    def learn(self, x, y):
        super().learn(self.factor * x, y)


class TiresOfQuestions(Means):
    n_asked = 0

    def predict_log_proba(self, x):
        self.n_asked += 1
        return (self._energies(x) / self.n_asked).log_softmax(1)


class LearnsOtherwiseEachTime(Means):
    made: ClassVar[list[int]] = []

    def __init__(self, settings, **facts):
        super().__init__(settings, **facts)
        self.made.append(1)
        self.number = len(self.made)

    def learn(self, x, y):
        super().learn(x + self.number, y)


class AnswersOtherwiseEachTime(LearnsOtherwiseEachTime):
    learn = Means.learn

    def predict_log_proba(self, x):
        return (self._energies(x) / self.number).log_softmax(1)


class GivesItsStateAway(Means):
    def state_dict(self):
        return {"sums": self.sums, "counts": self.counts, "n_seen": self.n_seen}


class WritesIntoALoadedState(Means):
    def load_state_dict(self, state):
        self.sums, self.counts, self.n_seen = state["sums"], state["counts"], state["n_seen"]


class ForgetsACount(Means):
    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.n_seen = 0


class AnswersOtherwiseOnceLoaded(Means):
    is_loaded = False

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.is_loaded = True

    def predict_log_proba(self, x):
        return (self._energies(x) * (2 if self.is_loaded else 1)).log_softmax(1)


class HoardsSamples(Means):
    def footprint(self):
        return Footprint(0, 12, memory_samples=13, memory_bytes=1)


class HoardsMoreThanItsSettings(Means):
    class Settings(LearnerSettings):
        memory_size: int = 12

    def footprint(self):
        return Footprint(0, 12, memory_samples=13, memory_bytes=1)


class HoldsSamplesInNoBytes(Means):
    def footprint(self):
        return Footprint(0, 12, memory_samples=1, memory_bytes=0)


class TakesATask(Means):
    def learn(self, x, y, task=None):
        super().learn(x, y)


class HearsOfTasks(Means):
    def begin_task(self, task):
        self.task = task


class AnswersAnotherShape(Means):
    def predict_log_proba(self, x):
        return super().predict_log_proba(x)[:, :-1].log_softmax(1)


class ForgetsToNormalise(Means):
    def predict_log_proba(self, x):
        return super().predict_log_proba(x) + 0.01


class HasNoDensity(Means):
    def log_prob(self, x):
        return super().log_prob(x) - torch.inf


class AnswersByTheBatch(Means):
    def predict_log_proba(self, x):
        return super().predict_log_proba(x - x.mean(0))


class CountsBelowZero(Means):
    def footprint(self):
        return Footprint(-1, 12, memory_samples=0, memory_bytes=0)


class CountsInFractions(Means):
    def footprint(self):
        return Footprint(0, 12.0, memory_samples=0, memory_bytes=0)  # type: ignore[arg-type]


class KeepsLessThanItTrains(Means):
    def footprint(self):
        return Footprint(13, 12, memory_samples=0, memory_bytes=0)


class DrawsFromTorch(Means):
    def learn(self, x, y):
        super().learn(x + torch.rand(()), y)


class DrawsFromPython(Means):
    def learn(self, x, y):
        random.random()
        super().learn(x, y)


class DependsOnTorch(Means):
    def learn(self, x, y):
        super().learn(x + torch.initial_seed() % 100_003, y)


class TakesAnySettings(Means):
    def __init__(self, settings, **facts):
        super().__init__(Means.Settings(), **facts)


class TakesUnknownSettings(Means):
    class Settings(LearnerSettings, extra="ignore"):
        pass


class LearnsBlocksOtherwise(Means):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        super().learn_block(1.01 * x, y, batch_size, start=start, after_batch=after_batch)


class LeavesOutTheShortBatch(Means):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        whole = len(x) // batch_size * batch_size
        super().learn_block(x[:whole], y[:whole], batch_size, start=start, after_batch=after_batch)
        if whole < len(x):
            after_batch(len(x))


class KeepsSilent(Means):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        super().learn_block(x, y, batch_size, start=start)


class FoundsInBlocks(Means):
    n_experts = 1

    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        self.n_experts = 2
        super().learn_block(x, y, batch_size, start=start, after_batch=after_batch)

    def footprint(self):
        return Footprint(0, 12, memory_samples=0, memory_bytes=0, n_experts=self.n_experts)


class BeginsAgain(Means):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        super().learn_block(x, y, batch_size, after_batch=after_batch)


class BeginsAgainWithinABlock(Means):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        super().learn_block(x, y, batch_size, start=start if start == len(x) else 0, after_batch=after_batch)


class CannotBeStopped(Means):
    def learn_block(self, x, y, batch_size, *, start=0, after_batch=None):
        with suppress(Exception):
            super().learn_block(x, y, batch_size, start=start, after_batch=after_batch)


class PreparesOtherInputs(Means):
    def prepare(self, x):
        return x + 1e-3


class LearnsFromPreparing(Means):
    def prepare(self, x):
        self.n_seen += 1
        return x


BROKEN: list[tuple[type[Learner], Callable[[LearnerCase], None], str, dict[str, Any]]] = [
    (ChangesItsInput, check_inputs_unchanged, "learn changed its input x", {}),
    (ChangesItsLabels, check_inputs_unchanged, "learn changed its labels y", {}),
    (ChangesWhatItIsAsked, check_inputs_unchanged, "answering changed its input x", {}),
    (CountsQuestions, check_predict_has_no_effect, "answering changed the learner's state", {}),
    (LearnsOtherwiseOnceAsked, check_predict_has_no_effect, "answering changed what was learned afterwards", {}),
    (TiresOfQuestions, check_predict_has_no_effect, "answering changed later answers", {}),
    (LearnsOtherwiseEachTime, check_seed_repeats, "the same seed gave another state", {}),
    (AnswersOtherwiseEachTime, check_seed_repeats, "the same seed gave other answers", {}),
    (GivesItsStateAway, check_save_and_load, "the state after step 0 changed", {}),
    (WritesIntoALoadedState, check_save_and_load, "the state loaded after step 0 changed", {}),
    (ForgetsACount, check_save_and_load, "resumed after step 3, it learned", {}),
    (AnswersOtherwiseOnceLoaded, check_save_and_load, "resumed after step 0, it learned", {}),
    (HoardsSamples, check_memory_bound, "13 samples exceed 12", {}),
    (HoardsMoreThanItsSettings, check_memory_bound, "13 samples exceed 12", {"memory_bound": None}),
    (HoldsSamplesInNoBytes, check_memory_bound, "1 samples cannot take 0 bytes", {}),
    (TakesATask, check_no_task_identity, "learn must take", {}),
    (HearsOfTasks, check_no_task_identity, "begin_task but no task_listener", {}),
    (AnswersAnotherShape, check_answers, r"shape \(10, 3\), not \(10, 4\)", {}),
    (ForgetsToNormalise, check_answers, "probabilities sum to", {}),
    (HasNoDensity, check_answers, "a log density is not finite", {"n_classes": None}),
    (AnswersByTheBatch, check_answers, "depends on the rest of its batch", {}),
    (CountsBelowZero, check_footprint, "n_parameters is -1", {}),
    (CountsInFractions, check_footprint, "n_numbers_kept is 12.0", {}),
    (KeepsLessThanItTrains, check_footprint, "keeps less than it trains", {}),
    (DrawsFromTorch, check_global_random_state, "global random state was moved", {}),
    (DrawsFromPython, check_global_random_state, "global random state was moved", {}),
    (DependsOnTorch, check_global_random_state, "global random state had an influence", {}),
    (TakesAnySettings, check_settings_refused, "settings of another class were accepted", {}),
    (TakesUnknownSettings, check_settings_refused, "unknown name was accepted", {}),
    (LearnsBlocksOtherwise, check_block_agrees, "differ by", {}),
    (LeavesOutTheShortBatch, check_block_agrees, "differ by", {}),
    (KeepsSilent, check_block_agrees, r"must call after_batch with \[4, 8, 12, .*, 28, 30\]; it did with \[\]", {}),
    (FoundsInBlocks, check_block_agrees, "learn gave 1 experts, learn_block 2", {}),
    (BeginsAgain, check_block_resumes, "resumed within a block after 15 samples", {}),
    (BeginsAgainWithinABlock, check_block_resumes, "resumed within a block after 15 samples", {}),
    (AnswersOtherwiseOnceLoaded, check_block_resumes, "resumed within a block", {}),
    (CannotBeStopped, check_block_resumes, "did not end where after_batch raised", {}),
    (PreparesOtherInputs, check_prepare, "prepared before learning differ", {}),
    (LearnsFromPreparing, check_prepare, "preparing inputs changed what was learned", {}),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("n_classes", [4, None])
def test_a_learner_that_keeps_all_promises_passes(check, n_classes):
    check(LearnerCase(Means, Means.Settings(), **OPTIONS | {"n_classes": n_classes}))


@pytest.mark.parametrize(
    ("learner_class", "check", "message", "options"),
    BROKEN,
    ids=[f"{broken.__name__}-{check.__name__}" for broken, check, _, _ in BROKEN],
)
def test_checks_notice_a_broken_promise(learner_class, check, message, options):
    with pytest.raises(ContractError, match=message):
        check(LearnerCase(learner_class, learner_class.Settings(), **OPTIONS | options))


@pytest.mark.parametrize(("learner_class", "options"), {broken[0]: broken[3] for broken in BROKEN}.items())
def test_check_learner_refuses_all_of_them(learner_class, options):
    with pytest.raises(ContractError):
        check_learner(learner_class, **OPTIONS | options)


def test_check_learner_runs_every_check_there_is():
    written = {name for module in (promises, blocks) for name in vars(module) if name.startswith("check_")}
    assert {check.__name__ for check in CHECKS} == written


def test_states_are_saved_before_anything_within_each_task_and_after_the_last_step():
    class Watched(Means):
        saved: ClassVar[set[int]] = set()

        def state_dict(self):
            self.saved.add(self.n_seen)
            return super().state_dict()

    check_save_and_load(LearnerCase(Watched, Watched.Settings(), **OPTIONS))
    assert {0, 60} < Watched.saved
    assert any(0 < n < 30 for n in Watched.saved)
    assert any(30 < n < 60 for n in Watched.saved)


def test_each_task_has_its_half_of_the_classes():
    tasks = LearnerCase(Means, Means.Settings(), **OPTIONS).tasks()
    assert [{int(label) for _, y in batches for label in y} for batches in tasks] == [{0, 1}, {2, 3}]


def test_a_learner_that_asks_is_told_where_tasks_begin_and_end():
    class Told(TaskBasedLearner, Means):
        def begin_task(self, task):
            self.heard = [*getattr(self, "heard", []), ("begin", task, self.n_seen)]

        def end_task(self):
            self.heard.append(("end", self.n_seen))

    learner = LearnerCase(Told, Told.Settings(), **OPTIONS).trained()
    assert learner.heard == [("begin", 0, 0), ("end", 30), ("begin", 1, 30), ("end", 60)]


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        (torch.ones(2), torch.ones(2, dtype=torch.float64), False),
        (torch.zeros(2), torch.zeros(2, dtype=torch.int32), False),
        (torch.ones(2), torch.ones(2, 1), False),
        (torch.tensor([torch.nan]), torch.tensor([torch.nan]), True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ([1, [2, 3]], (1, (2, 3)), True),
        ([1, 2], [1, 2, 3], False),
        (float("nan"), float("nan"), True),
        (1.0, 2.0, False),
    ],
)
def test_states_are_the_same_to_the_bit_whatever_a_file_makes_of_lists(first, second, alike):
    assert same(first, second) is alike
