"""Tasks and shards on a Ray cluster of two nodes on this machine, one of which is killed in the middle.

``make test-ray`` runs these; they are skipped where Ray is not installed.
"""

import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.engines.tasks import die_at_first, double, fail, wait_for_node
from tests.engines.test_sharding import Here

from cndpm import CNDPMClassifier
from cndpm.checks.case import same
from cndpm.engines import ShardedError, ShardError, fit_sharded, predict_sharded
from cndpm.engines.ray import RayEngine
from cndpm.experiments import read_record
from cndpm.experiments.sweep import Sweep, run_sweep
from cndpm.validation import ConfigError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'cndpm[ray]'")
pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]  # Ray leaves files open and warns of the future


@pytest.fixture
def cluster(monkeypatch):
    """Two nodes of one CPU each; this process is connected to the first."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # nodes import what this process does
    monkeypatch.setenv("RAY_worker_niceness", "0")
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    made.wait_for_nodes()
    yield made, second
    ray.shutdown()
    made.shutdown()


def rows(n, seed=0):
    y = np.arange(n) // 10 % 3
    X = np.random.default_rng(seed).normal(size=(n, 4)) + 5 * y[:, None]
    return X.astype(np.float32), y


def model():
    quick = {"features": "identity", "representations": "one"}
    return CNDPMClassifier(memory_size=30, n_exemplars=0, settings=quick, random_state=0)


def test_a_cluster_of_its_own_carries_out_tasks_and_is_stopped(tmp_path):
    engine = RayEngine(2, retries=1)
    try:
        messages = []
        assert engine.results(double, [1, 2, 3], told=lambda *told: messages.append(told)) == [2, 4, 6]
        assert sorted(messages) == [(0, "doubling 1"), (1, "doubling 2"), (2, "doubling 3")]
        with pytest.raises(ValueError, match="task x cannot be done"):
            engine.results(fail, ["x"])
        assert engine.results(die_at_first, [(tmp_path, 1)]) == [1]
        ((_, lost),) = engine.outcomes(die_at_first, [(tmp_path, 2)])
        assert "its worker was lost" in str(lost)
    finally:
        engine.close()
    assert not ray.is_initialized()


def test_tasks_of_a_node_that_dies_are_begun_again(cluster, tmp_path):
    made, second = cluster
    found = []
    tasks = [(tmp_path, name) for name in "ab"]
    waiting = threading.Thread(target=lambda: found.extend(RayEngine(2).results(wait_for_node, tasks)))
    waiting.start()
    until(lambda: len(list(tmp_path.glob("*-0"))) == 2)
    here = ray.get_runtime_context().get_node_id()
    stays, dies = sorted("ab", key=lambda name: (tmp_path / f"{name}-0").read_text() != here)
    made.remove_node(second, allow_graceful=False)
    (tmp_path / f"go-on-{stays}").touch()
    until((tmp_path / f"{dies}-1").exists)
    (tmp_path / f"go-on-{dies}").touch()
    waiting.join(120)
    assert found == [int(name == dies) for name in "ab"]


def test_shards_learned_with_a_node_killed_in_the_middle_give_the_same_bits(cluster, tmp_path):
    made, second = cluster
    X, y = rows(20_000)
    shards = [(X[i::4], y[i::4]) for i in range(4)]
    expected = fit_sharded(model(), shards, engine=Here())
    found = []

    def learn():
        found.append(fit_sharded(model(), shards, engine=RayEngine(2), folder=tmp_path, checkpoint_seconds=0))

    learning = threading.Thread(target=learn)
    learning.start()
    until(lambda: len(list(tmp_path.glob("*-at-*"))) >= 2)  # both nodes are at work
    made.remove_node(second, allow_graceful=False)
    learning.join(300)
    assert same(found[0].learner_.state_dict(), expected.learner_.state_dict())


def test_a_sweep_on_ray_leaves_the_records_of_one_in_this_process(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where Ray's workers are not
    few = ("run.max_batches=6", "run.evaluations=1")
    sweep = Sweep(scenarios=["split-digits"], learners=["slda", "reservoir"], seeds=2, set=few)
    for name, engine in (("here", "local"), ("ray", RayEngine(2))):
        run_sweep(sweep, name, engine=engine, jobs=1 if name == "here" else 2, device="cpu")
    records = [sorted(Path(name).glob("*/*/seed-*")) for name in ("here", "ray")]
    assert len(records[0]) == 4
    for here, there in zip(*records, strict=True):
        assert [timeless(row) for row in read_record(here).rows] == [timeless(row) for row in read_record(there).rows]


def timeless(row):
    return {key: value for key, value in row.items() if key not in ("seconds", "overhead_seconds")}


def test_answers_of_shards_are_those_of_the_model(cluster):
    X, y = rows(3000)
    fitted = model().fit(X, y)
    by_ray, here = (predict_sharded(fitted, [X[:2000], X[2000:]], engine=each) for each in (RayEngine(2), Here()))
    assert all(np.array_equal(a, b) for a, b in zip(by_ray, here, strict=True))


def dataset_of(X, y):
    """Has Ray compute the rows into three blocks of different length."""
    import pyarrow
    import ray.data

    table = pyarrow.table({**dict(zip("abcd", X.T, strict=True)), "kind": y})
    blocks = ray.data.from_arrow([table[:700], table[700:1900], table[1900:]])
    return blocks.map_batches(lambda block: block, batch_size=None, batch_format="pyarrow")


@pytest.fixture
def fetched(monkeypatch):
    """Collects the rows of all tables that come into this process; workers have processes of their own."""
    import pyarrow

    get, n_rows = ray.get, []

    def getting(*args, **options):
        got = get(*args, **options)
        several = got if isinstance(got, list) else [got]
        n_rows.extend(len(each) for each in several if isinstance(each, pyarrow.Table))
        return got

    monkeypatch.setattr(ray, "get", getting)
    return n_rows


def test_a_dataset_of_ray_is_learned_by_workers_as_its_rows_are(cluster, tmp_path, fetched):
    X, y = rows(3000)
    halves = [(X[:1500], y[:1500].tolist()), (X[1500:], y[1500:].tolist())]
    expected = fit_sharded(model(), halves, engine=Here())
    how = {"engine": RayEngine(2), "target": "kind", "folder": tmp_path / "shards"}
    found = fit_sharded(model(), dataset_of(X, y), **how)
    assert same(found.learner_.state_dict(), expected.learner_.state_dict())
    assert fetched == [700, 1200]  # of three blocks those of the first 1,000 rows, which fix the representation
    again = fit_sharded(model(), dataset_of(X, y), **how)
    assert same(again.learner_.state_dict(), expected.learner_.state_dict())
    with pytest.raises(ShardedError, match="Name another folder"):
        fit_sharded(model(), dataset_of(X + 1, y), **how)


def test_answers_for_a_dataset_of_ray_come_in_its_order(cluster):
    X, y = rows(3000)
    fitted = model().fit(X, y)
    expected = np.concatenate(predict_sharded(fitted, [X[:1500], X[1500:]], engine=Here()))
    dataset, images = dataset_of(X, y), ray.data.from_numpy(X)  # the second: one column of arrays
    for given, target in ((dataset, "kind"), (images, None)):
        answers = predict_sharded(fitted, given, engine=RayEngine(2), target=target)
        assert [len(each) for each in answers] == [1500, 1500] and np.array_equal(np.concatenate(answers), expected)
    parts = predict_sharded(fitted, images.split_at_indices([1000]), engine=RayEngine(2))
    assert [len(each) for each in parts] == [1000, 2000] and np.array_equal(np.concatenate(parts), expected)
    with pytest.raises(ShardError, match="no column 'sort'; it has a, b, c, d, kind"):
        predict_sharded(fitted, dataset, engine=RayEngine(2), target="sort")
    with pytest.raises(ConfigError, match="Pass engine='ray'"):
        predict_sharded(fitted, dataset, target="kind")


def until(condition, seconds=120):
    """Waits for something that other processes do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)
