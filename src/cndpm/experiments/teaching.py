"""Gives a stream to a learner, block by block; asks it before, and tells it of tasks, where that is wanted.

for block in stream.blocks(start):
    learner.learn_block(block.x, block.y, block.batch_size, start=block.first, after_batch=...)
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from cndpm.experiments.meter import Answers, Target
from cndpm.experiments.scores import ClassAnswers, DensityAnswers, ValueAnswers
from cndpm.learner import Inputs, Learner, TaskListener
from cndpm.streams import Block, Stream


@torch.no_grad()
def ask(learner: Learner, x: Inputs, y: Tensor | None, target: Target) -> Answers | None:
    """Compares the learner's answers to one batch with the truth; the learner is not changed.

    None where there is no answer yet: no values before anything was learned, no density without an expert.
    """
    if target == "classes":
        assert y is not None
        return class_answers(learner.predict_for(x, "next"), y)
    kept = learner.footprint()
    if target == "values":
        if kept.n_experts + kept.memory_samples == 0:
            return None
        assert y is not None
        moments = learner.predict_for(x, "next", values=True)
        return ValueAnswers(moments[:, 0], y.to(moments.device).reshape(len(y), -1), moments[:, 1])
    if kept.n_experts == 0 or not learner.describes_x:
        return None
    return DensityAnswers(learner.log_prob(x), math.prod(learner.input_shape))


def class_answers(log_proba: Tensor, y: Tensor) -> ClassAnswers:
    """Reads answers off log-probabilities (batch, n_classes); a class that is not known yet is held impossible."""
    truth, n_classes = y.to(log_proba.device), log_proba.shape[1]
    known = truth < n_classes
    own = log_proba.double().gather(1, truth.clamp(max=n_classes - 1).unsqueeze(1)).squeeze(1)
    return ClassAnswers(log_proba.argmax(1), truth, own.masked_fill(~known, -math.inf))


@torch.no_grad()
def expert_gate(learner: Learner, x: Inputs) -> Tensor | None:
    """Returns the experts' log-probabilities, (batch, n_experts), (batch, 0) with none yet; None otherwise."""
    if learner.experts is None:
        return None
    if learner.footprint().n_experts == 0:
        return torch.zeros(0, 0)
    return learner.experts.expert_log_proba(x)


def teach(
    learner: Learner,
    stream: Stream,
    start: int,
    after_batch: Callable[[int], None],
    *,
    before_batch: Callable[[Inputs, Tensor | None], None] | None = None,
) -> None:
    """Has a learner learn a stream to its end.

    A learner with a `task_listener` is told where tasks begin and end. A task is what a stage draws from: a stage that
    comes back is the same task, a mixture of two is its own.
    """
    notices = None if learner.task_listener is None else TaskNotices(learner.task_listener, stream)
    step = start
    for block in stream.blocks(start):
        done = step - block.first // block.batch_size

        def after(n_samples: int, done: int = done, batch_size: int = block.batch_size) -> None:
            nonlocal step
            step = done - (-n_samples // batch_size)
            if notices is not None:
                notices.after_batch(step)
            after_batch(step)

        if notices is not None:
            notices.before_batch(step)
        if before_batch is None:
            learner.learn_block(block.x, block.y, block.batch_size, start=block.first, after_batch=after)
        else:
            _learn_one_by_one(learner, block, before_batch, after)


def _learn_one_by_one(
    learner: Learner, block: Block, before_batch: Callable[[Inputs, Tensor | None], None], after: Callable[[int], None]
) -> None:
    done = block.first
    for x, y in block.batches():
        prepared = learner.prepare(x)  # what is computed of x to answer serves to learn it
        before_batch(prepared, y)
        learner.learn(prepared, y)
        done += len(x)
        after(done)


class TaskNotices:
    """Tells a listener where tasks begin and end; steps count the batches learned so far."""

    def __init__(self, listener: TaskListener, stream: Stream) -> None:
        self._listener, self._stream = listener, stream
        distinct = dict.fromkeys(map(tuple, stream.stage_tasks))
        self._number = {tasks: i for i, tasks in enumerate(distinct)}

    def before_batch(self, step: int) -> None:
        """Tells of a task that begins with the next batch; blocks begin wherever stages do."""
        stage = self._stream.stage_of(step)
        if step == 0 or self._stream.stage_of(step - 1) != stage:
            self._listener.begin_task(self._number[tuple(self._stream.stage_tasks[stage])])

    def after_batch(self, step: int) -> None:
        """Tells of a task that has ended with the latest batch."""
        if step == self._stream.n_batches or self._stream.stage_of(step) != self._stream.stage_of(step - 1):
            self._listener.end_task()
