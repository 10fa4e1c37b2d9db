"""``cndpm fit``: a model of files of rows, learned by many workers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cndpm.cli import options

if TYPE_CHECKING:
    from cndpm.engines import Shard
    from cndpm.estimators.base import Estimator


def add_fit_command(app: typer.Typer) -> None:
    """Adds `fit` to the command line."""
    app.command()(fit)


def fit(
    data: Annotated[
        list[str], typer.Argument(metavar="DATA...", help="Files (.csv, .parquet, .npz), or the name of a dataset.")
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="File of the model.")],
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Labels or targets.", show_default="none: a density")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="K", help="classifier, regressor or density.", show_default="by whether there are labels"),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="F=V", help="Set a parameter or a setting; repeatable.")
    ] = None,
    engine: options.EngineName = "local",
    workers: Annotated[int, typer.Option(metavar="N", min=1, help="Shards learned at the same time.")] = 2,
    shards: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Shards to cut the rows into.", show_default="workers")
    ] = None,
    folder: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of checkpoints.", show_default="FILE.shards")
    ] = None,
    address: options.Address = None,
    seed: options.Seed = 0,
    data_dir: options.DataDir = None,
    json: options.Json = False,
) -> None:
    """Learn files of rows by many workers; write one model.

    The same command goes on where another was broken off.

    Example: cndpm fit part-*.csv --target y --workers 2 -o model.cndpm
    """
    from cndpm.cli.show import show, table
    from cndpm.engines import fit_sharded

    where = Path(folder or f"{out}.shards")
    parts, shape = _shards(data, target, kind, shards or workers, data_dir)
    model = _model(kind or ("classifier" if shape or target or _labelled(data) else "density"), shape, seed, set_ or [])
    began = time.perf_counter()
    fitted = fit_sharded(model, parts, engine=engine, workers=workers, folder=where, address=address)
    seconds = time.perf_counter() - began
    fitted.save(out)
    n_rows = fitted.learner_.events.n_samples
    row = [out, str(len(parts)), f"{n_rows:,}", str(fitted.n_experts_), f"{seconds:.1f}", f"{n_rows / seconds:,.0f}"]
    header = ["model", "shards", "rows", "experts", "seconds", "rows/s"]
    content = {"model": out, "n_shards": len(parts), "n_rows": n_rows, "n_experts": fitted.n_experts_}
    show({**content, "seconds": seconds}, [table("learned", header, [row])], as_json=json)


def _labelled(data: list[str]) -> bool:
    return all(name.endswith(".npz") for name in data)


def _shards(
    data: list[str], target: str | None, kind: str | None, n: int, data_dir: str | None
) -> tuple[list[Shard], tuple[int, ...] | None]:
    """Returns shards of files or of a dataset, and the shape of an image where they are images."""
    from cndpm.datasets import load_dataset
    from cndpm.engines import ArrayShard, FileShard, split

    if len(data) == 1 and not Path(data[0]).suffix:
        train = load_dataset(data[0], data_dir).train
        x = train.x.float() / 255 if train.x.ndim > 2 else train.x
        shape = tuple(train.x.shape[1:]) if train.x.ndim > 2 else None
        return split([ArrayShard(x.numpy().reshape(len(x), -1), train.y.numpy())], n), shape
    files = [FileShard(Path(name), target, as_numbers=kind == "regressor") for name in data]
    return split(files, n), None


def _model(kind: str, shape: tuple[int, ...] | None, seed: int, overrides: list[str]) -> Estimator:
    from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
    from cndpm.experiments.overrides import parse_overrides
    from cndpm.names import UnknownNameError
    from cndpm.validation import ConfigError

    kinds: dict[str, Any] = {"classifier": CNDPMClassifier, "regressor": CNDPMRegressor, "density": CNDPMDensity}
    if kind not in kinds:
        raise UnknownNameError("kind of model called", kind, kinds)
    values = parse_overrides([f"model.{text}" for text in overrides], ["model"])["model"]
    names = set(kinds[kind]._get_param_names()) - {"density", "predictor", "features"}  # by name they are settings
    given = {name: values.pop(name) for name in list(values) if name in names}
    model: Estimator = kinds[kind](random_state=seed, input_shape=shape, settings=values or None, **given)
    try:
        model._check(anew=True)
    except UnknownNameError:
        raise
    except (ValueError, TypeError) as error:
        raise ConfigError(str(error)) from error
    return model
