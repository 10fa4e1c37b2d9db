"""What every learner promises, as checks that any learner can be put through, one's own included.

    from cndpm.checks import check_learner

    check_learner(MyLearner, MyLearner.Settings(memory_size=20))

Each check runs the learner on a small stream of two tasks and raises :class:`ContractError` with what it found.
"""

from __future__ import annotations

import inspect
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from cndpm.learner import Learner, LearnerSettings, TaskBasedLearner
from cndpm.state import State, load_state, save_state

__all__ = [
    "CHECKS",
    "ContractError",
    "LearnerCase",
    "check_answers",
    "check_footprint",
    "check_global_random_state",
    "check_inputs_unchanged",
    "check_learner",
    "check_memory_bound",
    "check_no_task_identity",
    "check_predict_has_no_effect",
    "check_save_and_load",
    "check_seed_repeats",
    "check_settings_refused",
]

Batch = tuple[Tensor, Tensor | None]


class ContractError(AssertionError):
    """A learner breaks the contract; the message says which promise and how."""


@dataclass(frozen=True)
class LearnerCase:
    """A learner to check and the small stream to check it on.

    Attributes:
        learner_class: The class.
        settings: Its settings; small ones make the checks fast.
        input_shape: Shape of one sample.
        n_classes: Classes of the stream, an even number; None for a stream without labels.
        memory_bound: The most samples it may store; None where nothing is promised.
        batch_size: Samples per batch.
        n_batches: Batches in each of the two tasks.
    """

    learner_class: type[Learner]
    settings: Any
    input_shape: tuple[int, ...] = (1, 8, 8)
    n_classes: int | None = 4
    memory_bound: int | None = None
    batch_size: int = 5
    n_batches: int = 6

    def make(self, seed: int = 0) -> Learner:
        """A fresh learner."""
        return self.learner_class(self.settings, input_shape=self.input_shape, n_classes=self.n_classes, seed=seed)

    def tasks(self) -> list[list[Batch]]:
        """Two tasks of batches, each with its half of the classes: noisy copies of one pattern per class, in [0, 1]."""
        generator = torch.Generator().manual_seed(1234)
        n_classes = self.n_classes or 4
        patterns = torch.randn(n_classes, *self.input_shape, generator=generator)
        return [[self._batch(patterns, task, generator) for _ in range(self.n_batches)] for task in range(2)]

    def _batch(self, patterns: Tensor, task: int, generator: torch.Generator) -> Batch:
        half = len(patterns) // 2
        y = torch.randint(task * half, (task + 1) * half, (self.batch_size,), generator=generator)
        noise = torch.randn(self.batch_size, *self.input_shape, generator=generator)
        x = torch.sigmoid(2 * patterns[y] + 0.5 * noise)
        return x, y if self.n_classes is not None else None

    def test_inputs(self) -> Tensor:
        """Inputs of both tasks, (2 batch_size, *input_shape)."""
        return torch.cat([batches[0][0] for batches in self.tasks()])

    def steps(self, learner: Learner) -> list[Callable[[], None]]:
        """What a run does with the learner, in order: batches, and tasks' ends only where its type asks for them."""
        steps: list[Callable[[], None]] = []
        for task, batches in enumerate(self.tasks()):
            if isinstance(learner, TaskBasedLearner):
                steps.append(lambda task=task: learner.begin_task(task))  # type: ignore[misc]
            steps += [lambda x=x, y=y: learner.learn(x, y) for x, y in batches]  # type: ignore[misc]
            if isinstance(learner, TaskBasedLearner):
                steps.append(learner.end_task)
        return [*steps, learner.finish]

    def trained(self, seed: int = 0) -> Learner:
        """A learner after the whole stream."""
        learner = self.make(seed)
        for step in self.steps(learner):
            step()
        return learner

    def answer(self, learner: Learner, x: Tensor) -> Tensor:
        """Class log-probabilities, or log densities where the stream has no labels."""
        return learner.log_prob(x) if self.n_classes is None else learner.predict_log_proba(x)


