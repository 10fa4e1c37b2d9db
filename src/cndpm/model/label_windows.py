"""The latest samples of every label, and how many of them were strange."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.mixture.novelty import Floats, window_means
from cndpm.state import State, StateError, expect, tensor

__all__ = ["LabelWindows"]

Labels = NDArray[np.int64]
Flags = NDArray[np.bool_]


class LabelWindows:
    """Counts how many of the latest samples of every label were strange.

    Args:
        window: Latest samples of a label that count.

    Example:
        >>> windows = LabelWindows(window=4)
        >>> windows.push(np.array([True, True, False]), np.array([7, 7, 8])).tolist()
        [1.0, 1.0, 0.0]
        >>> windows.shares(np.array([7, 8])).tolist()
        [1.0, 0.0]
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._latest: dict[int, Floats] = {}

    def push(self, strange: Flags, labels: Labels) -> Floats:
        """Takes note of samples and returns the share of strange ones around each within its label, (B,).

        Args:
            strange: Whether each sample is, (B,).
            labels: Class indices, (B,).
        """
        means = np.empty(len(strange))
        for label in set(labels.tolist()):
            mine = labels == label
            latest, values = self._latest.get(label, np.empty(0)), strange[mine].astype(np.float64)
            strange_lately = values.any() or latest.any()
            means[mine] = window_means(values, latest, self._window) if strange_lately else 0.0
            self._latest[label] = np.concatenate([latest, values])[-self._window :]
        return means

    def shares(self, labels: Labels) -> Floats:
        """Returns the share of strange samples among the latest of each label given, (B,); NaN before the first."""
        known = {label: self._latest.get(label) for label in set(labels.tolist())}
        means = {label: math.nan if latest is None else float(latest.mean()) for label, latest in known.items()}
        return np.array([means[label] for label in labels.tolist()])

    def forget(self, labels: Labels) -> None:
        """Begins anew with the labels given."""
        for label in set(labels.tolist()):
            self._latest.pop(label, None)

    def state_dict(self) -> State:
        """Returns everything noted."""
        return {str(label): torch.tensor(latest) for label, latest in self._latest.items()}

    def load_state_dict(self, state: State) -> None:
        """Restores it to the bit."""
        for label in state:
            if not (label.isascii() and label.isdecimal()):
                raise StateError(f"labels are numbered from 0; got {label[:20]!r}")
            if not expect(state, {label: tensor("latest")})["latest"]:
                raise StateError(f"label {label} has no samples, and is noted")
        self._latest = {
            int(label): np.array(latest.detach().cpu().numpy(), dtype=np.float64) for label, latest in state.items()
        }
