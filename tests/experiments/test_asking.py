"""Asking a learner: answers beside the truth, of every kind, and no effect on it."""

import math

import pytest
import torch

from cndpm.experiments.teaching import ask, class_answers, expert_gate
from cndpm.model.cndpm import CNDPM


def test_the_probability_of_the_truth_is_read_off_and_unknown_classes_are_impossible():
    log_proba = torch.tensor([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]).log()
    answers = class_answers(log_proba, torch.tensor([1, 1, 4]))
    assert answers.predicted.tolist() == [0, 1, 0]
    assert answers.log_truth.exp().tolist() == pytest.approx([0.3, 0.8, 0.0]) and answers.log_truth[2] == -math.inf


def test_values_and_densities_have_no_answer_before_there_is_something_to_answer_from():
    x, y = torch.randn(30, 3, generator=torch.Generator().manual_seed(0)), torch.arange(30.0)[:, None]
    values = CNDPM(CNDPM.Settings(target="values", memory_size=20), input_shape=(3,))
    density = CNDPM(CNDPM.Settings(target="none", memory_size=20), input_shape=(3,))
    assert ask(values, x, y, "values") is None and ask(density, x, None, "none") is None
    values.learn(x[:10], y[:10])
    density.learn(x[:10])
    assert ask(values, x, y, "values").mean.shape == (30, 1) and ask(density, x, None, "none") is None
    assert expert_gate(density, x).shape == (0, 0)
    density.learn(x)
    answers = ask(density, x, None, "none")
    assert torch.equal(answers.log_density, density.log_prob(x)) and answers.n_dims == 3
    assert expert_gate(density, x).shape == (30, 1)


def test_asking_changes_nothing():
    x, y = torch.randn(60, 3, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 2
    asked, quiet = (CNDPM(CNDPM.Settings(memory_size=20), input_shape=(3,)) for _ in range(2))
    for start in range(0, 60, 10):
        part, labels = x[start : start + 10], y[start : start + 10]
        ask(asked, part, labels, "classes")
        expert_gate(asked, part)
        asked.learn(part, labels)
        quiet.learn(part, labels)
    assert torch.equal(asked.predict_log_proba(x), quiet.predict_log_proba(x))


@pytest.mark.parametrize("target", ["classes", "values"])
def test_a_batch_is_answered_as_the_rows_that_come_next(target, monkeypatch):
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    y = torch.arange(20) % 2 if target == "classes" else torch.arange(20.0)[:, None]
    learner, asked = CNDPM(CNDPM.Settings(target=target, memory_size=20), input_shape=(3,)), []
    learner.learn(x, y)
    answer = learner.predict_for
    monkeypatch.setattr(learner, "predict_for", lambda x, when, **kind: asked.append(when) or answer(x, when, **kind))
    ask(learner, x, y, target)
    assert asked == ["next"]