def check_inputs_unchanged(case: LearnerCase) -> None:
    """Neither learning nor answering changes the tensors it is given."""
    learner = case.make()
    if isinstance(learner, TaskBasedLearner):
        learner.begin_task(0)
    for x, y in case.tasks()[0]:
        x_before, y_before = x.clone(), None if y is None else y.clone()
        learner.learn(x, y)
        _require(torch.equal(x, x_before), case, "learn changed its input x")
        _require(y is None or y_before is None or torch.equal(y, y_before), case, "learn changed its labels y")
        case.answer(learner, x)
        _require(torch.equal(x, x_before), case, "answering changed its input x")


def check_predict_has_no_effect(case: LearnerCase) -> None:
    """A learner that is asked after every step, as a run asks: without gradients, ends as one that is never asked."""
    asked, silent = case.make(), case.make()
    x = case.test_inputs()
    for step, silent_step in zip(case.steps(asked), case.steps(silent), strict=True):
        step()
        silent_step()
        before = asked.state_dict()
        with torch.no_grad():
            case.answer(asked, x)
        _require(_same(before, asked.state_dict()), case, "answering changed the learner's state")
    _require(_same(asked.state_dict(), silent.state_dict()), case, "answering changed what was learned afterwards")
    _require(torch.equal(case.answer(asked, x), case.answer(silent, x)), case, "answering changed later answers")


def check_seed_repeats(case: LearnerCase) -> None:
    """Two learners with one seed and one stream end with the same bits."""
    first, second = case.trained(seed=3), case.trained(seed=3)
    _require(_same(first.state_dict(), second.state_dict()), case, "the same seed gave another state")
    x = case.test_inputs()
    _require(torch.equal(case.answer(first, x), case.answer(second, x)), case, "the same seed gave other answers")


def check_save_and_load(case: LearnerCase) -> None:
    """A run that is stopped anywhere, saved to a file and resumed elsewhere gives the same bits as one that was not."""
    whole, x = case.trained(), case.test_inputs()
    for stop in _stops(len(case.steps(case.make()))):
        stopped, resumed = case.make(), case.make(seed=99)
        for step in case.steps(stopped)[:stop]:
            step()
        state = stopped.state_dict()
        saved = _through_file(state)
        for step in case.steps(stopped)[stop:]:
            step()
        _require(_same(state, saved), case, f"the state after step {stop} changed when learning went on")
        resumed.load_state_dict(saved)
        for step in case.steps(resumed)[stop:]:
            step()
        _require(_same(state, saved), case, f"the state loaded after step {stop} changed when learning went on")
        message = f"resumed after step {stop}, it learned or answered otherwise"
        _require(_same(resumed.state_dict(), whole.state_dict()), case, message)
        _require(torch.equal(case.answer(resumed, x), case.answer(whole, x)), case, message)


def check_memory_bound(case: LearnerCase) -> None:
    """It never stores more samples than promised (`memory_bound`, or its settings' `memory_size`), and counts them."""
    bound = getattr(case.settings, "memory_size", None) if case.memory_bound is None else case.memory_bound
    learner = case.make()
    for step in case.steps(learner):
        step()
        kept = learner.footprint()
        _require(bound is None or kept.memory_samples <= bound, case, f"{kept.memory_samples} samples exceed {bound}")
        consistent = (kept.memory_samples == 0) == (kept.memory_bytes == 0)
        _require(consistent, case, f"{kept.memory_samples} samples cannot take {kept.memory_bytes} bytes")


def check_no_task_identity(case: LearnerCase) -> None:
    """Learning takes x and y, answering takes x; only a TaskBasedLearner has a way to be told of tasks."""
    for name, expected in {"learn": ["self", "x", "y"], "predict_log_proba": ["self", "x"]}.items():
        received = list(inspect.signature(getattr(case.learner_class, name)).parameters)
        _require(received == expected, case, f"{name} must take {expected}; it takes {received}")
    declared = issubclass(case.learner_class, TaskBasedLearner)
    for name in ("begin_task", "end_task"):
        message = f"it has {name} but is no TaskBasedLearner"
        _require(declared or not hasattr(case.learner_class, name), case, message)


