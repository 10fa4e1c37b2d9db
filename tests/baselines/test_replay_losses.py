"""What distinguishes the replay methods from plain experience replay, each against its formula."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from cndpm.baselines.der import DER, DERPlusPlus
from cndpm.baselines.er_ace import ERACE
from cndpm.baselines.mir import MIR
from cndpm.baselines.scr import class_means, contrastive_loss
from cndpm.baselines.shared.task_progress import TaskProgress, distillation, only
from cndpm.experiments.learners import learner_class

PLAIN = {"hidden": 6, "memory_size": 4, "optimizer": "sgd", "weight_decay": 0.0, "clip_value": None}


def batch(n: int, seed: int, classes: tuple[int, int] = (0, 4)) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 5, generator=generator), torch.randint(*classes, (n,), generator=generator)


def moved_by(learner: DER | DERPlusPlus | ERACE, loss: Tensor) -> Tensor:
    """Where a plain gradient step on this loss leads."""
    return learner.trainer.weights() - learner.settings.learning_rate * learner.trainer.gradient(loss)


def test_der_replays_the_logits_it_gave_when_it_met_the_sample():
    learner = DER(DER.Settings(alpha=0.7, **PLAIN), input_shape=(5,), n_classes=4)
    first, second = batch(4, 0), batch(4, 1)
    logits_then = learner.network(first[0]).detach()
    learner.learn(*first)
    torch.testing.assert_close(learner.memory.rows["logits"], logits_then)
    loss = F.cross_entropy(learner.network(second[0]), second[1])
    loss = loss + 0.7 * (learner.network(first[0]) - logits_then).square().mean()
    expected = moved_by(learner, loss)
    learner.learn(*second)
    torch.testing.assert_close(learner.trainer.weights(), expected)


def test_der_plus_plus_adds_the_stored_labels():
    learner = DERPlusPlus(DERPlusPlus.Settings(alpha=0.3, beta=0.9, **PLAIN), input_shape=(5,), n_classes=4)
    first, second = batch(4, 0), batch(4, 1)
    logits_then = learner.network(first[0]).detach()
    learner.learn(*first)
    past = learner.network(first[0])
    loss = F.cross_entropy(learner.network(second[0]), second[1])
    loss = loss + 0.3 * (past - logits_then).square().mean() + 0.9 * F.cross_entropy(past, first[1])
    expected = moved_by(learner, loss)
    learner.learn(*second)
    torch.testing.assert_close(learner.trainer.weights(), expected)


def test_er_ace_compares_incoming_samples_among_their_own_classes_only():
    learner = ERACE(ERACE.Settings(**PLAIN), input_shape=(5,), n_classes=4)
    first, second = batch(4, 0, (0, 2)), batch(6, 1, (2, 4))
    assert set(second[1].tolist()) == {2, 3}
    learner.learn(*first)
    incoming = F.cross_entropy(learner.network(second[0])[:, 2:], second[1] - 2)
    expected = moved_by(learner, incoming + F.cross_entropy(learner.network(first[0]), first[1]))
    learner.learn(*second)
    torch.testing.assert_close(learner.trainer.weights(), expected)


def test_mir_interference_is_the_rise_of_the_loss_after_a_real_step():
    learner = MIR(MIR.Settings(**PLAIN, virtual_rate=0.05), input_shape=(5,), n_classes=4)
    (x, y), (x_past, y_past) = batch(4, 0), batch(7, 1)
    network = copy.deepcopy(learner.network)
    before = F.cross_entropy(network(x_past), y_past, reduction="none")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
    F.cross_entropy(network(x), y).backward()
    optimizer.step()
    after = F.cross_entropy(network(x_past), y_past, reduction="none")
    torch.testing.assert_close(learner.interference(x, y, x_past, y_past), (after - before).detach())


def test_contrastive_loss_is_its_double_sum():
    generator = torch.Generator().manual_seed(0)
    z, y = torch.randn(6, 3, generator=generator), torch.tensor([0, 0, 1, 1, 1, 2])
    unit = F.normalize(z, dim=1)
    total = 0.0
    for i in range(5):  # the sixth sample has no partner
        positives = [p for p in range(6) if p != i and y[p] == y[i]]
        everyone = sum(torch.exp(unit[i] @ unit[a] / 0.5) for a in range(6) if a != i)
        total += sum(-torch.log(torch.exp(unit[i] @ unit[p] / 0.5) / everyone) for p in positives) / len(positives)
    assert contrastive_loss(z, y, temperature=0.5).item() == pytest.approx(float(total) / 5, rel=1e-5)


def test_class_means_are_unit_length_and_count_their_samples():
    features, y = torch.tensor([[2.0, 0.0], [0.0, 3.0], [0.0, -1.0]]), torch.tensor([0, 0, 2])
    means, counts = class_means(features, y, 3)
    torch.testing.assert_close(means[0], torch.tensor([1.0, 1.0]) / 2**0.5)
    torch.testing.assert_close(means[2], torch.tensor([0.0, -1.0]))
    assert counts.tolist() == [2, 0, 1]


def test_distillation_gives_classes_unknown_to_the_teacher_no_probability():
    student, teacher = torch.zeros(1, 3, requires_grad=True), torch.tensor([[1.0, -1.0, float("-inf")]])
    loss = distillation(student, teacher, temperature=2.0)
    target = F.softmax(torch.tensor([0.5, -0.5]), dim=0)
    expected = -4 * (target * torch.log(torch.tensor([1 / 3, 1 / 3]))).sum()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    (gradient,) = torch.autograd.grad(loss, student)
    assert gradient[0, 2] > 0  # descending lowers the unknown class


def test_seen_classes_hide_the_others_once_there_is_one():
    progress = TaskProgress(3, torch.device("cpu"))
    logits = torch.zeros(1, 3)
    assert torch.equal(only(logits, progress.seen), logits)
    progress.see(torch.tensor([2, 2]))
    assert only(logits, progress.seen)[0].tolist() == [float("-inf"), float("-inf"), 0.0]
    assert torch.equal(only(logits, progress.known), logits)
    progress.end()
    assert torch.equal(progress.known, progress.seen)


@pytest.mark.parametrize("name", ["lwf", "dgr", "rtf"])
def test_classes_not_seen_yet_have_no_probability_where_training_left_them_out(name: str):
    cls = learner_class(name)
    learner = cls(cls.Settings(hidden=6), input_shape=(5,), n_classes=4)
    x = torch.rand(8, 5, generator=torch.Generator().manual_seed(0))
    learner.learn(x, torch.arange(8) % 2)
    assert torch.isneginf(learner.predict_log_proba(x)).tolist() == [[False, False, True, True]] * 8
