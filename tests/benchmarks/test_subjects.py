"""The subjects do what is timed, and the stopwatch takes the best."""

import pytest
import torch
from benchmarks.subjects import AWAKE, LearnerSubject, OracleSubject, best_of, images

from cndpm.model.settings import CNDPMSettings

SETTINGS = CNDPMSettings.paper(memory_size=10, n_latent_samples=2, **AWAKE)


@pytest.mark.parametrize("kind", [LearnerSubject, OracleSubject])
def test_the_newest_expert_takes_a_batch_whole_and_nothing_is_new(kind):
    subject = kind(SETTINGS)
    of = subject.learner if kind is LearnerSubject else subject.oracle
    for _ in range(3):
        subject.found()
    experts = of.bank.experts if kind is LearnerSubject else of.experts
    before = [expert.density.code.bias.detach().clone() for expert in experts]
    subject.learn(*images(8))
    moved = [not torch.equal(old, expert.density.code.bias) for old, expert in zip(before, experts, strict=True)]
    assert moved == [False, False, True]
    assert len(of.memory) == 0


def test_the_stopwatch_takes_the_fastest_call():
    times = iter([0.0, 3.0, 3.0, 4.0, 4.0, 9.0])
    assert best_of(3, lambda: None, lambda: next(times)) == 1.0
