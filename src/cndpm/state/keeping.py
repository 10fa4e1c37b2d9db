"""State that is declared: a class lists what it keeps, and saving, loading and checking follow from the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch

from cndpm.state.expecting import Form, Sizes, expect
from cndpm.state.tree import State

__all__ = ["Keeps"]


class Keeps:
    """Keeps arrays and plain values as attributes; `kept` names each with its form.

    Example:
        >>> from cndpm.state import tensor, whole
        >>> class Counter(Keeps):
        ...     kept = {"counts": tensor("labels"), "n": whole()}
        >>> counter = Counter()
        >>> counter.load_state_dict({"counts": torch.ones(2, dtype=torch.float64), "n": 2})
        {'labels': 2}
        >>> counter.counts
        array([1., 1.])
    """

    kept: ClassVar[Mapping[str, Form]]

    def state_dict(self) -> State:
        """Returns everything that is kept."""
        values = {name: getattr(self, name) for name in self.kept}
        return {name: torch.tensor(v) if isinstance(v, np.ndarray) else v for name, v in values.items()}

    def load_state_dict(self, state: State, **sizes: int) -> Sizes:
        """Restores it to the bit, or raises StateError before anything is changed; returns all sizes.

        Args:
            state: As :meth:`state_dict` returns it.
            **sizes: Sizes that are known.
        """
        found = expect(state, self.kept, **sizes)
        for name in self.kept:
            value: Any = state[name]
            setattr(self, name, value.cpu().numpy().copy() if isinstance(value, torch.Tensor) else value)
        return found
