"""The promises of every learner that is taught batch by batch."""

from __future__ import annotations

import inspect
import random

import torch
from pydantic import ValidationError

from cndpm.checks.case import ContractError, LearnerCase, begin_task, require, same, through_file
from cndpm.learner import LearnerSettings


def check_inputs_unchanged(case: LearnerCase) -> None:
    """Neither learning nor answering changes the tensors it is given."""
    learner = case.make()
    begin_task(learner, 0)
    for x, y in case.tasks()[0]:
        x_before, y_before = x.clone(), None if y is None else y.clone()
        learner.learn(x, y)
        require(torch.equal(x, x_before), case, "learn changed its input x")
        require(y is None or y_before is None or torch.equal(y, y_before), case, "learn changed its labels y")
        case.answer(learner, x)
        require(torch.equal(x, x_before), case, "answering changed its input x")


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
        require(same(before, asked.state_dict()), case, "answering changed the learner's state")
    require(same(asked.state_dict(), silent.state_dict()), case, "answering changed what was learned afterwards")
    require(torch.equal(case.answer(asked, x), case.answer(silent, x)), case, "answering changed later answers")


def check_seed_repeats(case: LearnerCase) -> None:
    """Two learners with one seed and one stream end with the same bits."""
    first, second = case.trained(seed=3), case.trained(seed=3)
    require(same(first.state_dict(), second.state_dict()), case, "the same seed gave another state")
    x = case.test_inputs()
    require(torch.equal(case.answer(first, x), case.answer(second, x)), case, "the same seed gave other answers")


def check_save_and_load(case: LearnerCase) -> None:
    """A run that is stopped anywhere, saved to a file and resumed elsewhere gives the same bits as one that was not."""
    whole, x = case.trained(), case.test_inputs()
    n = len(case.steps(case.make()))
    for stop in (0, n // 4, 3 * n // 4, n):  # before all, within each of the two tasks, after all
        stopped, resumed = case.make(), case.make(seed=99)
        for step in case.steps(stopped)[:stop]:
            step()
        state = stopped.state_dict()
        saved = through_file(state)
        for step in case.steps(stopped)[stop:]:
            step()
        require(same(state, saved), case, f"the state after step {stop} changed when learning went on")
        resumed.load_state_dict(saved)
        for step in case.steps(resumed)[stop:]:
            step()
        require(same(state, saved), case, f"the state loaded after step {stop} changed when learning went on")
        message = f"resumed after step {stop}, it learned or answered otherwise"
        require(same(resumed.state_dict(), whole.state_dict()), case, message)
        require(torch.equal(case.answer(resumed, x), case.answer(whole, x)), case, message)


def check_memory_bound(case: LearnerCase) -> None:
    """No more samples are stored than promised (`memory_bound`, or the settings' `memory_size`); they are counted."""
    bound = getattr(case.settings, "memory_size", None) if case.memory_bound is None else case.memory_bound
    learner = case.make()
    for step in case.steps(learner):
        step()
        kept = learner.footprint()
        require(bound is None or kept.memory_samples <= bound, case, f"{kept.memory_samples} samples exceed {bound}")
        consistent = (kept.memory_samples == 0) == (kept.memory_bytes == 0)
        require(consistent, case, f"{kept.memory_samples} samples cannot take {kept.memory_bytes} bytes")


def check_no_task_identity(case: LearnerCase) -> None:
    """Learning takes x and y, answering takes x; only a learner with a `task_listener` can be told of tasks."""
    for name, expected in {"learn": ["self", "x", "y"], "predict_log_proba": ["self", "x"]}.items():
        parameters = inspect.signature(getattr(case.learner_class, name)).parameters.values()
        received = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
        require(received == expected, case, f"{name} must take {expected}; it takes {received}")
    learner = case.make()
    for name in ("begin_task", "end_task"):
        declared = learner.task_listener is not None
        require(declared or not hasattr(learner, name), case, f"it has {name} but no task_listener")


def check_answers(case: LearnerCase) -> None:
    """Answers have the right shape, are probabilities (or finite densities), and do not depend on other samples."""
    x = case.test_inputs()
    for learner in (case.make(), case.trained()):
        answer = case.answer(learner, x)
        expected = (len(x),) if case.n_classes is None else (len(x), case.n_classes)
        require(tuple(answer.shape) == expected, case, f"answers have shape {tuple(answer.shape)}, not {expected}")
        if case.n_classes is None:
            require(bool(answer.isfinite().all()), case, "a log density is not finite")
        else:
            total = answer.exp().sum(1)
            require(torch.allclose(total, torch.ones_like(total), atol=1e-4), case, f"probabilities sum to {total}")
        alone = torch.cat([case.answer(learner, one) for one in x.split(1)])  # type: ignore[no-untyped-call]
        require(torch.allclose(answer, alone, atol=1e-3, rtol=1e-3), case, "an answer depends on the rest of its batch")


def check_footprint(case: LearnerCase) -> None:
    """Counts are whole numbers, never negative, and what is kept includes what is trained."""
    for learner in (case.make(), case.trained()):
        kept = learner.footprint()
        for name, value in vars(kept).items():
            require(type(value) is int and value >= 0, case, f"footprint().{name} is {value!r}")
        require(kept.n_numbers_kept >= kept.n_parameters, case, f"it keeps less than it trains: {kept}")


def check_global_random_state(case: LearnerCase) -> None:
    """Neither torch's nor Python's global random numbers are moved, nor do they have an influence."""
    torch_before, python_before = torch.get_rng_state(), random.getstate()
    first = case.trained()
    case.answer(first, case.test_inputs())
    untouched = torch.equal(torch.get_rng_state(), torch_before) and random.getstate() == python_before
    require(untouched, case, "global random state was moved")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(987654321)
        second = case.trained()
    require(same(first.state_dict(), second.state_dict()), case, "global random state had an influence")


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