def check_answers(case: LearnerCase) -> None:
    """Answers have the right shape, are probabilities (or finite densities), and do not depend on other samples."""
    x = case.test_inputs()
    for learner in (case.make(), case.trained()):
        answer = case.answer(learner, x)
        expected = (len(x),) if case.n_classes is None else (len(x), case.n_classes)
        _require(tuple(answer.shape) == expected, case, f"answers have shape {tuple(answer.shape)}, not {expected}")
        if case.n_classes is None:
            _require(bool(answer.isfinite().all()), case, "a log density is not finite")
        else:
            total = answer.exp().sum(1)
            _require(torch.allclose(total, torch.ones_like(total), atol=1e-4), case, f"probabilities sum to {total}")
        alone = torch.cat([case.answer(learner, one) for one in x.split(1)])  # type: ignore[no-untyped-call]
        _require(
            torch.allclose(answer, alone, atol=1e-3, rtol=1e-3), case, "an answer depends on the rest of its batch"
        )


def check_footprint(case: LearnerCase) -> None:
    """Counts are whole numbers, never negative, and what is kept includes what is trained."""
    for learner in (case.make(), case.trained()):
        kept = learner.footprint()
        for name, value in vars(kept).items():
            _require(type(value) is int and value >= 0, case, f"footprint().{name} is {value!r}")
        _require(kept.n_numbers_kept >= kept.n_parameters, case, f"it keeps less than it trains: {kept}")


def check_global_random_state(case: LearnerCase) -> None:
    """Neither torch's nor Python's global random numbers are moved, nor do they have an influence."""
    torch_before, python_before = torch.get_rng_state(), random.getstate()
    first = case.trained()
    case.answer(first, case.test_inputs())
    untouched = torch.equal(torch.get_rng_state(), torch_before) and random.getstate() == python_before
    _require(untouched, case, "global random state was moved")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(987654321)
        second = case.trained()
    _require(_same(first.state_dict(), second.state_dict()), case, "global random state had an influence")


def check_settings_refused(case: LearnerCase) -> None:
    """Settings of another kind and settings with unknown names are refused when the learner is made."""

    class Foreign(LearnerSettings):
        pass

    try:
        case.learner_class(Foreign(), input_shape=case.input_shape, n_classes=case.n_classes)
    except TypeError:
        pass
    else:
        raise ContractError(f"{case.learner_class.__name__}: settings of another class were accepted")
    try:
        case.learner_class.Settings.model_validate({"surely_no_setting": 1})
    except ValidationError:
        return
    raise ContractError(f"{case.learner_class.__name__}: a setting with an unknown name was accepted")


CHECKS: tuple[Callable[[LearnerCase], None], ...] = (
    check_settings_refused,
    check_no_task_identity,
    check_inputs_unchanged,
    check_answers,
    check_footprint,
    check_memory_bound,
    check_seed_repeats,
    check_predict_has_no_effect,
    check_save_and_load,
    check_global_random_state,
)
"""All checks, the cheap ones first."""


def check_learner(learner_class: type[Learner], settings: LearnerSettings | None = None, **case: Any) -> None:
    """Puts a learner through all checks.

    Args:
        learner_class: Your learner.
        settings: Its settings; by default those it has without being told any.
        **case: Further fields of :class:`LearnerCase`, e.g. ``input_shape=(4,)`` or ``n_classes=None``.

    Raises:
        ContractError: At the first broken promise.
    """
    chosen = learner_class.Settings() if settings is None else settings
    for check in CHECKS:
        check(LearnerCase(learner_class, chosen, **case))


def _require(kept: bool, case: LearnerCase, broken: str) -> None:
    if not kept:
        raise ContractError(f"{case.learner_class.__name__}: {broken}")


def _stops(n_steps: int) -> list[int]:
    """Before the first step, within the first task, within the second, and after the last step."""
    return [0, n_steps // 4, 3 * n_steps // 4, n_steps]


def _through_file(state: State) -> State:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner"
        save_state(path, state, kind="learner")
        return load_state(path, kind="learner")


def _same(first: Any, second: Any) -> bool:
    """Whether two states are equal to the bit, whatever lists and tuples a file has made of each other."""
    if isinstance(first, Tensor):
        return isinstance(second, Tensor) and first.dtype == second.dtype and torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(_same(a, b) for a, b in zip(first, second, strict=True))
    return bool(first == second)
