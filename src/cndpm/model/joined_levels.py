"""Joins what two learned levels have noted, as states: records side by side, then one for each united expert.

Nothing is thrown away here, so that it does not matter in which order models are joined: rows may be longer than their
capacity until something is learned again, and what stands in them is sorted and shuffled by a fixed permutation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cndpm.mixture.margin_levels import Floats
from cndpm.state import State


def joined_levels(mine: State, theirs: State) -> State:
    """Returns the state of a learned level that has noted what two have; the experts of the second come behind."""
    ours, its = mine["record"], theirs["record"]
    rows = [row for record in (ours, its) for row in record["values"].numpy()]
    labels = sorted({*mine["by_label"], *theirs["by_label"]}, key=int)
    empty = torch.zeros(0, dtype=torch.float64)
    latest = {label: [state["by_label"].get(label, empty) for state in (mine, theirs)] for label in labels}
    # Samples that were strange to one model come first, to be forgotten first: the other may know them.
    by_label = {label: torch.cat(both).sort(descending=True).values for label, both in latest.items()}
    return {
        **mine,
        "record": {
            "values": _aligned(rows),
            "levels": torch.cat([ours["levels"], its["levels"]], dim=1),
            "n_unmeasured": ours["n_unmeasured"] + its["n_unmeasured"],
        },
        "history": mine["history"][:0],
        "by_label": by_label,
        "windows": torch.from_numpy(_shuffled(torch.cat([mine["windows"], theirs["windows"]]).numpy())),
    }


def united_levels(state: State, groups: Sequence[Sequence[int]], gains: Tensor) -> State:
    """Returns the state of a learned level of K experts with one for every group, which together are all.

    Each expert's samples have `gains`, (K,), more log evidence now that it is part of its group.
    """
    record = state["record"]
    moved = record["values"].numpy() + gains.numpy()[:, None]
    together = [np.concatenate([moved[k] for k in group]) for group in groups]
    rows = [_shuffled(row) if len(group) > 1 else row for row, group in zip(together, groups, strict=True)]
    levels = record["levels"][:, [group[0] for group in groups]].clone()
    return {**state, "record": {**record, "values": _aligned(rows), "levels": levels}}


def _aligned(rows: Sequence[Floats]) -> Tensor:
    """Returns rows as a matrix as wide as the longest, NaN before the shorter ones."""
    width = max((len(row) for row in rows), default=0)
    aligned = np.full((len(rows), width), np.nan)
    for place, row in zip(aligned, rows, strict=True):
        place[width - len(row) :] = row
    return torch.from_numpy(aligned)


def _shuffled(values: Floats) -> Floats:
    """Returns values (n,) in an order that depends on the values alone, NaN first."""
    known = np.sort(values[~np.isnan(values)])
    order = np.random.default_rng(len(known)).permutation(len(known))
    return np.concatenate([np.full(len(values) - len(known), np.nan), known[order]])
