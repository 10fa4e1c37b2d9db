"""Sharded learning: rows a second with one worker and with two, and Split-MNIST in four shards against a single pass.

    python -m benchmarks.sharding rows                      # two cores, one thread each
    CNDPM_DATA=... python -m benchmarks.sharding mnist      # --n 20000 for a third of the images
    python -m benchmarks.sharding tasks                     # overhead of the engine for one task
    python -m benchmarks.sharding merging                   # what one merge costs

``--engine ray`` does the same on a Ray cluster that is started here; ``--kill`` starts two nodes and kills one of them
in the middle.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import shlex
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.merging import second_moment, sums
from cndpm import CNDPMClassifier, merge
from cndpm.datasets import load_dataset
from cndpm.engines import fit_sharded
from cndpm.engines.engine import Attempt, Engine
from cndpm.engines.local import make_engine
from cndpm.engines.shards import ArrayShard, split
from cndpm.estimators.base import Estimator
from cndpm.experiments.description import describe_environment


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows of 32 features and ten classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    return (rng.normal(size=(10, 32))[y] * 2 + rng.normal(size=(n, 32))).astype(np.float32), y


def nothing(task: Any, attempt: Attempt) -> Any:  # noqa: ARG001
    """Carries out a task that takes no time."""
    return task


def measure_tasks(name: str, n: int) -> None:
    """Prints the seconds of a task that does nothing, once workers are there."""
    engine = make_engine(name, 2)
    engine.results(nothing, [0, 1])
    began = time.perf_counter()
    engine.results(nothing, range(n))
    print(f"{name}: {(time.perf_counter() - began) / n * 1000:.1f} ms a task, two workers, {n} tasks", flush=True)
    engine.close()


def measure_rows(name: str, n: int, rounds: int) -> None:
    """Prints rows a second with one worker and with two, in turns; the start of workers is counted."""
    X, y = rows(n)
    shards = split([ArrayShard(X, y)], 2)
    found: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for workers in found:
            began, before = time.perf_counter(), processor_seconds()
            fit_sharded(CNDPMClassifier(random_state=0), shards, engine=name, workers=workers)
            found[workers].append(n / (time.perf_counter() - began))
            here, elsewhere = (after - earlier for after, earlier in zip(processor_seconds(), before, strict=True))
            print(
                f"{name}, {workers} workers: {found[workers][-1]:,.0f} rows/s; "
                f"processor: {here:.1f} s in this process, {elsewhere:.1f} s in local workers",
                flush=True,
            )
    ratios = [two / one for one, two in zip(found[1], found[2], strict=True)]
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"two workers against one, run after run: {each} times; the best {max(ratios):.2f}", flush=True)


def processor_seconds() -> tuple[float, float]:
    """Returns the seconds that processors worked for this process and for its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return tuple(each.ru_utime + each.ru_stime for each in used)  # type: ignore[return-value]


def measure_merging(n: int) -> None:
    """Prints the size of a shard's model and the seconds of merging four of them, what a node of the tree does."""
    X, y = rows(4 * n)
    models = [CNDPMClassifier(random_state=0).partial_fit(X[:n], y[:n])]
    for i in range(1, 4):
        part = slice(i * n, i * n + n)
        models.append(models[0].with_same_representation().partial_fit(X[part], y[part]))
    with tempfile.TemporaryDirectory() as folder:
        for i, model in enumerate(models):
            model.save(f"{folder}/{i}")
        began = time.perf_counter()
        merged = merge([CNDPMClassifier.load(f"{folder}/{i}") for i in range(4)])
        merged.save(f"{folder}/merged")
        seconds = time.perf_counter() - began
        sizes = [Path(folder, name).stat().st_size / 2**20 for name in ("0", "3", "merged")]
    print(f"four models of {sizes[0]:.1f} to {sizes[1]:.1f} MiB become one of {sizes[2]:.1f} MiB: {seconds:.2f} s")


