"""What a learner knows at one moment, measured on the test data of every task.

:func:`evaluate` asks any learner for its answers. :func:`dissect` asks a mixture which expert would answer and what
each would say: the paper's appendix table separates the accuracy of the right expert's classifier from the accuracy of
choosing the right expert ("gating").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cndpm.learner import Learner, MixtureLearner
from cndpm.streams import Task

__all__ = ["Dissection", "Evaluation", "TestSet", "dissect", "evaluate"]


@dataclass(frozen=True)
class TestSet:
    """The tasks a learner is tested on and how.

    Attributes:
        tasks: Test data of every task.
        labelled: Whether classes are asked for (accuracy) or the density of x is (bits per dimension).
        batch_size: Samples evaluated at once.
    """

    __test__ = False  # not a test case, whatever pytest thinks of the name

    tasks: tuple[Task, ...]
    labelled: bool
    batch_size: int = 500

    def subsample(self, n: int, seed: int) -> TestSet:
        """The same `n` samples every time, drawn from all tasks in proportion to their sizes (at least one of each)."""
        total = sum(len(task.x) for task in self.tasks)
        generator = torch.Generator().manual_seed(seed)
        tasks = []
        for task in self.tasks:
            size = min(len(task.x), max(1, round(n * len(task.x) / total)))
            chosen = torch.randperm(len(task.x), generator=generator)[:size].sort().values.to(task.x.device)
            tasks.append(Task(task.name, task.classes, task.x[chosen], task.y[chosen]))
        return TestSet(tuple(tasks), self.labelled, self.batch_size)


@dataclass(frozen=True)
class Evaluation:
    """Accuracies in percent, or bits per dimension: overall (all test samples pooled) and by task."""

    accuracy: float | None = None
    task_accuracy: list[float] | None = None
    bits_per_dim: float | None = None
    task_bits_per_dim: list[float] | None = None


@dataclass(frozen=True)
class Dissection:
    """Where a mixture's accuracy comes from, in percent; None for tasks that have not appeared yet.

    Attributes:
        gating_accuracy: Samples of learned tasks that reach an expert of their own task, by x alone.
        classifier_accuracy: By task, the accuracy of its own experts' classifiers. None for unlabelled streams.
        expert_tasks: For every expert the task it is in charge of.
        gate_counts: By task, how many of its test samples each expert would answer, by x alone.
    """

    gating_accuracy: float
    classifier_accuracy: list[float | None] | None
    expert_tasks: list[int]
    gate_counts: list[list[int] | None]


@torch.no_grad()
def evaluate(learner: Learner, test: TestSet) -> Evaluation:
    """The learner's answers, compared with the truth.

    A mixture without an expert has no density yet, and one of features none of x: bits per dimension are then None.
    """
    if test.labelled:
        scores = [
            _per_sample(task, test, lambda x, y: _is_right(learner.predict_log_proba(x), y)) for task in test.tasks
        ]
        by_task = [100 * float(score.mean()) for score in scores]
        return Evaluation(accuracy=100 * float(torch.cat(scores).mean()), task_accuracy=by_task)
    if learner.footprint().n_experts == 0 or not learner.describes_x:
        return Evaluation()
    scores = [_per_sample(task, test, lambda x, _: _bits_per_dim(learner.log_prob(x), x)) for task in test.tasks]
    by_task = [float(score.mean()) for score in scores]
    return Evaluation(bits_per_dim=float(torch.cat(scores).mean()), task_bits_per_dim=by_task)


@torch.no_grad()
def dissect(learner: MixtureLearner, test: TestSet, learned: Sequence[int]) -> Dissection | None:
    r"""Splits the accuracy on the tasks `learned` into gating and classification.

    Who is in charge of what is not known to the learner, so it is read off the test data: expert k belongs to the task
    on which its share :math:`p(k \mid x, y) \propto p(k \mid x)\, p(y \mid x, k)` is largest on average, and a task
    without an expert of its own is answered by the one with the largest share in it. Where every task has one expert
    this is the paper's definition.

    Returns:
        None while the mixture has no expert.
    """
    if learner.footprint().n_experts == 0:
        return None
    answers = [_expert_answers(learner, test.tasks[t], test) for t in learned]
    shares = torch.stack([answer.share() for answer in answers])  # (n_learned, K)
    owner = shares.argmax(0)  # (K,)
    gating, classifier = [], []
    gate_counts: list[list[int] | None] = [None] * len(test.tasks)
    for i, answer in enumerate(answers):
        own = owner == i
        if not bool(own.any()):
            own = torch.zeros_like(own).index_fill(0, shares[i].argmax(), True)
        chosen = answer.log_gate.argmax(1)
        gating.append(own[chosen].double())
        gate_counts[learned[i]] = torch.bincount(chosen, minlength=len(own)).tolist()
        classifier.append(answer.accuracy_within(own))
    accuracy: list[float | None] = [None] * len(test.tasks)
    for task, value in zip(learned, classifier, strict=True):
        accuracy[task] = value
    return Dissection(
        gating_accuracy=100 * float(torch.cat(gating).mean()),
        classifier_accuracy=accuracy if test.labelled else None,
        expert_tasks=[learned[i] for i in owner.tolist()],
        gate_counts=gate_counts,
    )


@dataclass(frozen=True)
class _ExpertAnswers:
    """log p(k | x), (N, K); for labelled tasks log p(y | x, k) of the true class and whether k is right, (N, K)."""

    log_gate: Tensor
    log_truth: Tensor | None
    right: Tensor | None

    def share(self) -> Tensor:
        """The mean of p(k | x, y) over the task's samples, (K,)."""
        log_joint = self.log_gate if self.log_truth is None else self.log_gate + self.log_truth
        return log_joint.double().softmax(1).mean(0)

    def accuracy_within(self, own: Tensor) -> float | None:
        """Accuracy, in percent, when every sample is answered by the likeliest of the experts marked in `own`, (K,)."""
        if self.right is None:
            return None
        chosen = self.log_gate.masked_fill(~own, -math.inf).argmax(1, keepdim=True)
        return 100 * float(self.right.gather(1, chosen).mean())


def _expert_answers(learner: MixtureLearner, task: Task, test: TestSet) -> _ExpertAnswers:
    gates, truths, rights = [], [], []
    for x, y in _chunks(task, test.batch_size):
        gates.append(learner.expert_log_proba(x))
        if test.labelled:
            log_proba = learner.expert_predict_log_proba(x)  # (B, K, C)
            truths.append(log_proba.gather(2, y[:, None, None].expand(-1, log_proba.shape[1], 1)).squeeze(2))
            rights.append((log_proba.argmax(2) == y[:, None]).double())
    return _ExpertAnswers(
        torch.cat(gates), torch.cat(truths) if truths else None, torch.cat(rights) if rights else None
    )


def _per_sample(task: Task, test: TestSet, score: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The score of every sample of a task, (N,), float64."""
    return torch.cat([score(x, y).double() for x, y in _chunks(task, test.batch_size)])


def _is_right(log_proba: Tensor, y: Tensor) -> Tensor:
    return log_proba.argmax(1) == y


def _bits_per_dim(log_prob: Tensor, x: Tensor) -> Tensor:
    """-log2 p(x) / D, (B,)."""
    return -log_prob / (math.log(2) * x[0].numel())


def _chunks(task: Task, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    for start in range(0, len(task.x), size):
        part = slice(start, start + size)
        yield task.x[part], task.y[part]
