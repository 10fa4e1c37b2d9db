"""Which of the rules that were learned holds now, and whether what is learned now is another one."""

from __future__ import annotations

import numpy as np
import torch

from cndpm.experts.pool.representations import Floats
from cndpm.experts.pool.value_mix import floored, softmax
from cndpm.state import State, expect, number, tensor, whole

__all__ = ["Rules"]

_CHANGE = 0.005
"""Probability that another rule holds for the next row."""

_DOUBT = 2.0
"""Nats of lead from which on it is remembered what the rule in force was before."""

_LEAST = 20
"""Rows that a rule is founded of at least."""

_COST = 0.05
"""Nats a row by which what forgets must be better, so that chance does not add up."""


class Rules:
    """A sticky filter over K rules, and the lead of what forgets over the one in force.

    Before a row the filter's weights move a little towards each other; after it each is multiplied by the density that
    its rule gave the target. The lead is a sum that begins again at zero whenever it falls below (CUSUM, Page 1954).

    Args:
        n_columns: d.
        n_outputs: o.

    Example:
        >>> rules = Rules(1, 1)
        >>> for _ in range(30):
        ...     _ = rules.hear(np.zeros((1, 1)), np.ones(1), np.zeros((1, 1)), np.zeros((1, 1)))
        >>> rules.is_new(evidence=20.0), len(rules.x)
        (True, 28)
    """

    def __init__(self, n_columns: int, n_outputs: int) -> None:
        self.log_weights, self.current, self.lead = np.zeros(1), 0, 0.0
        self.x, self.y = np.zeros((0, n_columns)), np.zeros((0, n_outputs))

    def __len__(self) -> int:
        return len(self.log_weights)

    @property
    def weights(self) -> Floats:
        """How likely each rule holds, (K,)."""
        return softmax(self.log_weights)

    @property
    def in_doubt(self) -> bool:
        """Whether what forgets leads so far that another rule may hold."""
        return self.lead > _DOUBT

    def hear(self, log_densities: Floats, gains: Floats, x: Floats, y: Floats) -> bool:
        """Hears how rows were foretold.

        Args:
            log_densities: Of the targets under each rule, (K, B).
            gains: Log density of what forgets less that of the rules, (B,).
            x: Rows, (B, d), kept as long as there is doubt.
            y: Targets, (B, o).

        Returns:
            Whether another rule is in force now.
        """
        if len(self) > 1:
            for row in floored(log_densities).T:
                self.log_weights = np.log((1 - _CHANGE) * self.weights + _CHANGE / len(self)) + row
        self.lead = max(0.0, self.lead + float(np.clip(gains, -3, 3).sum()) - _COST * len(gains))
        former, self.current = self.current, int(self.log_weights.argmax())
        if former != self.current:
            self.lead = 0.0
        kept = -500 if self.in_doubt else len(self.x) + len(x)
        self.x, self.y = np.concatenate([self.x, x])[kept:], np.concatenate([self.y, y])[kept:]
        return former != self.current

    def is_new(self, evidence: float) -> bool:
        """Returns whether the rows since the doubt began follow a rule of their own."""
        return self.lead > evidence and len(self.x) >= _LEAST

    def found(self) -> None:
        """Adds a rule, which is in force."""
        self.log_weights = np.append(self.log_weights, self.log_weights.max() + 3.0)
        self.current, self.lead = len(self) - 1, 0.0
        self.x, self.y = self.x[:0], self.y[:0]

    def drop(self, rule: int) -> None:
        """Forgets a rule."""
        self.log_weights = np.delete(self.log_weights, rule)
        self.current -= rule < self.current

    def state_dict(self) -> State:
        """Returns everything as tensors and numbers."""
        arrays = {"log_weights": self.log_weights, "x": self.x, "y": self.y}
        state = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        return state | {"current": self.current, "lead": self.lead}

    def check(self, state: State) -> int:
        """Returns the rules of a state, or raises StateError where it has another form."""
        forms = {"x": tensor("rows", self.x.shape[1]), "y": tensor("rows", self.y.shape[1])}
        sizes = expect(state, {"log_weights": tensor("rules"), "lead": number(0.0)} | forms)
        expect(state, {"current": whole(0, sizes["rules"] - 1)})
        return sizes["rules"]

    def load_state_dict(self, state: State) -> None:
        """Takes a state of :meth:`state_dict`."""
        self.check(state)
        self.log_weights, self.x, self.y = (state[name].numpy().copy() for name in ("log_weights", "x", "y"))
        self.current, self.lead = state["current"], float(state["lead"])
