"""What every engine does with tasks, whatever their workers are: order, limits, retries, failures and messages."""

import pytest

from cndpm.engines.engine import Engine, LostWorkerError


class Here(Engine):
    """Carries out tasks in this process, the newest first; keeps what it began, what runs and what it stopped."""

    def __init__(self, n_workers, **options):
        super().__init__(n_workers, **options)
        self.begun, self.stopped, self.running, self.most = [], [], [], 0

    def _begin(self, function, task, number):
        self.begun.append((task, number))
        self.running.append((task, number, function))
        self.most = max(self.most, len(self.running))
        return self.running[-1]

    def _wait(self, calls, told):
        call = self.running.pop()
        task, number, function = call
        told(call, f"about {task}")
        return [(call, function(task, number))]

    def _stop(self, call):
        self.stopped.append(call[0])


def square(task, number):
    return task**2


def lost(task, number):
    return LostWorkerError(f"{task} was lost")


def lost_once(task, number):
    return LostWorkerError("lost") if number == 0 else (task, number)


def fails_at_two(task, number):
    return ValueError("two") if task == 2 else task


def test_results_are_in_the_order_of_tasks_and_no_more_run_than_there_are_workers():
    engine = Here(2)
    assert engine.results(square, [1, 2, 3, 4, 5]) == [1, 4, 9, 16, 25]
    assert engine.most == 2


def test_a_lost_task_is_begun_again_with_its_number_and_not_for_ever():
    assert Here(1).results(lost_once, ["a", "b"]) == [("a", 1), ("b", 1)]
    engine = Here(1, retries=2)
    with pytest.raises(LostWorkerError, match="a was lost"):
        engine.results(lost, ["a"])
    assert engine.begun == [("a", 0), ("a", 1), ("a", 2)]


def test_a_failure_stops_what_is_running_and_begins_nothing_more():
    engine = Here(2)
    with pytest.raises(ValueError, match="two"):
        engine.results(fails_at_two, [1, 2, 3, 4])
    assert engine.begun == [(1, 0), (2, 0)]
    assert engine.stopped == [1]


def test_messages_are_told_with_the_place_of_their_task():
    heard = []
    Here(3).results(square, [7, 8, 9], told=lambda index, text: heard.append((index, text)))
    assert sorted(heard) == [(0, "about 7"), (1, "about 8"), (2, "about 9")]


def test_an_engine_has_a_worker():
    with pytest.raises(ValueError, match="at least one worker; got 0"):
        Here(0)
