"""What is measured, against learners whose answers are known."""

import math

import pytest
import torch

from cndpm.experiments.evaluation import TestSet, dissect, evaluate
from cndpm.learner import Footprint, Learner, LearnerSettings, Prepared
from cndpm.streams import Task


class Table(Learner):
    """Answers by tables indexed by x itself: x is (B, 1), the number of a row."""

    Settings = LearnerSettings

    def __init__(self, gate, answers):
        super().__init__(LearnerSettings(), input_shape=(1,), n_classes=answers.shape[-1])
        self.experts = self
        self.gate, self.answers = gate, answers

    def expert_log_proba(self, x):
        return self.gate[x[:, 0].long()]

    def expert_predict_log_proba(self, x):
        return self.answers[x[:, 0].long()]

    def predict_log_proba(self, x):
        return (self.expert_log_proba(x)[:, :, None] + self.expert_predict_log_proba(x)).logsumexp(1)

    def log_prob(self, x):
        return -x[:, 0] * math.log(2)

    def learn(self, x, y): ...

    def footprint(self):
        return Footprint(0, 0, n_experts=self.gate.shape[1])

    def state_dict(self):
        return {}

    def load_state_dict(self, state): ...


def rows(*numbers):
    return torch.tensor(numbers, dtype=torch.float32)[:, None]


def one_hot_log(indices, n):
    return torch.nn.functional.one_hot(torch.tensor(indices), n).float().mul(8).log_softmax(-1)


def two_tasks():
    """Rows 0 to 3 are task 0 (classes 0, 1), rows 4 to 7 task 1 (classes 2, 3)."""
    first = Task("0/1", (0, 1), rows(0, 1, 2, 3), torch.tensor([0, 0, 1, 1]))
    second = Task("2/3", (2, 3), rows(4, 5, 6, 7), torch.tensor([2, 2, 3, 3]))
    return TestSet((first, second), labelled=True, batch_size=3)


def test_accuracy_is_pooled_over_samples_and_given_by_task():
    test = two_tasks()
    uneven = TestSet((test.tasks[0], Task("one", (2,), rows(4), torch.tensor([2]))), labelled=True)
    answers = one_hot_log([[0], [0], [1], [0], [3], [2], [3], [3]], 4)
    evaluation = evaluate(Table(torch.zeros(8, 1), answers), uneven)
    assert evaluation.task_accuracy == [75.0, 0.0]
    assert evaluation.accuracy == pytest.approx(60.0)


def test_bits_per_dimension_divide_by_the_number_of_dimensions():
    task = Task("t", (0,), rows(2, 4), torch.zeros(2, dtype=torch.long))
    evaluation = evaluate(Table(torch.zeros(8, 1), torch.zeros(8, 1, 4)), TestSet((task,), labelled=False))
    assert evaluation.bits_per_dim == pytest.approx(3.0)
    assert evaluation.accuracy is None


def test_dissection_separates_the_gate_from_the_classifiers():
    # Expert 0 knows task 0 but for one sample, expert 1 all of task 1; the gate sends row 3 and row 7 to the wrong one.
    gate = one_hot_log([0, 0, 0, 1, 1, 1, 1, 0], 2)
    answers = one_hot_log([[0, 2], [0, 2], [0, 2], [1, 2], [0, 2], [0, 2], [0, 3], [0, 3]], 4)
    dissection = dissect(Table(gate, answers), two_tasks(), [0, 1])
    assert dissection.expert_tasks == [0, 1]
    assert dissection.gating_accuracy == pytest.approx(75.0)
    assert dissection.classifier_accuracy == [75.0, 100.0]


def test_several_experts_of_one_task_answer_together():
    # Experts 0 and 2 share task 0: both are right to choose there.
    gate = one_hot_log([0, 0, 2, 2, 1, 1, 1, 1], 3)
    answers = one_hot_log([[0, 2, 1]] * 4 + [[0, 2, 1]] * 2 + [[0, 3, 1]] * 2, 4)
    dissection = dissect(Table(gate, answers), two_tasks(), [0, 1])
    assert dissection.expert_tasks == [0, 1, 0]
    assert dissection.gating_accuracy == pytest.approx(100.0)
    assert dissection.classifier_accuracy == [100.0, 100.0]


def test_a_task_without_an_expert_of_its_own_is_answered_by_the_one_with_the_largest_share():
    gate = torch.zeros(8, 1)
    answers = one_hot_log([[0]] * 4 + [[2]] * 4, 4)
    dissection = dissect(Table(gate, answers), two_tasks(), [0, 1])
    assert dissection.classifier_accuracy == [50.0, 50.0]
    assert dissection.gating_accuracy == pytest.approx(100.0)


def test_tasks_that_have_not_appeared_are_left_out():
    dissection = dissect(Table(torch.zeros(8, 1), one_hot_log([[0]] * 8, 4)), two_tasks(), [0])
    assert dissection.classifier_accuracy == [50.0, None]


def test_a_mixture_without_experts_is_not_dissected_and_has_no_density():
    empty = Table(torch.zeros(8, 0), torch.zeros(8, 0, 4))
    assert dissect(empty, two_tasks(), [0]) is None
    assert evaluate(empty, TestSet(two_tasks().tasks, labelled=False)).bits_per_dim is None


