"""A journal brings any number of learners to where the last step that is done has left the first."""

from types import SimpleNamespace

import torch

from cndpm.estimators.journal import Journal, Step


class Total:
    """Adds up numbers, and goes on with the tensor that a state gives it."""

    def __init__(self):
        self.total = torch.zeros(1)
        self.events, self.memory = SimpleNamespace(n_samples=0, share=()), SimpleNamespace(size=0)

    def state_dict(self):
        return {"total": self.total.clone()}

    def load_state_dict(self, state):
        self.total = state["total"]


def adding(number):
    return Step(lambda learner, _: learner.total.add_(number))


def test_steps_are_done_again_as_often_as_wanted_without_one_that_was_broken_off():
    learner = Total()
    learner.total += 1
    journal = Journal(learner)
    journal.begin(adding(10), {})
    journal.commit(learner, seconds=0.0)
    journal.begin(adding(100), {})
    assert journal.is_pending
    restored = [Total(), Total()]
    for one in restored:
        journal.restore(one)
    assert [float(one.total) for one in restored] == [11, 11]
