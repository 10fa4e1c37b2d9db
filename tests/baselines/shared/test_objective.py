"""Learners of both kinds of stream: classifiers and VAEs behind one face."""

from __future__ import annotations

import math

import pytest
import torch

from cndpm.baselines.finetune import FineTune
from cndpm.baselines.iid import IIDOffline, IIDOnline
from cndpm.baselines.reservoir import Reservoir
from cndpm.experiments.learners import LEARNERS
from cndpm.learner import Learner


def bits(learner: Learner, x: torch.Tensor) -> float:
    return -learner.log_prob(x).mean().item() / (x[0].numel() * math.log(2))


@pytest.mark.parametrize("cls", [FineTune, Reservoir, IIDOnline])
def test_vae_learns_to_need_fewer_bits(cls: type[Learner]):
    generator = torch.Generator().manual_seed(0)
    patterns = torch.rand(2, 1, 6, 6, generator=generator).round()
    learner = cls(cls.Settings(hidden=32, learning_rate=3e-3), input_shape=(1, 6, 6))
    before = bits(learner, patterns)
    for _ in range(300):
        learner.learn(patterns[torch.randint(2, (8,), generator=generator)], None)
    assert before == pytest.approx(1, abs=0.2)  # an untrained decoder knows nothing: a bit a pixel
    assert bits(learner, patterns) < 0.2


def test_log_prob_of_a_sample_does_not_depend_on_how_often_one_asks():
    learner = FineTune(FineTune.Settings(hidden=8), input_shape=(4,))
    x = torch.rand(3, 4)
    assert torch.equal(learner.log_prob(x), learner.log_prob(x))


def test_iid_online_takes_the_steps_of_fine_tuning():
    x, y = torch.rand(6, 4), torch.arange(6) % 2
    plain, online = (
        cls(cls.Settings(hidden=8), input_shape=(4,), n_classes=2, seed=5) for cls in (FineTune, IIDOnline)
    )
    for learner in (plain, online):
        learner.learn(x, y)
    assert torch.equal(plain.predict_log_proba(x), online.predict_log_proba(x))


def test_iid_offline_trains_at_the_end_and_then_keeps_no_sample():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 4, generator=generator)
    y = (x[:, 0] > 0).long()
    learner = IIDOffline(
        IIDOffline.Settings(hidden=16, epochs=20, batch_size=20, learning_rate=1e-2), input_shape=(4,), n_classes=2
    )
    untrained = learner.predict_log_proba(x)
    for rows in torch.arange(200).split(10):
        learner.learn(x[rows], y[rows])
    assert torch.equal(learner.predict_log_proba(x), untrained)
    assert learner.footprint().memory_samples == 200
    learner.finish()
    assert learner.footprint().memory_samples == 0
    assert (learner.predict_log_proba(x).argmax(1) == y).float().mean() > 0.95


def test_an_unlabelled_batch_for_a_classifier_is_refused_with_the_reason():
    learner = FineTune(FineTune.Settings(hidden=8), input_shape=(4,), n_classes=2)
    with pytest.raises(ValueError, match="made for labels of 2 classes; got none"):
        learner.learn(torch.rand(3, 4), None)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.rand(3, 5), torch.zeros(3, dtype=torch.int64), r"shape \(4,\); got x of shape \(3, 5\)"),
        (torch.rand(3, 4), torch.zeros(2, dtype=torch.int64), r"int64 of shape \(3,\); got"),
        (torch.rand(3, 4), torch.zeros(3), "got torch.float32"),
    ],
)
def test_a_batch_of_the_wrong_shape_or_type_is_refused(x: torch.Tensor, y: torch.Tensor, message: str):
    learner = FineTune(FineTune.Settings(hidden=8), input_shape=(4,), n_classes=2)
    with pytest.raises(ValueError, match=message):
        learner.learn(x, y)


@pytest.mark.parametrize("name", sorted(name for name in LEARNERS if not name.startswith("cndpm")))
def test_a_learner_that_needs_labels_refuses_a_stream_without_classes(name: str):
    cls = LEARNERS[name]
    if cls in (FineTune, Reservoir, IIDOnline, IIDOffline):
        assert cls(cls.Settings(hidden=4), input_shape=(4,)).n_classes is None
        return
    with pytest.raises(ValueError, match="n_classes must be a number"):
        cls(cls.Settings(), input_shape=(4,))
