"""``cndpm merge``: one model of several that learned different parts of a stream."""

from __future__ import annotations

from typing import Annotated

import typer

from cndpm.cli import options


def add_merge_command(app: typer.Typer) -> None:
    """Adds `merge` to the command line."""
    app.command()(merge)


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
    from cndpm.cli.show import show, table
    from cndpm.estimators.base import Estimator
    from cndpm.estimators.merging import load_estimator, merge_in_turn

    rows = []

    def loaded(path: str) -> Estimator:
        part = load_estimator(path)
        rows.append([path, str(part.n_experts_), f"{part.counts_.sum():,.0f}"])
        return part

    merged = merge_in_turn(map(loaded, models))
    merged.save(out)
    rows.append([out, str(merged.n_experts_), f"{merged.counts_.sum():,.0f}"])
    content = {"model": out, "n_experts": merged.n_experts_, "counts": merged.counts_.tolist()}
    show(content, [table(f"merged into {out}", ["model", "experts", "samples"], rows)], as_json=json)
