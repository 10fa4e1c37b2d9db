"""Measures what a learner knows at one moment, on the test data of every task.

:func:`evaluate` asks any learner for its answers. :func:`dissect` asks a mixture which expert would answer and what
each would say: the paper's appendix table separates the accuracy of the right expert's classifier from the accuracy of
choosing the right expert ("gating").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from cndpm.learner import ExpertAnswers, Inputs, Learner
from cndpm.streams import Task


@dataclass(frozen=True)
class TestSet:
    """The tasks a learner is tested on and how."""

    __test__ = False  # not a test case, whatever pytest thinks of the name

    tasks: tuple[Task, ...]  # test data of every task
    labelled: bool  # whether classes are asked for (accuracy) or the density of x is (bits per dimension)
    batch_size: int = 500  # samples evaluated at once
    # For every task its chunks of `batch_size` inputs as one learner prepared them; None: as they are
    prepared: tuple[tuple[Inputs, ...], ...] | None = field(default=None, repr=False, compare=False)

    @property
    def is_measurable(self) -> bool:
        """Whether there is test data, and the answers to it are classes or densities."""
        return bool(self.tasks) and not (self.labelled and any(task.y.is_floating_point() for task in self.tasks))

    def prepare(self, learner: Learner) -> TestSet:
        """Returns the same test set for repeated questions to one learner, prepared by it chunk by chunk."""
        chunks = (torch.split(task.x, self.batch_size) for task in self.tasks)
        return replace(self, prepared=tuple(tuple(map(learner.prepare, parts)) for parts in chunks))

    def chunks(self, task: int) -> Iterator[tuple[Inputs, Tensor]]:
        """Yields the inputs of a task, `batch_size` at a time, and their labels, (B,)."""
        x, y = self.tasks[task].x, self.tasks[task].y
        inputs = torch.split(x, self.batch_size) if self.prepared is None else self.prepared[task]
        yield from zip(inputs, torch.split(y, self.batch_size), strict=True)

    def subsample(self, n: int, seed: int) -> TestSet:
        """Returns the same `n` samples every time, of all tasks in proportion to their sizes (at least one of each)."""
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

    accuracy: float | None = None  # of all test samples; None where classes are not asked for
    task_accuracy: list[float] | None = None  # by task
    bits_per_dim: float | None = None  # of all test samples; None where densities are not asked for or there are none
    task_bits_per_dim: list[float] | None = None  # by task


@dataclass(frozen=True)
class Dissection:
    """Parts of a mixture's accuracy, in percent; None for tasks that have not appeared yet."""

    gating_accuracy: float  # samples of learned tasks that reach an expert of their own task, by x alone
    # By task, the accuracy of its own experts' classifiers. None for unlabelled streams
    classifier_accuracy: list[float | None] | None
    expert_tasks: list[int]  # for every expert the task it is in charge of
    gate_counts: list[list[int] | None]  # by task, how many of its test samples each expert would answer, by x alone


@torch.no_grad()
def evaluate(learner: Learner, test: TestSet) -> Evaluation:
    """Compares the learner's answers with the truth.

    Nothing is measured where there is no test data. A mixture without an expert has no density yet, and one of features
    none of x: bits per dimension are then None.
    """
    if not test.is_measurable:
        return Evaluation()
    tasks = range(len(test.tasks))
    if test.labelled:
        scores = [_per_sample(test, t, lambda x, y: learner.predict_for(x, "any").argmax(1) == y) for t in tasks]
        by_task = [100 * float(score.mean()) for score in scores]
        return Evaluation(accuracy=100 * float(torch.cat(scores).mean()), task_accuracy=by_task)
    if learner.footprint().n_experts == 0 or not learner.describes_x:
        return Evaluation()
    n_dims = math.prod(learner.input_shape)
    scores = [_per_sample(test, t, lambda x, _: -learner.log_prob(x) / (math.log(2) * n_dims)) for t in tasks]
    by_task = [float(score.mean()) for score in scores]
    return Evaluation(bits_per_dim=float(torch.cat(scores).mean()), task_bits_per_dim=by_task)


@torch.no_grad()
def dissect(learner: Learner, test: TestSet, learned: Sequence[int]) -> Dissection | None:
    r"""Splits the accuracy on the tasks `learned` into gating and classification; None where no expert is tested.

    Who is in charge of what is not known to the learner, so it is read off the test data: expert k belongs to the task
    on which its share :math:`p(k \mid x, y) \propto p(k \mid x)\, p(y \mid x, k)` is largest on average, and a task
    without an expert of its own is answered by the one with the largest share in it. Where every task has one expert
    this is the paper's definition.
    """
    if learner.experts is None or learner.footprint().n_experts == 0 or not test.is_measurable:
        return None
    answers = [_ask_experts(learner.experts, test, t) for t in learned]
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
class _Answers:
    """log p(k | x), (N, K); for labelled tasks log p(y | x, k) of the true class and whether k is right, (N, K)."""

    log_gate: Tensor
    log_truth: Tensor | None
    right: Tensor | None

    def share(self) -> Tensor:
        """Returns the mean of p(k | x, y) over the task's samples, (K,)."""
        log_joint = self.log_gate if self.log_truth is None else self.log_gate + self.log_truth
        return log_joint.double().softmax(1).mean(0)

    def accuracy_within(self, own: Tensor) -> float | None:
        """Returns the percentage answered right when the likeliest expert of those marked in `own`, (K,), answers."""
        if self.right is None:
            return None
        chosen = self.log_gate.masked_fill(~own, -math.inf).argmax(1, keepdim=True)
        return 100 * float(self.right.gather(1, chosen).mean())


def _ask_experts(experts: ExpertAnswers, test: TestSet, task: int) -> _Answers:
    gates, truths, rights = [], [], []
    for x, y in test.chunks(task):
        gates.append(experts.expert_log_proba(x))
        if test.labelled:
            log_proba = experts.expert_predict_log_proba(x)  # (B, K, C)
            truths.append(log_proba.gather(2, y[:, None, None].expand(-1, log_proba.shape[1], 1)).squeeze(2))
            rights.append((log_proba.argmax(2) == y[:, None]).double())
    return _Answers(torch.cat(gates), torch.cat(truths) if truths else None, torch.cat(rights) if rights else None)


def _per_sample(test: TestSet, task: int, score: Callable[[Inputs, Tensor], Tensor]) -> Tensor:
    """Returns the score of every sample of a task, (N,), float64."""
    return torch.cat([score(x, y).double() for x, y in test.chunks(task)])
