"""Calls are whole or have no effect; threads take turns; nothing of that is copied."""

import copy
import inspect
import os
import pickle
import threading

import numpy as np
import pytest
import torch
from torture.call_worker import fingerprint

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.estimators import guarded
from cndpm.estimators.guarded import NumericalError
from cndpm.model.cndpm import CNDPM

ESTIMATORS = [CNDPMClassifier, CNDPMRegressor, CNDPMDensity]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)) + 5 * (np.arange(200) // 50 % 2)[:, None]
Y = np.arange(200) // 50 % 2


def data(estimator, part):
    return (X[part],) if estimator is CNDPMDensity else (X[part], Y[part])


def fitted(estimator, n=100, **parameters):
    model = estimator(memory_size=20, random_state=0, settings={"features": "identity"}, **parameters)
    return model.partial_fit(*data(estimator, slice(0, n)))


UNGUARDED = {
    "fit_predict", "get_metadata_routing", "get_params", "learner_", "load", "n_features_in_", "paper", "save", "score",
    "set_params",
}  # fmt: skip
"""They change no model and do not ask one, are made of methods that are guarded, or guard themselves."""


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_public_method_is_guarded(estimator):
    for name in dir(estimator):
        if (
            name.startswith("_")
            or name in (*UNGUARDED, *estimator._get_param_names())
            or (name.startswith("set_") and name.endswith("_request"))
        ):
            continue
        found = inspect.getattr_static(estimator, name)
        function = found.fget if isinstance(found, property) else getattr(found, "fn", found)
        assert getattr(function, "is_guarded", False), f"mark {name} with @answers or @changes"


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("call", ["partial_fit", "fit", "consolidate", "prune"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
def test_a_call_that_is_broken_off_in_a_batch_has_changed_nothing_and_says_so(estimator, call, error, monkeypatch):
    model = fitted(estimator)
    before, arguments = fingerprint(model), () if call == "consolidate" else data(estimator, slice(100, 160))
    learn, n_batches = CNDPM._learn, 0

    def break_off(self, batch):
        nonlocal n_batches
        learn(self, batch)
        n_batches += 1
        if n_batches == 3:
            raise error("broken off")

    def consolidate(self):
        self.settle()
        self.memory.clear()
        raise error("broken off")

    def prune(self, *_, **__):
        self.bank.remove(0, into=1)
        raise error("broken off")

    with monkeypatch.context() as patched, pytest.raises(error) as raised:
        patched.setattr(CNDPM, "_learn", break_off)
        patched.setattr(CNDPM, "consolidate", consolidate)
        patched.setattr(CNDPM, "prune", prune)
        getattr(model, call)(*arguments)
    assert any("has changed nothing" in note for note in raised.value.__notes__)
    assert fingerprint(model) == before
    again = fitted(estimator)
    assert fingerprint(model.partial_fit(*data(estimator, slice(160, 200)))) == fingerprint(
        again.partial_fit(*data(estimator, slice(160, 200)))
    )


def test_one_more_exception_while_undoing_is_survived(monkeypatch):
    model = fitted(CNDPMClassifier)
    before = fingerprint(model)
    learn, new_learner = CNDPM._learn, CNDPMClassifier._new_learner

    def break_off(self, batch):
        learn(self, batch)
        raise KeyboardInterrupt

    def impatient(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(CNDPM, "_learn", break_off)
        patched.setattr(CNDPMClassifier, "_new_learner", impatient)
        model.partial_fit(X[100:130], Y[100:130])
    assert CNDPMClassifier._new_learner is new_learner
    assert model.predict(X[:3]).shape == (3,)  # put right by whoever asks next
    assert fingerprint(model) == before


def test_an_exception_after_everything_was_learned_says_that_it_was(monkeypatch):
    model, reference = (fitted(CNDPMClassifier) for _ in range(2))
    run, n_runs = guarded.Turns.run, 0

    def late(self, function):
        nonlocal n_runs
        result, n_runs = run(self, function), n_runs + 1
        if n_runs == 1:  # learning; the turn of the call ends later
            raise KeyboardInterrupt
        return result

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt) as raised:
        patched.setattr(guarded.Turns, "run", late)
        model.partial_fit(X[100:130], Y[100:130])
    assert any("was done when this arrived" in note for note in raised.value.__notes__)
    assert fingerprint(model) == fingerprint(reference.partial_fit(X[100:130], Y[100:130]))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fit_forgets_the_old_model_only_when_the_new_one_is_there(estimator):
    model = fitted(estimator)
    before = fingerprint(model)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((4, 7), np.nan), *([0] * 4,) * (estimator is not CNDPMDensity))
    assert fingerprint(model) == before
    assert model.n_features_in_ == 3
    model.fit(X[:50, :2], *(Y[:50],) * (estimator is not CNDPMDensity))
    assert model.n_features_in_ == 2


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_model_that_was_loaded_or_copied_forgets_as_well(estimator, tmp_path):
    model = fitted(estimator)
    model.save(tmp_path / "model")
    part = [values[:60, :2] if values.ndim > 1 else values[:60] for values in data(estimator, slice(0, 200))]
    expected = fingerprint(estimator(**model.get_params(deep=False)).fit(*part))
    for other in (estimator.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), model):
        assert fingerprint(other.fit(*part)) == expected
        assert fingerprint(other.fit(*part)) == expected


def test_a_generator_moves_on_only_when_something_was_learned():
    random, twin = np.random.RandomState(3), np.random.RandomState(3)
    model = CNDPMDensity(random_state=random)
    with pytest.raises(ValueError, match="infinity"):
        model.fit([[np.inf]])
    assert random.get_state()[2] == twin.get_state()[2]
    model.fit(X)
    assert model._seed == twin.randint(np.iinfo(np.int32).max)
    assert random.randint(1000) == twin.randint(1000)


def test_what_is_done_to_the_learner_directly_is_not_lost_when_a_later_call_is_undone(monkeypatch):
    model = fitted(CNDPMClassifier)
    model.partial_fit(X[100:110], Y[100:110])
    model.learner_.learn_block(torch.tensor(X[110:120]).float(), torch.tensor(Y[110:120]), 10)
    before, learn = fingerprint(model), CNDPM._learn

    def break_off(self, batch):
        learn(self, batch)
        raise MemoryError

    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(CNDPM, "_learn", break_off)
        model.partial_fit(X[120:130], Y[120:130])
    assert fingerprint(model) == before


def test_an_answer_in_the_middle_of_a_batch_of_the_same_thread_is_refused(monkeypatch):
    model, learn, said = fitted(CNDPMClassifier), CNDPM._learn, []

    def ask(self, batch):
        learn(self, batch)
        for call in (lambda: model.predict(X), lambda: model.partial_fit(X, Y)):
            with pytest.raises(RuntimeError) as refused:
                call()
            said.append(str(refused.value))

    with monkeypatch.context() as patched:
        patched.setattr(CNDPM, "_learn", ask)
        model.partial_fit(X[:5], Y[:5])
    assert "in the middle of a batch" in said[0]
    assert "just changing this model" in said[1]


def test_copies_hold_neither_turns_nor_a_journal():
    model = fitted(CNDPMClassifier)
    model.partial_fit(X[100:110], Y[100:110])
    assert {"_lines", "_journal"} < set(vars(model))
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert not {"_lines", "_journal"} & set(vars(twin))
        assert fingerprint(twin) == fingerprint(model)


def test_an_answer_that_was_interrupted_leaves_no_half_made_caches(monkeypatch):
    model = fitted(CNDPMClassifier)
    before, learner = model.predict_proba(X[:5]), model.learner_
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(CNDPM, "predict_log_proba", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        model.predict(X[:5])
    assert model.learner_ is not learner
    assert np.array_equal(model.predict_proba(X[:5]), before)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_that_forks_in_the_middle_of_another_threads_batch_goes_on_with_what_was_whole(monkeypatch):
    model, learn, reached, goes_on = fitted(CNDPMClassifier), CNDPM._learn, threading.Event(), threading.Event()
    model.partial_fit(X[100:110], Y[100:110])
    before, parent = fingerprint(model), os.getpid()

    def halfway(self, batch):
        learn(self, batch)
        if batch is not None and os.getpid() == parent and not reached.is_set():
            reached.set()
            goes_on.wait()

    monkeypatch.setattr(CNDPM, "_learn", halfway)
    writer = threading.Thread(target=model.partial_fit, args=(X[110:130], Y[110:130]))
    writer.start()
    reached.wait()
    child = os.fork()
    if not child:
        model.predict(X[:5])
        os._exit(0 if fingerprint(model) == before else 1)
    assert os.waitpid(child, 0)[1] == 0
    goes_on.set()
    writer.join()
    assert fingerprint(model) != before


def test_numbers_that_cannot_be_computed_with_are_refused_by_name(monkeypatch):
    model = fitted(CNDPMClassifier)
    before = fingerprint(model)

    def fail(*_):
        torch.linalg.cholesky(-torch.eye(2))

    with monkeypatch.context() as patched, pytest.raises(NumericalError, match="partial_fit met numbers"):
        patched.setattr(CNDPM, "_learn", fail)
        model.partial_fit(X[:5], Y[:5])
    assert fingerprint(model) == before


def test_a_thread_that_waits_has_its_turn_between_two_batches():
    model, answered = fitted(CNDPMClassifier, batch_size=1), threading.Event()
    asked = threading.Thread(target=lambda: (model.predict(X[:1]), answered.set()))
    seen = []

    def between(learner, batch, learn=CNDPM._learn):
        learn(learner, batch)
        if batch is None:
            return
        if not seen:
            asked.start()
            while len(model._lines.answering.line) < 2:
                pass
        seen.append(answered.is_set())

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(CNDPM, "_learn", between)
        model.partial_fit(X[100:110], Y[100:110])
    assert seen.index(True) == 1


def test_an_exception_that_leaves_gradients_switched_off_does_not_leave_them_so(monkeypatch):
    x = np.random.default_rng(0).normal(size=(40, 3))
    model = CNDPMClassifier(memory_size=20, random_state=0).partial_fit(x, x[:, 0] > 0)

    def interrupted(*_: object, **__: object) -> None:
        torch.set_grad_enabled(False)  # as where an exception arrives while `no_grad` is left
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(model.learner_), "learn_block", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(x, x[:, 0] > 0)
    is_enabled = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    assert is_enabled
