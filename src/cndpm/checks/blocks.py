"""The promises of learners about blocks of batches and about prepared inputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cndpm.checks.case import LearnerCase, begin_task, end_task, require, same, through_file
from cndpm.learner import Inputs, Learner
from cndpm.state import State
from cndpm.streams.stream import Block

_ROUNDING = 1e-6
"""Largest difference between answers, relative to the largest of them."""


class _Stopped(Exception):
    """Interrupts a block between two batches."""


def check_block_agrees(case: LearnerCase) -> None:
    """Blocks are learned as their batches are, one by one: the same answers but for rounding, as many experts.

    The batches do not divide the block, so that its last one is shorter. After each of them the learner says so.
    """
    one_by_one, in_blocks = case.make(), case.make()
    size = case.batch_size - 1 or 2

    def learn_batches(task: int) -> None:
        for x, y in Block(*case.blocks()[task], size).batches():
            one_by_one.learn(x, y)

    _learn_tasks(case, one_by_one, learn_batches)
    told: list[int] = []

    def learn_block(task: int) -> None:
        told.clear()
        x, y = case.blocks()[task]
        in_blocks.learn_block(x, y, size, after_batch=told.append)
        expected = [min(stop, len(x)) for stop in range(size, len(x) + size, size)]
        require(told == expected, case, f"learn_block must call after_batch with {expected}; it did with {told}")

    _learn_tasks(case, in_blocks, learn_block)
    n_experts = (one_by_one.footprint().n_experts, in_blocks.footprint().n_experts)
    require(n_experts[0] == n_experts[1], case, f"learn gave {n_experts[0]} experts, learn_block {n_experts[1]}")
    x = case.test_inputs()
    expected, answered = case.answer(one_by_one, x), case.answer(in_blocks, x)
    difference = float((expected - answered).abs().max()) / max(1.0, float(expected.abs().max()))
    message = f"answers after learn_block and after learn differ by {difference:.1e} of the largest of them"
    require(difference <= _ROUNDING, case, message)


def check_block_resumes(case: LearnerCase) -> None:
    """A block interrupted between two batches goes on elsewhere to the same bits, given whole again with `start`."""
    whole, x_test = case.make(), case.test_inputs()
    _learn_tasks(case, whole, lambda task: whole.learn_block(*case.blocks()[task], case.batch_size))
    n = len(case.blocks()[0][0])
    for stop in (n // case.batch_size // 2 * case.batch_size, n):
        stopped, resumed = case.make(), case.make(seed=99)
        state = _state_at(case, stopped, stop)
        resumed.load_state_dict(through_file(state))
        resumed.learn_block(*case.blocks()[1], case.batch_size, start=stop)
        end_task(resumed)
        resumed.finish()
        message = f"resumed within a block after {stop} samples, it learned or answered otherwise"
        require(same(resumed.state_dict(), whole.state_dict()), case, message)
        require(torch.equal(case.answer(resumed, x_test), case.answer(whole, x_test)), case, message)


def check_prepare(case: LearnerCase) -> None:
    """Answers for prepared inputs are those for the inputs themselves, to the bit, whenever they were prepared.

    Preparing changes neither the learner nor what it learns afterwards.
    """
    x, plain, learner = case.test_inputs(), case.trained(), case.make()
    prepared = [learner.prepare(x.clone())]
    for step in case.steps(learner):
        step()
        _compare_answers(case, learner, x, prepared[0], "prepared before learning")
    prepared.append(learner.prepare(x.clone()))
    for inputs, moment in zip(prepared, ("before", "after"), strict=True):
        _compare_answers(case, learner, x, inputs, f"prepared {moment} learning")
    require(same(learner.state_dict(), plain.state_dict()), case, "preparing inputs changed what was learned")


def _compare_answers(case: LearnerCase, learner: Learner, x: Tensor, inputs: Inputs, when: str) -> None:
    """Asks about x, (n, *input_shape), and about what the learner has prepared of it."""
    questions: list[Callable[[Inputs], Tensor]] = [lambda asked: case.answer(learner, asked)]
    if learner.experts is not None and learner.footprint().n_experts:
        questions += [learner.experts.expert_log_proba]
        questions += [learner.experts.expert_predict_log_proba] if case.n_classes is not None else []
    with torch.no_grad():
        for ask in questions:
            message = f"answers for inputs {when} differ from those for the inputs themselves"
            require(torch.equal(ask(x.clone()), ask(inputs)), case, message)


def _learn_tasks(case: LearnerCase, learner: Learner, learn: Callable[[int], None]) -> None:
    """Has a learner learn both tasks by `learn`, told of them where it asks for that."""
    for task in range(len(case.blocks())):
        begin_task(learner, task)
        learn(task)
        end_task(learner)
    learner.finish()


def _state_at(case: LearnerCase, learner: Learner, stop: int) -> State:
    """Returns the state in the second task after `stop` samples of its block, taken where a run saves it."""
    saved: list[State] = []

    def after_batch(n_samples: int) -> None:
        if n_samples == stop:
            saved.append(learner.state_dict())
            raise _Stopped

    first, second = case.blocks()
    begin_task(learner, 0)
    learner.learn_block(*first, case.batch_size)
    end_task(learner)
    begin_task(learner, 1)
    try:
        learner.learn_block(*second, case.batch_size, after_batch=after_batch)
    except _Stopped:
        return saved[0]
    require(False, case, f"learn_block did not end where after_batch raised, after {stop} samples")
    raise AssertionError
