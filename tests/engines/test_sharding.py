"""Sharded learning, by an engine that works in this process and can be made to fail; one test starts real workers."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor, merge
from cndpm.checks.case import same
from cndpm.engines import LostWorkerError, ShardedError, fit_sharded, local, predict_sharded, sharding
from cndpm.engines.engine import Attempt, Engine
from cndpm.engines.sharding import _identity, _ShardTask
from cndpm.engines.shards import ArrayShard

QUICK = {"features": "identity", "representations": "one"}


class Here(Engine):
    """Carries out tasks one after another; loses the worker of a task when told to."""

    def __init__(self, *, retries=2):
        super().__init__(1, retries=retries)
        self.begun = []

    def _begin(self, function, task, number):
        self.begun.append((function.__name__, number))
        return partial(function, task, Attempt(number))

    def _wait(self, calls, told):
        (call,) = calls
        try:
            return [(call, call())]
        except KeyboardInterrupt:  # of `dying`
            return [(call, LostWorkerError("lost"))]

    def _stop(self, call):
        pass


def rows(n, seed=0):
    y = np.arange(n) // 10 % 3
    X = np.random.default_rng(seed).normal(size=(n, 4)) + 5 * y[:, None]
    return X.astype(np.float32), y


def model(**parameters):
    return CNDPMClassifier(memory_size=30, n_exemplars=0, settings=QUICK, random_state=0, **parameters)


def shards(n=3, size=120):
    X, y = rows(n * size)
    return [(X[i * size : (i + 1) * size], y[i * size : (i + 1) * size]) for i in range(n)]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(sharding, "_PIECE_BATCHES", 4)


def state(fitted):
    return fitted.learner_.state_dict()


def by_hand(parts):
    first = model().partial_fit(parts[0][0][:40], parts[0][1][:40])
    others = [first.with_same_representation() for _ in parts[1:]]
    for each, (X, y) in zip([first, *others], parts, strict=True):
        for start in range(40 if each is first else 0, len(X), 40):
            each.partial_fit(X[start : start + 40], y[start : start + 40])
    return [first, *others]


def test_shards_become_the_model_that_merging_them_by_hand_gives():
    parts = shards()
    fitted = fit_sharded(model(), parts, engine=Here())
    assert same(state(fitted), state(merge(by_hand(parts))))


def test_everything_is_counted_once():
    fitted = fit_sharded(model(), shards(), engine=Here())
    assert round(fitted.counts_.sum()) + len(fitted.learner_.memory) == 360
    assert fitted.learner_.events.n_samples == 360
    X, y = rows(300, seed=9)
    assert (fitted.predict(X) == y).mean() > 0.99


def test_the_model_that_is_given_does_not_change_and_goes_on_where_it_has_learned():
    unfitted = model()
    fit_sharded(unfitted, shards(2), engine=Here())
    assert not hasattr(unfitted, "learner_")
    X, y = rows(90, seed=5)
    before = model().fit(X, y)
    kept = state(before)
    after = fit_sharded(before, shards(2), engine=Here())
    assert same(state(before), kept)
    assert after.learner_.events.n_samples == 90 + 240


def test_many_shards_are_merged_by_a_tree():
    engine = Here()
    fitted = fit_sharded(model(), shards(9, size=40), engine=engine)
    assert [name for name, _ in engine.begun].count("_merge_files") == 3
    assert fitted.learner_.events.n_samples == 360


@pytest.fixture
def dying(monkeypatch):
    """Has a worker die after so many pieces, once."""

    def after(n):
        learn, left = sharding._learn, [n]

        def learning(*args):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            learn(*args)

        monkeypatch.setattr(sharding, "_learn", learning)

    return after


@pytest.mark.parametrize("n_pieces", [2, 6])
def test_a_worker_that_dies_costs_its_shard_since_the_last_checkpoint(dying, n_pieces, tmp_path):
    expected = fit_sharded(model(), shards(), engine=Here())
    dying(n_pieces)
    engine = Here()
    fitted = fit_sharded(model(), shards(), engine=engine, folder=tmp_path, checkpoint_seconds=0)
    assert same(state(fitted), state(expected))
    assert ("_learn_shard", 1) in engine.begun
    assert not list(tmp_path.glob("*-at-*"))


def test_a_call_that_was_broken_off_goes_on_where_it_was(dying, tmp_path, monkeypatch):
    expected = fit_sharded(model(), shards(), engine=Here())
    with monkeypatch.context() as broken:
        learn, n = sharding._learn, []

        def learning(*args):
            n.append(1)
            if len(n) == 6:
                raise MemoryError
            learn(*args)

        broken.setattr(sharding, "_learn", learning)
        with pytest.raises(MemoryError):
            fit_sharded(model(), shards(), engine=Here(), folder=tmp_path, checkpoint_seconds=0)
    n_learned = []
    monkeypatch.setattr(sharding, "_learn", lambda *args: n_learned.append(1) or learn(*args))
    assert same(state(fit_sharded(model(), shards(), engine=Here(), folder=tmp_path)), state(expected))
    assert len(n_learned) == 9 - 5  # three shards of three pieces, five of which were kept


def test_a_folder_of_other_shards_is_refused(tmp_path):
    fit_sharded(model(), shards(), engine=Here(), folder=tmp_path)
    with pytest.raises(ShardedError, match="Name another folder"):
        fit_sharded(model(), shards(size=130), engine=Here(), folder=tmp_path)
    with pytest.raises(ShardedError, match="Name another folder"):
        fit_sharded(model(batch_size=20), shards(), engine=Here(), folder=tmp_path)
    with pytest.raises(ValueError, match="at least one shard"):
        fit_sharded(model(), [])


def test_regressors_and_densities_are_sharded():
    X, _ = rows(120)
    regressor = CNDPMRegressor(memory_size=30, n_exemplars=0, settings=QUICK, random_state=0)
    fitted = fit_sharded(regressor, [(X[:60], X[:60, 0]), (X[60:], X[60:, 0])], engine=Here())
    assert fitted.score(X, X[:, 0]) > 0.9
    density = CNDPMDensity(memory_size=30, n_exemplars=0, random_state=0)
    assert np.isfinite(fit_sharded(density, [X[:60], X[60:]], engine=Here()).score_samples(X)).all()


def test_a_first_shard_that_is_too_short_for_an_expert_is_slept_on():
    X, y = rows(120)
    fitted = fit_sharded(model(), [(X[:10], y[:10]), (X[10:], y[10:])], engine=Here())
    assert fitted.learner_.events.n_samples == 120


def test_answers_of_shards_are_those_of_the_model():
    X, y = rows(200)
    fitted = model().fit(X, y)
    first, second = predict_sharded(fitted, [(X[:90], y[:90]), X[90:]], engine=Here())
    assert np.array_equal(np.concatenate([first, second]), fitted.predict(X))
    (proba,) = predict_sharded(fitted, [X], engine=Here(), method="predict_proba")
    assert np.allclose(proba, fitted.predict_proba(X), rtol=0, atol=1e-12)


def test_real_workers_give_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.undo()  # workers have pieces of their own size
    parts = shards(2)
    fitted = fit_sharded(model(), parts, workers=2, folder=tmp_path)
    assert same(state(fitted), state(fit_sharded(model(), parts, engine=Here())))


def test_the_same_shard_twice_and_what_is_no_list_are_refused():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    parts = [(X[:30], y[:30]), (X[30:], y[30:]), (X[:30].copy(), y[:30])]
    with pytest.raises(ValueError, match="shards 0 and 2 are the same"):
        fit_sharded(CNDPMClassifier(), parts)
    for shards in ("data.csv", Path("data.csv"), 3):
        with pytest.raises(TypeError, match="shards are a list of arrays or files"):
            fit_sharded(CNDPMClassifier(), shards)


def test_shards_are_told_apart_by_rows_and_by_labels():
    X = np.zeros((2, 2))
    shards = [ArrayShard(X, [0, 1]), ArrayShard(X, [1, 0]), ArrayShard(X + 1, [0, 1]), ArrayShard(X, None)]
    assert len(set(map(_identity, shards))) == 4
    assert _identity(ArrayShard(X.copy(), [0, 1])) == _identity(shards[0])


def test_the_newest_checkpoint_of_a_shard_is_the_one_with_most_rows(tmp_path):
    task = _ShardTask(3, ArrayShard(np.zeros((1, 1)), None), tmp_path, tmp_path / "begun", 0, 60.0)
    for name in ("shard-00003-at-900", "shard-00003-at-1000", "shard-00004-at-5000"):
        (tmp_path / f"{name}.cndpm").touch()
    assert [n for n, _ in task.checkpoints()] == [900, 1000]


def test_a_checkpoint_takes_the_place_of_the_one_before(tmp_path):
    model = CNDPMDensity(random_state=0).fit(np.random.default_rng(0).normal(size=(60, 2)))
    task = _ShardTask(0, ArrayShard(np.zeros((1, 1)), None), tmp_path, tmp_path / "begun", 0, 60.0)
    for n_rows in (10, 20):
        task.checkpoint(model, n_rows)
    assert [n for n, _ in task.checkpoints()] == [20]


def test_an_engine_that_was_made_for_a_call_is_closed_and_one_that_was_given_is_not(monkeypatch):
    closed = []
    monkeypatch.setattr(Here, "close", lambda engine: closed.append(engine))
    monkeypatch.setattr(local, "make_engine", lambda *_, **__: made)
    given, made = Here(), Here()
    X = np.random.default_rng(0).normal(size=(60, 2))
    for engine in ("local", given):
        fit_sharded(CNDPMDensity(memory_size=30, random_state=0), [X], engine=engine)
    assert closed == [made]
