"""What a learner is given and told, block by block."""

import pytest
import torch

from cndpm.experiments.teaching import teach
from cndpm.learner import Footprint, Learner, LearnerSettings, TaskBasedLearner
from cndpm.streams import load_scenario


class Heard(Learner):
    """Writes down what it is given and told."""

    Settings = LearnerSettings

    def __init__(self):
        super().__init__(LearnerSettings(), input_shape=(1, 8, 8), n_classes=10)
        self.events = []
        self.batches = []

    def learn(self, x, y):
        self.batches.append((x, y))
        if not self.events or self.events[-1] != "learn":
            self.events.append("learn")

    def predict_log_proba(self, x):
        return torch.zeros(len(x), 10).log_softmax(1)

    def footprint(self):
        return Footprint(0, 0)

    def state_dict(self):
        return {}

    def load_state_dict(self, state): ...


class Told(Heard, TaskBasedLearner):
    def begin_task(self, task):
        self.events.append(f"begin {task}")

    def end_task(self):
        self.events.append("end")


def split_digits(**options):
    return load_scenario("split-digits", **options).build(seed=0)


@pytest.mark.parametrize("start", [0, 5, 29, 40, 145, 146])
def test_every_batch_is_learned_once_from_the_start_on_and_counted(start):
    stream, learner, steps = split_digits(), Heard(), []
    teach(learner, stream, start, steps.append)
    expected = list(stream.batches(start))
    assert steps == list(range(start + 1, stream.n_batches + 1))
    assert len(learner.batches) == len(expected)
    for (x, y), batch in zip(learner.batches, expected, strict=True):
        assert torch.equal(x, batch.x) and torch.equal(y, batch.y)


def test_a_task_free_learner_is_told_nothing():
    learner = Heard()
    teach(learner, split_digits(), 0, lambda _: None)
    assert learner.events == ["learn"]


def test_a_learner_with_a_listener_is_told_where_tasks_begin_and_end():
    stream, learner = split_digits(repeats=2), Told()
    teach(learner, stream, 0, lambda _: None)
    expected = [event for task in [*range(5), *range(5)] for event in (f"begin {task}", "learn", "end")]
    assert learner.events == expected


def test_the_end_of_a_task_is_told_before_anything_is_done_after_its_last_batch():
    stream, learner, last = split_digits(), Told(), {}
    teach(learner, stream, 0, lambda step: last.update({step: learner.events[-1]}))
    assert {step for step, event in last.items() if event == "end"} == {*stream.stage_starts[1:], stream.n_batches}


@pytest.mark.parametrize(("start", "first"), [(5, "learn"), (28, "learn"), (29, "begin 1")])
def test_a_learner_resumed_within_a_task_is_not_told_again(start, first):
    learner = Told()
    teach(learner, split_digits(), start, lambda _: None)
    assert learner.events[0] == first


def test_what_after_batch_raises_ends_the_learning_there():
    learner = Heard()

    def stop(step):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        teach(learner, split_digits(), 0, stop)
    assert len(learner.batches) == 3
