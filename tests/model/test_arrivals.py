"""Batches on their way to the experts."""

import torch

from cndpm.experts.chunks import Samples
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings


def learned(**options) -> CNDPM:
    learner = CNDPM(CNDPMSettings(memory_size=50, pool_features=20), input_shape=(2,), **options)
    x = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
    learner.learn_block(x, (x[:, 0] > 0).long(), 10)
    return learner


def test_wild_rows_reach_neither_experts_nor_memory():
    learner = learned()
    before = learner.counts.sum().item() + len(learner.memory)
    learner.learn(torch.tensor([[0.0, 1e10], [0.5, 0.5]]), torch.tensor([0, 1]))
    assert learner.counts.sum().item() + len(learner.memory) == before + 1
    assert learner.describe()["n_set_aside"] == 1


def test_rows_are_shown_to_the_watch_and_counted():
    learner, without = learned(n_exemplars=40), learned()
    learner.finish()
    assert learner.watch.n_rows == 40
    assert learner.footprint().memory_samples == without.footprint().memory_samples + 40


def test_the_present_hears_what_the_experts_answer_before_they_learn(monkeypatch):
    learner = learned()
    heard, learn = [], learner.present.learn
    monkeypatch.setattr(
        learner.present, "learn", lambda samples, y, ever: (heard.append(ever), learn(samples, y, ever))
    )
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(1))
    expected = learner.predict_log_proba(x, when="any")
    learner.learn(x, torch.zeros(4, dtype=torch.long))
    torch.testing.assert_close(heard[0], expected)


def test_the_present_is_told_which_experts_are_current():
    learner = CNDPM(CNDPMSettings(memory_size=50, pool_features=20), input_shape=(2,))
    generator = torch.Generator().manual_seed(0)
    for centre, label in ((0.0, 0), (30.0, 1)):
        x = torch.randn(400, 2, generator=generator) + centre
        learner.learn_block(x, torch.full((400,), label), 10)
    assert learner.n_experts == 2
    assert learner.present.current(Samples(x[:1]), 2, 2).tolist() == [0.0, 1.0]