def test_a_subsample_is_the_same_every_time_and_keeps_every_task():
    test = two_tasks()
    a, b = test.subsample(4, seed=1), test.subsample(4, seed=1)
    assert [len(task.x) for task in a.tasks] == [2, 2]
    assert all(torch.equal(p.x, q.x) and torch.equal(p.y, q.y) for p, q in zip(a.tasks, b.tasks, strict=True))
    assert all(set(p.x[:, 0].tolist()) <= set(q.x[:, 0].tolist()) for p, q in zip(a.tasks, test.tasks, strict=True))


def test_a_subsample_is_another_for_another_seed_and_larger_tasks_give_more_to_it():
    large = Task("large", (0,), rows(*range(300)), torch.zeros(300, dtype=torch.long))
    small = Task("small", (0,), rows(*range(100)), torch.zeros(100, dtype=torch.long))
    first, second = (TestSet((large, small), labelled=True).subsample(40, seed) for seed in (0, 1))
    assert [len(task.x) for task in first.tasks] == [30, 10]
    assert not torch.equal(first.tasks[0].x, second.tasks[0].x)


def test_evaluation_in_chunks_equals_evaluation_at_once():
    answers = torch.randn(8, 2, 4, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    gate = torch.randn(8, 2, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    test = two_tasks()
    whole = TestSet(test.tasks, labelled=True, batch_size=100)
    assert evaluate(Table(gate, answers), test) == evaluate(Table(gate, answers), whole)
    assert dissect(Table(gate, answers), test, [0, 1]) == dissect(Table(gate, answers), whole, [0, 1])


def test_answers_of_a_prepared_test_set_are_asked_by_what_the_learner_made_of_each_chunk():
    class Prepares(Table):
        def prepare(self, x):
            return Prepared(x, kept=None)

        def expert_log_proba(self, prepared):
            return super().expert_log_proba(prepared.x)

        def expert_predict_log_proba(self, prepared):
            return super().expert_predict_log_proba(prepared.x)

        def predict_log_proba(self, prepared):
            assert len(prepared.x) <= 3
            return super().predict_log_proba(prepared)

    answers = torch.randn(8, 2, 4, generator=torch.Generator().manual_seed(0)).log_softmax(-1)
    gate = torch.randn(8, 2, generator=torch.Generator().manual_seed(1)).log_softmax(-1)
    learner, plain, test = Prepares(gate, answers), Table(gate, answers), two_tasks()
    assert evaluate(learner, test.prepare(learner)) == evaluate(plain, test)
    assert dissect(learner, test.prepare(learner), [0, 1]) == dissect(plain, test, [0, 1])


@pytest.mark.parametrize("tasks", [(), (Task("real", (), rows(1), torch.tensor([0.5])),)])
def test_without_test_data_or_with_real_valued_targets_nothing_is_measured(tasks):
    learner = Table(torch.zeros(8, 1), torch.zeros(8, 1, 4))
    test = TestSet(tasks, labelled=True).prepare(learner)
    assert evaluate(learner, test).accuracy is None
    assert dissect(learner, test, [0]) is None


def test_a_learner_that_is_no_mixture_is_not_dissected():
    learner = Table(torch.zeros(8, 1), torch.zeros(8, 1, 4))
    learner.experts = None
    assert dissect(learner, two_tasks(), [0]) is None


def test_a_learner_without_density_says_so():
    class Plain(Table):
        log_prob = Learner.log_prob

    task = Task("t", (0,), rows(1), torch.zeros(1, dtype=torch.long))
    with pytest.raises(NotImplementedError, match="Plain models no density"):
        evaluate(Plain(torch.zeros(8, 1), torch.zeros(8, 1, 4)), TestSet((task,), labelled=False))


def test_a_density_of_features_gives_no_bits_per_dimension():
    class OfFeatures(Table):
        @property
        def describes_x(self):
            return False

    learner = OfFeatures(torch.zeros(4, 1), torch.zeros(4, 1, 2))
    test = TestSet((Task("a", (0,), rows(1, 2), torch.zeros(2, dtype=torch.long)),), labelled=False)
    assert evaluate(learner, test).bits_per_dim is None


def test_test_data_are_asked_about_as_if_any_time_were_equally_likely():
    asked = []

    class Asked(Table):
        def predict_for(self, x, when, *, values=False):
            asked.append(when)
            return self.predict_log_proba(x)

    evaluate(Asked(torch.zeros(8, 1), one_hot_log([[0]] * 8, 4)), two_tasks())
    assert set(asked) == {"any"}


def test_who_is_in_charge_of_a_task_is_told_by_its_labels_where_the_gate_does_not_know():
    gate = torch.zeros(8, 2).log_softmax(1)
    answers = one_hot_log([[0, 2]] * 2 + [[1, 3]] * 2 + [[0, 2]] * 2 + [[1, 3]] * 2, 4)
    assert dissect(Table(gate, answers), two_tasks(), [0, 1]).expert_tasks == [0, 1]
    assert dissect(Table(gate, answers.flip(1)), two_tasks(), [0, 1]).expert_tasks == [1, 0]
