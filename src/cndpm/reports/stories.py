"""Words about runs: summaries in plain sentences, and the commands that make runs again, resume them or add seeds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cndpm.experiments.description import OWN
from cndpm.experiments.learners import shown_learner
from cndpm.experiments.printed_tables import METRICS, format_count, format_value
from cndpm.reports.groups import Comparison, Group
from cndpm.reports.run import Run

_KEPT_SEPARATE = 6

_MEASURES = {
    "accuracy": "On the test data of all tasks",
    "bits_per_dim": "On all test data, less being better",
    "prequential_accuracy": "On samples before they are learned",
    "prequential_error": "On samples before they are learned, less being better",
}


def title_of(comparisons: Sequence[Comparison]) -> str:
    """Returns the heading of a report."""
    if not comparisons:
        return "No runs to show"
    n_runs = sum(len(group.runs) for comparison in comparisons for group in comparison.groups)
    if n_runs == 1:
        return comparisons[0].groups[0].runs[0].title
    names = list(dict.fromkeys(group.runs[0].scenario for comparison in comparisons for group in comparison.groups))
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    learners = {group.runs[0].learner for comparison in comparisons for group in comparison.groups}
    return f"{shown}: {_count(len(learners), 'learner')}, {_count(n_runs, 'run')}"


def comparison_story(comparison: Comparison) -> list[str]:
    """Returns two paragraphs on one stream: its description, and the results of all learners."""
    metric = comparison.metric
    known = [(group, group.mean(metric)) for group in comparison.groups]
    scored = [(group, value) for group, value in known if value is not None]
    stream = describe_stream(comparison.groups[0].runs[0])
    if not scored:
        return [stream, "No run is complete yet."]
    ranked = sorted(scored, key=lambda item: item[1], reverse=METRICS[metric].better > 0)[:_KEPT_SEPARATE]
    results = "; ".join(_result(group, value, metric) for group, value in ranked)
    left = len(scored) - len(ranked)
    return [stream, f"{_MEASURES[metric]}, {results}" + (f"; and {left} more." if left else ".")]


def run_story(run: Run) -> str:
    """Returns one paragraph on one run."""
    parts = [describe_stream(run)]
    value = run.last.get(run.metric)
    if value is not None:
        of = {"accuracy": " accuracy on all tasks", "prequential_accuracy": " accuracy on samples not learned yet"}
        reached = _measured(value, run.metric) + of.get(run.metric, "")
        ending = "ended with" if run.record.status == "complete" else "has reached"
        experts = f" and {_count(run.last.get('n_experts') or 0, 'expert')}" if _mixes(run) else ""
        parts.append(f"{shown_learner(run.learner)} {ending} {reached}{experts}.")
    gating = run.last.get("gating_accuracy")
    if gating is not None and _mixes(run):
        parts.append(f"{gating:.1f}\N{NO-BREAK SPACE}% of the test samples reach an expert of their own task.")
    forgetting = run.last.get("forgetting")
    if forgetting is not None:
        parts.append(f"Earlier tasks lost {forgetting:.1f} percentage points from their best.")
    return " ".join(parts)


def run_facts(run: Run) -> list[tuple[str, str]]:
    """Returns the key numbers of a run as text, each with its name."""
    last = run.last if _mixes(run) else {key: value for key, value in run.last.items() if key != "n_experts"}
    facts = [(format_value(key, last[key]), METRICS[key].label) for key in METRICS if last.get(key) is not None]
    samples = run.n_steps * run.batch_size
    return [*facts, (format_count(samples) if samples >= 10_000 else f"{samples:,}", "samples streamed (about)")]


def progress_words(run: Run) -> str:
    """Says whether a run is complete, or how many batches it has learned."""
    if run.record.status == "complete":
        return "complete"
    of = f" of {run.n_batches:,}" if run.n_batches else ""
    verb = "running: batch" if run.record.status == "running" else "stopped after batch"
    return f"{verb} {run.n_steps:,}{of}"


def describe_stream(run: Run) -> str:
    """Describes the stream in one or two sentences."""
    summary = str(run.config["scenario"].get("summary") or "").partition(": needs no download")[0].rstrip(".")
    n = run.n_batches
    stages = f" in {_count(len(run.stages), 'stage')}" if len(run.stages) > 1 else ""
    told = "; the learner is not told when the task changes."
    arrival = f" Samples arrive in {n or 0:,} batches of {run.batch_size}{stages}{told}"
    return f"{summary or run.scenario}." + (arrival if n else "")


def _result(group: Group, value: float, metric: str) -> str:
    experts = group.mean("n_experts")
    some = "expert" if experts == 1 else "experts"
    with_experts = f" with {experts:.3g} {some}" if _mixes(group.runs[0]) and experts else ""
    return f"{group.label} reaches {_measured(value, metric)}{with_experts}"


def _measured(value: float, metric: str) -> str:
    if metric in ("accuracy", "prequential_accuracy"):
        return f"{value:.1f}\N{NO-BREAK SPACE}%"
    return f"{value:.4f} bits/dim" if metric == "bits_per_dim" else f"a mean error of {value:.3g}"


def _mixes(run: Run) -> bool:
    """Returns whether the run's learner is a mixture: only mixtures log counts of experts, or have several."""
    return (run.last.get("n_experts") or 0) > 1 or "expert_counts" in run.last


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


_DEPTHS = {"run": 1, "compare": 2}
"""Folders between ``--out`` and a record; other commands resume by themselves, where they lay their records anyway."""


def repeat_command(run: Run) -> str:
    """Returns the command that was typed to make `run`; Python where it was made from Python."""
    typed = run.record.environment.get("command")
    return str(typed) if typed else _call(run, "runs/again")


def resume_command(run: Run) -> str:
    """Returns the command that lets an interrupted `run` go on."""
    typed = run.record.environment.get("command")
    return _in_its_folder(run, typed) if typed else _call(run, run.record.folder, True)


def seeds_command(run: Run, first: int, n: int) -> str | None:
    """Returns the command that makes runs like `run` with other seeds in its folder; None where no command made it."""
    typed = run.record.environment.get("command") or ""
    if _verb(typed) not in (*_DEPTHS, "reproduce"):
        return None
    return _in_its_folder(run, f"{typed} --seed {first} --seeds {n}")


def _in_its_folder(run: Run, typed: str) -> str:
    """Adds the folder of a run to a command that has to be told; of an option given twice the last one counts."""
    depth = _DEPTHS.get(_verb(typed))
    if depth is None:
        return typed
    return f"{typed} --out {shlex.quote(str(run.record.folder.parents[depth - 1]))} --resume"


def _verb(typed: str) -> str:
    """Returns which of our commands was typed; nothing where it was none of them."""
    words = shlex.split(typed)
    return words[1] if len(words) > 1 and words[0] == "cndpm" else ""


def _call(run: Run, folder: object, resume: bool = False) -> str:
    """Returns the call from Python that makes a run in `folder`."""
    also = ", resume=True" if resume else ""
    if run.config.get("preset") == OWN:
        return f"run(learner, stream, {str(folder)!r}{also})  # {run.learner} on {run.scenario}"
    return (
        'python -c "from cndpm.experiments import *; '
        f'run_config(RunConfig.from_json(read_record({str(run.record.folder)!r}).config), {str(folder)!r}{also})"'
    )
