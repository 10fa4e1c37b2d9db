"""Learns one dataset by many workers: shards side by side, then one model of all.

The first rows of the first shard fix the representation (features, origin, prior), which every other shard takes over;
so all models can be merged exactly (:func:`cndpm.merge`). Workers leave checkpoints in a folder: one that dies costs
its shard since the last one, and a call with the same folder goes on where another was broken off.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cndpm.engines.engine import Attempt, Engine
from cndpm.engines.local import LocalEngine, opened_engine
from cndpm.engines.ray_data import is_ray_dataset, ray_shard
from cndpm.engines.shards import Piece, Shard, as_shard, split
from cndpm.errors import CNDPMError
from cndpm.estimators.base import Estimator
from cndpm.estimators.merging_models import load_estimator, merge_in_turn
from cndpm.estimators.regressor import CNDPMRegressor
from cndpm.storage import make_folder, remove_file, replace_file
from cndpm.validation import ConfigError

__all__ = ["ShardedError", "fit_sharded", "predict_sharded"]

E = TypeVar("E", bound=Estimator)

_PIECE_BATCHES = 100
"""Batches of a piece, which is what a model is given at once."""

_FAN_IN = 4
"""Models that one worker merges at once."""

_SAVING = 20
"""Times as long as it took to write a checkpoint passes before the next: models of images have hundreds of MiB."""


class ShardedError(CNDPMError, ValueError):
    """A folder holds the shards of another call; the message says what to do."""


def fit_sharded(
    model: E,
    shards: Any,
    *,
    engine: str | Engine = "local",
    workers: int = 2,
    folder: str | Path | None = None,
    target: str | None = None,
    checkpoint_seconds: float = 60.0,
    address: str | None = None,
) -> E:
    """Returns a model that has learned all shards, each as a stream of its own; the one given is not changed.

    It is the merged model of the shards, whichever worker learned which; docs/scale.md says what it has in common with
    a single pass. Scripts call this below ``if __name__ == "__main__":``, since local workers import them.

    Args:
        model: An estimator, as it would be fitted. One that has learned something goes on: its representation is
            broadcast, and the result has learned the shards besides.
        shards: A sequence of pairs of arrays (X, y), files, or objects of `cndpm.engines.shards`; for densities X
            alone. Or, for the engine "ray", a `ray.data.Dataset`, which becomes a shard for each worker.
        engine: "local", "ray", or an engine.
        workers: Shards that are learned at the same time, each with one thread.
        folder: Where models and checkpoints of shards lie, the same on all machines; None: a temporary one.
        target: Column of labels or targets, where shards are files or a dataset of Ray.
        checkpoint_seconds: Seconds between two checkpoints of a shard, more where writing one takes long; 0: always.
        address: Of a Ray cluster.

    Raises:
        ShardedError: The folder holds the shards of another call.
        ConfigError: A dataset of Ray is given, and workers that cannot read it.
    """
    read = _read(shards, model, engine, workers, target=target, as_numbers=isinstance(model, CNDPMRegressor))
    if not read:
        raise ValueError("fit_sharded takes at least one shard; got none")
    _refuse_twins(read)
    with tempfile.TemporaryDirectory() as temporary, opened_engine(engine, workers, address=address) as made:
        where = Path(folder or temporary).absolute()
        make_folder(where)
        _claim(where, model, read)
        begun = where / "representation.cndpm"
        n_learned = _fix_representation(model, read[0], begun)
        tasks = [_ShardTask(i, shard, where, begun, n_learned, checkpoint_seconds) for i, shard in enumerate(read)]
        files = made.results(_learn_shard, tasks)
        if hasattr(model, "learner_"):
            files = [begun, *files]
        return cast(E, _merged(files, made, where))


def predict_sharded(
    model: Estimator,
    shards: Any,
    *,
    engine: str | Engine = "local",
    workers: int = 2,
    method: str = "predict",
    target: str | None = None,
    address: str | None = None,
) -> list[NDArray[Any]]:
    """Returns the answers for every shard, in their order: one array for each.

    Args:
        model: A fitted estimator.
        shards: As for :func:`fit_sharded`; labels are not looked at.
        engine: "local", "ray", or an engine.
        workers: Shards that are answered at the same time.
        method: Of the estimator: "predict", "predict_proba", "score_samples", "novelty".
        target: Column to leave out, where shards are files or a dataset of Ray.
        address: Of a Ray cluster.
    """
    read = _read(shards, model, engine, workers, target=target)
    with opened_engine(engine, workers, address=address) as made:
        return made.results(_answer_shard, [(model, method, shard) for shard in read])


# What is read


def _read(
    parts: Any, model: Estimator, engine: str | Engine, workers: int, *, target: str | None, as_numbers: bool = False
) -> list[Shard]:
    """Makes shards of what there is; one dataset of Ray becomes as many as there are workers."""
    if isinstance(parts, str | Path) or not (is_ray_dataset(parts) or isinstance(parts, Iterable)):
        raise TypeError(f"shards are a list of arrays or files; got a {type(parts).__name__}. Give [it].")
    is_whole = is_ray_dataset(parts)
    given = [parts] if is_whole else list(parts)
    if any(map(is_ray_dataset, given)) and (engine == "local" or isinstance(engine, LocalEngine)):
        raise ConfigError("a dataset of Ray is read by Ray's workers; got the engine 'local'. Pass engine='ray'.")
    shards = [
        ray_shard(part, target=target) if is_ray_dataset(part) else as_shard(part, target=target, as_numbers=as_numbers)
        for part in given
    ]
    n = engine.n_workers if isinstance(engine, Engine) else workers
    return split(shards, n, multiple=model.batch_size) if is_whole else shards


# The first rows


def _claim(folder: Path, model: Estimator, shards: Sequence[Shard]) -> None:
    """Writes down what the folder is for; refuses one of another call."""
    about = {"model": repr(model), "learned": hasattr(model, "learner_"), "shards": list(map(_identity, shards))}
    text = json.dumps(about, indent=1)
    mark = folder / "shards.json"
    if not mark.exists():
        replace_file(mark, [text.encode()])
    elif mark.read_text() != text:
        raise ShardedError(f"{folder} holds shards of other data or of another model. Name another folder.")


def _refuse_twins(shards: Sequence[Shard]) -> None:
    """Refuses a shard that is there twice: its rows would count twice."""
    seen: dict[str, int] = {}
    for i, identity in enumerate(map(_identity, shards)):
        if seen.setdefault(identity, i) != i:
            raise ValueError(f"shards {seen[identity]} and {i} are the same; leave one out: its rows would count twice")


def _identity(shard: Shard) -> str:
    """Tells shards apart: files by their names, arrays and blocks of Ray by their content."""
    X, y = getattr(shard, "X", None), getattr(shard, "y", None)
    if not isinstance(X, np.ndarray):
        return repr(shard)
    digest = hashlib.sha256(np.ascontiguousarray(X).tobytes() + repr(y if y is None else list(y)).encode())
    return f"{X.shape} {digest.hexdigest()}"


def _fix_representation(model: E, shard: Shard, path: Path) -> int:
    """Saves a model whose representation is fixed; returns the rows of the first shard that it has learned."""
    counted = path.with_suffix(".json")
    if counted.exists():
        n_learned: int = json.loads(counted.read_text())
        return n_learned
    n_learned = 0
    begun: Estimator = model
    if not hasattr(model, "learner_"):
        begun = cast(E, clone(model))
        for piece in shard.pieces(_piece_rows(model)):
            _learn(begun, piece)
            n_learned += len(piece[0])
            if begun.n_experts_:
                break
        if not begun.n_experts_:
            begun.consolidate()
    begun.save(path)
    replace_file(counted, [json.dumps(n_learned).encode()])
    return n_learned


# What workers do


@dataclass(frozen=True)
class _ShardTask:
    """One shard, where it goes, and what it begins with."""

    index: int
    shard: Shard
    folder: Path
    begun: Path
    n_learned: int
    checkpoint_seconds: float

    @property
    def done(self) -> Path:
        return self.folder / f"shard-{self.index:05d}.cndpm"

    def checkpoints(self) -> list[tuple[int, Path]]:
        """Returns the rows and files of the checkpoints there are, the newest last."""
        found = self.folder.glob(f"shard-{self.index:05d}-at-*.cndpm")
        return sorted((int(path.stem.rpartition("-")[2]), path) for path in found)

    def checkpoint(self, model: Estimator, n_rows: int) -> None:
        """Writes a checkpoint; older ones go when it is there."""
        older = self.checkpoints()
        model.save(self.folder / f"shard-{self.index:05d}-at-{n_rows}.cndpm")
        for _, path in older:
            remove_file(path)

    def begin(self) -> tuple[Estimator, int]:
        """Returns the model to go on with, and the rows of the shard that it has learned."""
        for n_rows, path in reversed(self.checkpoints()):
            return load_estimator(path), n_rows
        first = load_estimator(self.begun)
        if self.index == 0 and self.n_learned:
            return first, self.n_learned
        return first.with_same_representation(), 0


def _learn_shard(task: _ShardTask, _: Attempt) -> Path:
    """Learns one shard; returns the file of its model."""
    if task.done.exists():
        return task.done
    model, n_rows = task.begin()
    due = time.monotonic() + task.checkpoint_seconds
    for piece in task.shard.pieces(_piece_rows(model), n_rows):
        _learn(model, piece)
        n_rows += len(piece[0])
        if (began := time.monotonic()) >= due:
            task.checkpoint(model, n_rows)
            took = time.monotonic() - began
            due = began + max(task.checkpoint_seconds, _SAVING * took if task.checkpoint_seconds else 0)
    model.save(task.done)
    for _n, path in task.checkpoints():
        remove_file(path)
    return task.done


def _learn(model: Estimator, piece: Piece) -> None:
    X, y = piece
    if y is None:
        model.partial_fit(X)
    else:
        model.partial_fit(X, y)


def _piece_rows(model: Estimator) -> int:
    return _PIECE_BATCHES * model.batch_size


def _answer_shard(task: tuple[Estimator, str, Shard], _: Attempt) -> NDArray[Any]:
    model, method, shard = task
    return np.concatenate([getattr(model, method)(X) for X, _ in shard.pieces(_piece_rows(model))])


# The tree


def _merged(files: Sequence[Path], engine: Engine, folder: Path) -> Estimator:
    """Merges models by a tree: workers merge a few files to one, until a few are left."""
    level = 0
    while len(files) > _FAN_IN:
        groups = [files[i : i + _FAN_IN] for i in range(0, len(files), _FAN_IN)]
        tasks = [(group, folder / f"merged-{level}-{i:05d}.cndpm") for i, group in enumerate(groups)]
        files = engine.results(_merge_files, tasks)
        level += 1
    return cast(Estimator, merge_in_turn(map(load_estimator, files)))


def _merge_files(task: tuple[Sequence[Path], Path], _: Attempt) -> Path:
    files, path = task
    if not path.exists():
        merge_in_turn(map(load_estimator, files)).save(path)
    return path
