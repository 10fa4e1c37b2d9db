"""Results of pruning trained mixtures, beside the paper's (appendix D)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cndpm.experiments.metrics import mean, standard_error
from cndpm.experiments.sealed_json import RecordError, read_json
from cndpm.paper.experiment import Published
from cndpm.reports.tables import Row, Table, TableEntry

_METRICS = ("accuracy", "n_experts")


def find_prunings(paths: Sequence[str | Path]) -> list[Path]:
    """Finds the files of the paper's pruning experiment at or under the given folders."""
    return sorted({file for path in paths for file in Path(path).rglob("pruning.json")})


def pruning_table(file: Path) -> Table:
    """Makes a table of experts and accuracy before and after pruning."""
    try:
        analysis, _ = read_json(file)
        rows = tuple(_row(analysis, moment) for moment in ("before", "after"))
        return Table(f"Pruning of experts more alike than {analysis['threshold']:g}", _METRICS, rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{file} is damaged: {error}") from error


def _row(analysis: dict[str, Any], moment: str) -> Row:
    entries = {}
    for metric in _METRICS:
        values = [float(run[moment][metric]) for run in analysis["runs"]]
        published = Published(float(analysis["paper"][moment][metric]))
        entries[metric] = TableEntry(mean(values), standard_error(values), published)
    return Row(f"{moment} pruning", "", len(analysis["runs"]), entries)
