"""Small versions of the attacks on calls: hostile arguments, interrupts, threads, overrides; they would notice."""

import gc
import signal
import sys
import threading
from collections import Counter

import numpy as np
import pytest
from torture.attempts import Count
from torture.call_worker import attempts as calls_of
from torture.call_worker import call, fingerprint, model_of
from torture.hostile_inputs import proper_rows
from torture.override_worker import attempts as configurations_of
from torture.threads import Stage, perform

from cndpm.estimators.guarded import Guarded
from cndpm.estimators.journal import Journal
from torture import calls, interrupts, overrides


def counted(attack, outcomes):
    count = Count(attack)
    for outcome in outcomes:
        count.add(outcome)
    return count


@pytest.mark.filterwarnings("ignore")
def test_no_hostile_call_changes_a_model_or_raises_anything_foreign(tmp_path):
    count = counted(calls.ATTACK, calls_of(11, 0, 300, tmp_path))
    assert count.lines == []
    assert count.total("accepted") > 50
    assert count.total("refused") > 100


@pytest.mark.filterwarnings("ignore")
def test_a_call_that_changes_a_model_and_raises_is_noticed(tmp_path, monkeypatch):
    model, random = model_of(3, 0)
    monkeypatch.setattr(Guarded, "_undo", lambda self: self._journal and setattr(self._journal, "is_whole", True))
    learn_block = model.learner_.learn_block

    def break_off(*arguments, **options):
        learn_block(*arguments, **options)
        raise ValueError("broken off")

    model.learner_.learn_block = break_off
    monkeypatch.setattr("torture.call_worker._METHODS", ("partial_fit",))
    monkeypatch.setattr("torture.call_worker._ASKED", ())
    monkeypatch.setattr("torture.call_worker.hostile_rows", proper_rows)
    monkeypatch.setattr("torture.call_worker.hostile_targets", lambda random, n: [0] * n)
    assert call(model, random, str(tmp_path)) == ("changed", "partial_fit: broken off")


@pytest.fixture
def interruptible():
    handler, interval = signal.getsignal(signal.SIGINT), sys.getswitchinterval()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.setswitchinterval(1e-4)
    callbacks, gc.callbacks[:] = gc.callbacks[:], []  # hypothesis' own: an exception there is lost, and warned about
    yield
    gc.callbacks[:] = callbacks
    signal.signal(signal.SIGINT, handler)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_at_any_moment_leaves_whole_calls():
    outcomes = Counter(interrupts.attempt(5, number)[0] for number in range(12))
    assert not outcomes.keys() & set(interrupts.ATTACK.bad), outcomes


@pytest.mark.usefixtures("interruptible")
def test_a_call_that_is_broken_off_before_a_line_is_undone(monkeypatch):
    monkeypatch.setattr(interrupts, "_WAYS", ("line",))  # which depends on no clock
    outcomes = Counter(interrupts.attempt(5, number)[0] for number in range(12))
    assert not outcomes.keys() & set(interrupts.ATTACK.bad), outcomes
    assert outcomes["undone"] > 6


@pytest.mark.usefixtures("interruptible")
def test_a_model_that_is_not_put_right_is_noticed(monkeypatch):
    monkeypatch.setattr(Journal, "restore", lambda self, learner: learner.load_state_dict(self._state))
    monkeypatch.setattr(interrupts, "_WAYS", ("line",))
    outcomes = {interrupts.attempt(5, number)[0] for number in range(12)}
    assert "between" in outcomes


def test_threads_that_ask_see_states_between_batches():
    stage = Stage.prepare(seed=1, number=0, n_calls=6)
    heard = perform(stage, 300, forks=False)
    assert heard.counts.keys() == {"answers", "copies"}, heard.details
    assert heard.counts["answers"] >= 300
    assert len(stage.states) > 10


def test_an_answer_of_no_state_is_noticed():
    stage = Stage.prepare(seed=1, number=1, n_calls=2)
    stage.states = {answer[::-1]: state for answer, state in stage.states.items()}
    assert perform(stage, 5, forks=False).counts["mixed"] >= 5


def test_two_writers_wait_for_each_other():
    model, random = model_of(0, 0)
    first, second = ((proper_rows(random, 40, 4), np.arange(40) % 3) for _ in range(2))
    ends = []
    for order in ((first, second), (second, first)):
        alone, _ = model_of(0, 0)
        for part in order:
            alone.partial_fit(*part)
        ends.append(fingerprint(alone))
    writers = [threading.Thread(target=model.partial_fit, args=part) for part in (first, second)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert fingerprint(model) in ends


def test_hostile_configurations_get_one_line(tmp_path):
    count = counted(overrides.ATTACK, configurations_of(3, 0, 250, tmp_path))
    assert count.lines == []
    assert count.total("refused") > 200
