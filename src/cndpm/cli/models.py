"""Commands of models: ``cndpm fit``, ``merge``, ``serve`` and ``play``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cndpm.cli import options

if TYPE_CHECKING:
    from cndpm.engines.shards import Shard
    from cndpm.estimators.base import Estimator


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
    from cndpm.cli.show import show
    from cndpm.engines import fit_sharded
    from cndpm.experiments.printed_tables import FoldingTable

    where = Path(folder or f"{out}.shards")
    parts, shape = _shards(data, target, kind, shards or workers, data_dir)
    model = _model(
        kind or ("classifier" if shape or target or all(name.endswith(".npz") for name in data) else "density"),
        shape,
        seed,
        set_ or [],
    )
    began = time.perf_counter()
    fitted = fit_sharded(model, parts, engine=engine, workers=workers, folder=where, address=address)
    seconds = time.perf_counter() - began
    fitted.save(out)
    n_rows = fitted.learner_.events.n_samples
    row = [out, str(len(parts)), f"{n_rows:,}", str(fitted.n_experts_), f"{seconds:.1f}", f"{n_rows / seconds:,.0f}"]
    header = ["model", "shards", "rows", "experts", "seconds", "rows/s"]
    content = {"model": out, "n_shards": len(parts), "n_rows": n_rows, "n_experts": fitted.n_experts_}
    show({**content, "seconds": seconds}, [FoldingTable("learned", header, [row])], as_json=json)


def merge(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="Files that `save` wrote.")],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="File of the merged model.")],
    json: options.Json = False,
) -> None:
    """Merge models that learned different streams into one.

    All but the first must have begun with the first one's representation:
    model.with_same_representation() in Python.

    Example: cndpm merge a.cndpm b.cndpm -o c.cndpm
    """
    from cndpm.cli.show import show
    from cndpm.estimators.merging_models import load_estimator, merge_in_turn
    from cndpm.experiments.printed_tables import FoldingTable

    rows = []

    def loaded(path: str) -> Estimator:
        part = load_estimator(path)
        rows.append([path, str(part.n_experts_), f"{part.counts_.sum():,.0f}"])
        return part

    merged = merge_in_turn(map(loaded, models))
    merged.save(out)
    rows.append([out, str(merged.n_experts_), f"{merged.counts_.sum():,.0f}"])
    content = {"model": out, "n_experts": merged.n_experts_, "counts": merged.counts_.tolist()}
    show(content, [FoldingTable(f"merged into {out}", ["model", "experts", "samples"], rows)], as_json=json)


def serve(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File that `save` wrote; it is not changed.")],
    folder: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of checkpoints and logs.", show_default="MODEL.served")
    ] = None,
    host: Annotated[str, typer.Option(metavar="H", help="Address; others than loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="Port; 0 takes any free one.")] = 8000,
    checkpoint_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows between checkpoints.")] = 10_000,
    max_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows of one request.")] = 10_000,
    max_mib: Annotated[int, typer.Option(metavar="N", min=1, help="MiB of one request.")] = 4,
    max_labels: Annotated[int, typer.Option(metavar="N", min=1, help="Labels that the model may come to know.")] = 1000,
    window_ms: Annotated[
        float, typer.Option(metavar="MS", min=0, help="Time that a prediction waits for others to share a call.")
    ] = 0.0,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Go on without the rows that a damaged log has lost.")
    ] = False,
) -> None:
    """Serve a model over HTTP: predict, learn, explain, watch.

    Rows are acknowledged when they are learned and on the disk; started again,
    the server goes on where it was. CNDPM_TOKEN in the environment is the token
    that clients must send. The page at / describes all requests, and tries them.

    Example: cndpm serve model.cndpm --port 8000
    """
    from cndpm.serving import Limits, Server

    limits = Limits(body_bytes=max_mib * 2**20, rows=max_rows, labels=max_labels, window=window_ms / 1000)
    server = Server(
        model,
        folder=folder,
        host=host,
        port=port,
        token=os.environ.get("CNDPM_TOKEN") or None,
        limits=limits,
        checkpoint_rows=checkpoint_rows,
        salvage=salvage,
    )
    print(f"serving {model}: open {server.url}/ to try it; Ctrl-C ends it", flush=True)
    try:
        server.run()
    except KeyboardInterrupt:
        print()


def play(
    port: Annotated[int, typer.Option(metavar="P", min=0, max=65535, help="Port; 0 takes any free one.")] = 8764,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Draw symbols on a page, name them, and watch it learn.

    Only this machine can open the page. Nothing is kept. Ctrl-C ends it.

    Example: cndpm play
    """
    from cndpm.cli.show import serve_page
    from cndpm.play.serving import make_play_server

    serve_page(make_play_server(port=port), "playing", open_=open_)


def _shards(
    data: list[str], target: str | None, kind: str | None, n: int, data_dir: str | None
) -> tuple[list[Shard], tuple[int, ...] | None]:
    """Returns shards of files or of a dataset, and the shape of an image where they are images."""
    from cndpm.datasets import load_dataset
    from cndpm.engines.shards import ArrayShard, FileShard, split

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
