"""Rows that have come and that models have not learned yet, with what was said to them when they came."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from cndpm.experts.pool.moments import Labels
from cndpm.experts.pool.representations import Floats
from cndpm.state import Keeps, integers, number, tensor

TOGETHER, _SURPRISE = 10, 0.5
"""Rows that are learned together, unless they have contradicted the answers to them by so many nats more than these
expected."""

_AXES = {"x": 0, "likely": 1, "by_rules": 1, "lifted": 0, "y": 0}


class Backlog(Keeps):
    """Holds B rows. M members, K rules, C labels.

    Attributes:
        x: The rows, (B, d).
        y: Their labels, (B,).
        likely: log p(x | y) of the members when they came, (M, B, C).
        by_rules: log p(y | x) of the rules, (K, B, C).
        lifted: What the labels before them told, (B, C).
        surprise: Nats by which labels contradicted the answers, more than these expected.

    Example:
        >>> backlog = Backlog()
        >>> one = np.zeros((1, 1, 2))
        >>> for _ in range(10):
        ...     backlog.add(np.zeros((1, 3)), np.array([0]), one, one, np.zeros((1, 2)))
        >>> len(backlog), backlog.is_pressing
        (10, True)
    """

    kept: ClassVar = {
        "x": tensor("b", "d"),
        "y": integers("b", low=0),
        "likely": tensor("m", "b", "labels"),
        "by_rules": tensor("k", "b", "labels"),
        "lifted": tensor("b", "labels"),
        "surprise": number(0),
    }

    def __init__(self) -> None:
        self.y: Labels = np.zeros(0, np.int64)
        self.x = self.lifted = np.zeros((0, 0))
        self.likely = self.by_rules = np.zeros((0, 0, 0))
        self.surprise = 0.0

    def __len__(self) -> int:
        return len(self.y)

    def add(self, x: Floats, y: Labels, likely: Floats, by_rules: Floats, lifted: Floats) -> None:
        """Takes b rows in; see the attributes."""
        added: dict[str, Any] = {"x": x, "likely": likely, "by_rules": by_rules, "lifted": lifted, "y": y}
        for name, part in added.items():
            setattr(self, name, np.concatenate([getattr(self, name), part], _AXES[name]) if len(self.y) else part)

    @property
    def is_pressing(self) -> bool:
        """Whether it is time to learn them."""
        return len(self.y) >= TOGETHER or self.surprise > _SURPRISE

    def compare(self, said: Floats, y: Labels) -> None:
        """Adds to the surprise how far labels y (b,) were from the log-probabilities that were said, (b, C)."""
        expected = float((np.exp(said) * said).sum())
        self.surprise = max(0.0, self.surprise + expected - float(said[np.arange(len(y)), y].sum()))
