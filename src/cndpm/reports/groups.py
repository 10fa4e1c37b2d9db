"""Groups runs that differ only in their seed, compares groups on the same stream, and finds the paper's values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cndpm.experiments.config import differing_keys
from cndpm.experiments.learners import shown_learner
from cndpm.experiments.metrics import over_seeds
from cndpm.names import UnknownNameError
from cndpm.paper.experiment import EXPERIMENTS, Published
from cndpm.paper.reproduction import cell_config
from cndpm.reports.run import Run
from cndpm.validation import ConfigError

_NOT_COMPARED = ("seed", "device", "run")
"""Parts of a configuration that do not change the learned model, or over which results are averaged."""


def matches(config: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Returns whether two configurations learn the same, apart from seed, device and schedule of evaluations."""
    return not differing_keys(_essence(config), _essence(other))


def published_values(config: Mapping[str, Any]) -> dict[str, Published]:
    """Returns the paper's values for a learner on a stream, by metric, from all of its experiments.

    Cells are resolved with the preset of `config`, so runs with another preset also stand beside the paper's values.
    """
    return dict(_find(json.dumps(_essence(config), sort_keys=True)))


@lru_cache(maxsize=512)
def _find(frozen: str) -> tuple[tuple[str, Published], ...]:
    config = json.loads(frozen)
    found: dict[str, Published] = {}
    for experiment in EXPERIMENTS.values():
        for cell in experiment.cells:
            if (cell.scenario, cell.learner) != (config["scenario"]["name"], config["learner"]):
                continue
            try:
                same = matches(config, cell_config(cell, config["preset"], "cpu").to_json())
            except (ConfigError, UnknownNameError, KeyError):
                continue
            if same:
                found = {**cell.published, **found}
    return tuple(found.items())


def _essence(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _NOT_COMPARED}


_KIND = ".kind"
"""Ends the key of a choice among nested settings."""


@dataclass(frozen=True)
class Group:
    """The seeds of one configuration, complete or not; the label tells it from the other groups on its stream."""

    label: str
    runs: tuple[Run, ...]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the first run."""
        return self.runs[0].config

    @property
    def complete(self) -> tuple[Run, ...]:
        """The runs with results."""
        return tuple(run for run in self.runs if run.record.summary is not None)

    def mean(self, metric: str) -> float | None:
        """Returns the mean over the complete runs."""
        return self.over_seeds(metric)[0]

    def over_seeds(self, metric: str) -> tuple[float | None, float | None]:
        """Returns mean and standard error over the complete runs that have this number."""
        return over_seeds([run.record.summary or {} for run in self.complete], metric)


@dataclass(frozen=True)
class Comparison:
    """Groups on one stream."""

    scenario: str
    summary: str
    groups: tuple[Group, ...]

    @property
    def metric(self) -> str:
        """The metric of this stream: "accuracy" or "bits_per_dim"."""
        return self.groups[0].runs[0].metric

    @property
    def seeds(self) -> list[int]:
        """The seeds of all groups."""
        return sorted({run.seed for group in self.groups for run in group.runs})


def compare(runs: Sequence[Run]) -> list[Comparison]:
    """Sorts runs into comparisons (one per stream) of groups (one per configuration), in order of appearance."""
    by_stream: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        stream = json.dumps(run.config["scenario"], sort_keys=True)
        settings = json.dumps(_essence(run.config), sort_keys=True)
        by_stream.setdefault(stream, {}).setdefault(settings, []).append(run)
    firsts = [next(iter(groups.values()))[0] for groups in by_stream.values()]
    names = [run.scenario for run in firsts]  # with the length where several have the same name
    titles = _distinct([run.scenario if names.count(run.scenario) == 1 else _with_length(run) for run in firsts])
    comparisons = []
    for title, groups in zip(titles, by_stream.values(), strict=True):
        members = [tuple(sorted(group, key=lambda run: run.seed)) for group in groups.values()]
        first = members[0][0]
        labels = _labels([group[0].config for group in members])
        made = tuple(Group(label, group) for label, group in zip(labels, members, strict=True))
        comparisons.append(Comparison(title, str(first.config["scenario"].get("summary", "")), made))
    return comparisons


def _with_length(run: Run) -> str:
    if run.n_batches is None:
        return run.scenario
    return f"{run.scenario} ({run.n_batches:,} batches, {len(run.stages)} stage{'s' if len(run.stages) != 1 else ''})"


def _labels(configs: Sequence[dict[str, Any]]) -> list[str]:
    """Names configurations by their learner; where several share it, also by preset and differing settings."""
    names = [str(config["learner"]) for config in configs]
    labels = [shown_learner(name) for name in names]
    for i, learner in enumerate(list(labels)):
        same = [j for j, name in enumerate(names) if name == names[i]]
        if i == same[0] and len(same) > 1:
            for j, label in zip(same, _told_apart([configs[j] for j in same]), strict=True):
                labels[j] = f"{learner}, {label}"
    return _distinct(labels)


def _told_apart(configs: Sequence[dict[str, Any]]) -> list[str]:
    """Names configurations of one learner by the fewest differences, in the order of the settings, that suffice."""
    first = configs[0]["settings"]
    differing = {key for config in configs for key in differing_keys(first, config["settings"])}
    order = {key: i for i, key in enumerate(first)}
    words: list[list[str]] = [[] for _ in configs]
    if len({config["preset"] for config in configs}) > 1:
        words = [[str(config["preset"])] for config in configs]
    # A choice tells more than what follows from it.
    for key in sorted(differing, key=lambda key: (not key.endswith(_KIND), order.get(key.partition(".")[0], 0), key)):
        if len({tuple(one) for one in words}) == len(configs):
            break
        for one, config in zip(words, configs, strict=True):
            name = key.removesuffix(_KIND).rpartition(".")[2]
            one.append(f"{name} = {_at(config['settings'], key)}")
    return [", ".join(one) for one in words]


def _at(tree: dict[str, Any], dotted: str) -> Any:
    value: Any = tree
    for key in dotted.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _distinct(labels: list[str]) -> list[str]:
    """Adds numbers to labels that are equal."""
    seen: dict[str, int] = {}
    made = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        made.append(label if labels.count(label) == 1 else f"{label} ({seen[label]})")
    return made
