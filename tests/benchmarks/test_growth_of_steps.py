"""Crowds and batches are as large as the report says, and one expert learns."""

import pytest
import torch
from benchmarks.growth_of_steps import growth_by_batch, growth_by_experts, repeated, wake_seconds
from benchmarks.subjects import AWAKE, LearnerSubject, images

from cndpm.model.settings import CNDPMSettings

SMALL = CNDPMSettings.paper(hidden=4, hidden_growth=2, latent_dim=2, n_latent_samples=2)


def test_wake_steps_are_timed_with_as_many_experts_as_asked_for():
    class Ticking:
        """Every expert costs a second."""

        n_experts, now = 0, 0.0

        def found(self):
            self.n_experts += 1

        def learn(self, x, y):
            assert (x.shape, y.shape) == ((10, 1, 28, 28), (10,))
            self.now += self.n_experts

    subject = Ticking()
    assert wake_seconds(subject, (1, 5), n_steps=2, clock=lambda: subject.now) == [1.0, 5.0]


@pytest.mark.parametrize(("sharing", "kind"), [(True, "untrained"), (False, "separate")])
def test_every_number_of_experts_is_reported_with_the_memory_of_the_largest(sharing, kind):
    report = growth_by_experts(SMALL, (1, 3), sharing=sharing)
    names = {f"wake_step_ms_{n}_{kind}_experts" for n in (1, 3)} | {f"peak_resident_mib_3_{kind}_experts"}
    assert set(report) == names
    assert all(value > 0 for value in report.values())


def test_experts_that_are_repeated_answer_alike_and_the_last_one_learns():
    subject = repeated(LearnerSubject(SMALL.changed(memory_size=10, sharing=False, **AWAKE)), 5)
    x, y = images(10)
    before = subject.learner.counts
    subject.learn(x, y)
    assert subject.learner.n_experts == 5
    assert torch.equal(subject.learner.counts - before, torch.zeros(5))  # 1e300 and ten more are 1e300
    densities = subject.learner.bank.log_density(next(subject.learner.bank.open(x)))
    torch.testing.assert_close(densities[:, :4], densities[:, :1].expand(-1, 4))
    assert not torch.equal(densities[:, 4], densities[:, 0])


def test_every_batch_size_is_reported():
    report = growth_by_batch(SMALL, (1, 4), n_experts=2)
    assert set(report) == {"wake_step_ms_batch_of_1", "wake_step_ms_batch_of_4"}
