"""Compares models over streams and seeds: means, standard errors, ranks, seconds, as tables and as a record."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean, stdev
from typing import Any

from figures.facts import facts, processor

from cndpm.experiments.description import describe_environment

__all__ = ["PEERS", "experts", "record", "table", "times", "wins"]

PEERS = ("ARF", "SRP", "LB", "HAT")
"""River's models: adaptive random forest, streaming random patches, leveraging bagging, Hoeffding adaptive tree."""

Result = dict[str, Any]


def of_seeds(results: Sequence[Result], model: str, stream: str, key: str) -> list[float]:
    """Returns a number for every seed of a model on a stream."""
    return [row[key] for row in results if (row["model"], row["stream"]) == (model, stream)]


def mean_of(results: Sequence[Result], model: str, stream: str, key: str) -> float:
    """Averages a number over the seeds of a model on a stream."""
    return fmean(of_seeds(results, model, stream, key))


def standard_error(values: Sequence[float]) -> float | None:
    """Returns the standard error of the mean of n values; None for a single one."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else None


def rank(values: Sequence[float], i: int) -> float:
    """Returns the rank of value number i from above, 1 for the largest; equal values share theirs."""
    above, equal = sum(v > values[i] for v in values), sum(v == values[i] for v in values)
    return above + (equal + 1) / 2


def overall(results: Sequence[Result], streams: Sequence[str], models: Sequence[str]) -> dict[str, Result]:
    """Returns mean accuracy, average rank and seconds of every model over all streams."""
    accuracy = {s: [mean_of(results, m, s, "accuracy") for m in models] for s in streams}
    seconds = {m: sum(mean_of(results, m, s, "seconds") for s in streams) for m in models}
    found = {}
    for i, model in enumerate(models):
        found[model] = {
            "mean accuracy": fmean(accuracy[s][i] for s in streams),
            "average rank": fmean(rank(accuracy[s], i) for s in streams),
            "seconds": seconds[model],
        }
        if "ARF" in models:
            ratios = [mean_of(results, model, s, "seconds") / mean_of(results, "ARF", s, "seconds") for s in streams]
            found[model] |= {"seconds / ARF's": seconds[model] / seconds["ARF"], "at most, on a stream": max(ratios)}
        own = [row for row in results if row["model"] == model]
        if all("longest_ms" in row for row in own):
            found[model] |= {
                "milliseconds a row": 1000 * sum(row["seconds"] for row in own) / sum(row["n_rows"] for row in own),
                "longest row (ms)": max(row["longest_ms"] for row in own),
                "longest row, processor's time (ms)": max(row["longest_processor_ms"] for row in own),
                "processor's seconds": sum(row["processor_seconds"] for row in own),
            }
    if all("processor's seconds" in numbers for numbers in found.values()) and "ARF" in found:
        for numbers in found.values():
            numbers["processor's seconds / ARF's"] = (
                numbers["processor's seconds"] / found["ARF"]["processor's seconds"]
            )
    return found


def table(results: Sequence[Result], streams: Sequence[str], models: Sequence[str]) -> str:
    """Returns the comparison as a table in Markdown."""
    lines = ["| stream | " + " | ".join(models) + " |", "|---|" + "---|" * len(models)]
    lines += [
        f"| {s} | " + " | ".join(_cell(of_seeds(results, m, s, "accuracy")) for m in models) + " |" for s in streams
    ]
    of_models = overall(results, streams, models)
    names = list(dict.fromkeys(name for numbers in of_models.values() for name in numbers))
    for name in names:
        cells = [f"{of_models[m][name]:.2f}" if name in of_models[m] else "–" for m in models]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def times(results: Sequence[Result], streams: Sequence[str], models: Sequence[str]) -> str:
    """Returns milliseconds a row, and of the longest, as a table in Markdown; for results row by row."""
    lines = ["| milliseconds a row; longest | " + " | ".join(models) + " |", "|---|" + "---|" * len(models)]
    for stream in streams:
        cells = []
        for model in models:
            a_row = 1000 * mean_of(results, model, stream, "seconds") / mean_of(results, model, stream, "n_rows")
            cells.append(f"{a_row:.2f}; {max(of_seeds(results, model, stream, 'longest_ms')):.0f}")
        lines.append(f"| {stream} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(values: Sequence[float]) -> str:
    error = standard_error(values)
    return f"{fmean(values):.1f}" + ("" if error is None else f" ± {error:.1f}")


def wins(results: Sequence[Result], streams: Sequence[str], model: str, others: Sequence[str]) -> str:
    """Says on how many streams a model is ahead of each other one, and of the best of river's."""
    own = {s: mean_of(results, model, s, "accuracy") for s in streams}
    theirs = {o: {s: mean_of(results, o, s, "accuracy") for s in streams} for o in others}
    counts = [f"{o} on {sum(own[s] > theirs[o][s] for s in streams)}" for o in others]
    peers = [o for o in others if o in PEERS]
    best = sum(own[s] > max(theirs[o][s] for o in peers) for s in streams) if peers else None
    of_best = "" if best is None else f", the best of river's on {best}"
    return f"{model} is ahead of {', '.join(counts)}{of_best} of {len(streams)} streams."


def experts(results: Sequence[Result], streams: Sequence[str], model: str) -> str:
    """Says how many experts a mixture has on every stream, a number per seed."""
    rows = {s: [r["n_experts"] for r in results if (r["model"], r["stream"]) == (model, s)] for s in streams}
    return f"{model}'s experts: " + "; ".join(f"{s} {', '.join(map(str, n))}" for s, n in rows.items()) + "."


def record(
    results: Sequence[Result],
    streams: Sequence[str],
    models: Sequence[str],
    *,
    commit: str | None = None,
    **options: Any,
) -> Result:
    """Returns all that is worth keeping: how it was made, every stream's mean and error, and every result.

    Args:
        results: One for every stream, model and seed.
        streams: Names, in order.
        models: Names, in order.
        commit: That the code is of, where the source tree cannot tell.
        **options: What was asked for.
    """
    made = describe_environment("cpu", command=facts()["command"])
    made["commit"] = commit or made["commit"]
    by_stream: Result = {}
    for stream in streams:
        by_stream[stream] = {}
        for model in models:
            accuracy = of_seeds(results, model, stream, "accuracy")
            seconds = of_seeds(results, model, stream, "seconds")
            numbers = {"mean": fmean(accuracy), "standard_error": standard_error(accuracy), "by_seed": accuracy}
            by_stream[stream][model] = {"accuracy": numbers, "seconds": fmean(seconds)}
    machine = {"processor": processor(), "n_cpus": os.cpu_count(), "system": platform.platform()}
    about = made | {"river": _river(), "machine": machine, "options": options}
    return about | {"models": overall(results, streams, models), "streams": by_stream, "results": list(results)}


def _river() -> str | None:
    """Returns river's version, None where it is not there."""
    try:
        return version("river")
    except PackageNotFoundError:
        return None
