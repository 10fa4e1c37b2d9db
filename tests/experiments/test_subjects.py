"""The subjects do what is timed, and the stopwatch takes the best."""

import pytest
import torch

from cndpm.experiments.subjects import LearnerSubject, OracleSubject, best_of, one_task
from cndpm.learners.settings import CNDPMSettings

SETTINGS = CNDPMSettings(
    hidden=4,
    hidden_growth=2,
    latent_dim=2,
    n_latent_samples=2,
    memory_size=10,
    density_sleep_steps=1,
    predictor_sleep_steps=1,
    log_alpha=-1e9,
)


@pytest.mark.parametrize("kind", [LearnerSubject, OracleSubject])
def test_one_expert_takes_a_batch_whole_and_nothing_is_new(kind):
    subject = kind(SETTINGS)
    of = subject.learner if kind is LearnerSubject else subject.oracle
    for _ in range(3):
        subject.found()
    before = torch.as_tensor(of.counts).clone()
    subject.learn(*one_task(8))
    gained = torch.as_tensor(of.counts) - before
    assert gained.sum() == pytest.approx(8)
    assert gained.max() > 7.9
    assert len(of.memory) == 0


def test_the_stopwatch_takes_the_fastest_call():
    times = iter([0.0, 3.0, 3.0, 4.0, 4.0, 9.0])
    assert best_of(3, lambda: None, lambda: next(times)) == 1.0
