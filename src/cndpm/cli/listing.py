"""``cndpm list``: everything that can be named, with a line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cndpm.cli.show import show
from cndpm.datasets.catalogue import catalogue_entry, dataset_names
from cndpm.experiments.learners import LEARNERS
from cndpm.experiments.presets import PRESETS
from cndpm.experiments.printed_tables import FoldingTable
from cndpm.names import UnknownNameError
from cndpm.paper.experiment import EXPERIMENTS
from cndpm.streams.scenario_files import load_scenario, scenario_names


def list_kinds(kind: str, *, as_json: bool) -> None:
    """Prints the names of one kind, or of all."""
    if kind != "all" and kind not in _KINDS:
        raise UnknownNameError("list of", kind, ("all", *_KINDS))
    chosen = _KINDS if kind == "all" else {kind: _KINDS[kind]}
    lines = {name: describe() for name, describe in chosen.items()}
    content = {
        name: [{"name": key, "summary": text} for key, text in described.items()] for name, described in lines.items()
    }
    tables = [
        FoldingTable(name, ["name", ""], [[key, text] for key, text in rows.items()]) for name, rows in lines.items()
    ]
    show(content, tables, as_json=as_json)


def _presets() -> Mapping[str, str]:
    return {
        name: "; ".join(
            f"{learner} on {', '.join(scenarios).replace('*', 'all others')}" for learner, scenarios in learners.items()
        )
        for name, learners in PRESETS.items()
    }


_KINDS: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "scenarios": lambda: {name: load_scenario(name).summary for name in scenario_names()},
    "learners": LEARNERS.summaries,
    "datasets": lambda: {name: catalogue_entry(name).summary for name in dataset_names()},
    "experiments": lambda: {name: experiment.title for name, experiment in EXPERIMENTS.items()},
    "presets": _presets,
}