def split_mnist(n: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns the training stream, two digits after two, of all images or of n of them, and the test set."""
    dataset = load_dataset("mnist")
    train, test = dataset.train, dataset.test
    order = torch.randperm(len(train.y), generator=torch.Generator().manual_seed(0))[:n]
    order = torch.cat([order[train.y[order] // 2 == task] for task in range(5)])
    x, x_test = ((split.x.float() / 255).reshape(len(split.x), -1).numpy() for split in (train, test))
    return x[order], train.y[order].numpy(), x_test, test.y.numpy()


def summary(name: str, model: Estimator, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Prints and returns what a model has learned."""
    model.consolidate()
    accuracy = 100 * float((model.predict(X) == y).mean())
    print(f"{name}: samples by expert {[round(n) for n in model.counts_]}, accuracy {accuracy:.2f} %", flush=True)
    return {"samples_by_expert": [round(float(n), 6) for n in model.counts_], "accuracy": accuracy}


def differences(a: CNDPMClassifier, b: CNDPMClassifier) -> dict[str, float]:
    """Compares sums of both models, label by label, relative to their size."""
    parts = []
    for model in (a, b):
        counts, features, scatter = sums(model.learner_)
        order = model._codec.order()  # labels are numbered as they came
        parts.append((counts[order], features[order], second_moment(model.learner_), scatter))
    worst = [float((mine - theirs).abs().max() / mine.abs().max()) for mine, theirs in zip(*parts, strict=True)]
    return dict(zip(("counts by label", "sums by label", "second moment", "scatter"), worst, strict=True))


def single_pass(n: int | None, path: Path) -> None:
    """Learns the stream in one process; writes the model."""
    torch.set_num_threads(1)
    X, y, *_ = split_mnist(n)
    single = CNDPMClassifier(input_shape=(1, 28, 28), n_exemplars=0, random_state=0)
    for start in range(0, len(X), 1000):
        single.partial_fit(X[start : start + 1000], y[start : start + 1000])
    single.save(path)


def measure_mnist(name: str, n: int | None, folder: Path, *, workers: int, kill: bool) -> dict[str, Any]:
    """Prints and returns what four shards, merged, and a single pass, made beside them, have in common."""
    X, y, X_test, y_test = split_mnist(n)
    model = CNDPMClassifier(input_shape=(1, 28, 28), n_exemplars=0, random_state=0)
    shards = split([ArrayShard(X, y)], 4)
    print("rows by shard:", [len(shard) for shard in shards], flush=True)
    alone = multiprocessing.get_context("spawn").Process(target=single_pass, args=(n, folder / "single"))
    if not (folder / "single").exists():
        alone.start()
    began = time.perf_counter()
    killed: list[str] = []
    merged = (
        _with_a_node_killed(model, shards, folder, killed)
        if kill
        else fit_sharded(model, shards, engine=name, workers=workers, folder=folder)
    )
    seconds, most = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"four shards, {workers} workers: {seconds:.1f} s; merging held at most {most:.0f} MiB", flush=True)
    if alone.pid is not None:
        alone.join()
    merged.save(folder / "merged.cndpm")
    sizes = [path.stat().st_size / 2**20 for path in (*sorted(folder.glob("shard-*.cndpm")), folder / "merged.cndpm")]
    print(f"files of shards, and merged: {', '.join(f'{size:.1f}' for size in sizes)} MiB", flush=True)
    single = CNDPMClassifier.load(folder / "single")
    found: dict[str, Any] = {"rows_by_shard": list(map(len, shards)), "seconds": seconds, "most_mib_here": most}
    found |= {"mib_of_shards": sizes[:-1], "mib_merged": sizes[-1], "killed_a_node_at": killed}
    found |= {title: summary(title, each, X_test, y_test) for title, each in (("single", single), ("merged", merged))}
    found["largest_difference"] = differences(single, merged)
    print("merged against a single pass:", found["largest_difference"], flush=True)
    return found


def _with_a_node_killed(model: CNDPMClassifier, shards: Any, folder: Path, killed: list[str]) -> Any:
    """Learns on two nodes of one CPU each; one is killed when both have written a checkpoint, which `killed` names."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ |= {"PYTHONPATH": os.pathsep.join(sys.path), "RAY_worker_niceness": "0"}  # nodes are as this process
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    found: list[Any] = []
    engine: Engine = make_engine("ray", 2)

    def learn() -> None:
        found.append(fit_sharded(model, shards, engine=engine, folder=folder, checkpoint_seconds=2))

    learning = threading.Thread(target=learn)
    learning.start()
    while len({path.name[:11] for path in folder.glob("shard-*-at-*.cndpm")}) < 2 and learning.is_alive():
        time.sleep(0.05)
    killed += sorted(path.name for path in folder.glob("shard-*-at-*.cndpm"))
    print("killing a node; checkpoints:", killed, flush=True)
    cluster.remove_node(second, allow_graceful=False)
    learning.join()
    ray.shutdown()
    cluster.shutdown()
    return found[0]


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharding", description=__doc__)
    parser.add_argument("what", choices=("rows", "merging", "mnist", "tasks"))
    parser.add_argument("--engine", default="local", choices=("local", "ray"))
    parser.add_argument("--n", type=int, default=None, help="rows, images or tasks")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="for mnist")
    parser.add_argument("--kill", action="store_true", help="two Ray nodes, one killed in the middle")
    parser.add_argument("--folder", help="of models and checkpoints, kept; the same call goes on where it was")
    parser.add_argument("--record", help="file for what was found of mnist")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.what == "tasks":
        measure_tasks(options.engine, options.n or (20 if options.engine == "local" else 200))
    elif options.what == "merging":
        measure_merging(options.n or 5000)
    elif options.what == "rows":
        measure_rows(options.engine, options.n or 100_000, options.rounds)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(options.folder or temporary)
            folder.mkdir(parents=True, exist_ok=True)
            found = measure_mnist(options.engine, options.n, folder, workers=options.workers, kill=options.kill)
        if options.record:
            command = f"python -m benchmarks.sharding {shlex.join(sys.argv[1:])}"
            record = {"environment": describe_environment("cpu", command), "seeds": [0], **found}
            Path(options.record).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
