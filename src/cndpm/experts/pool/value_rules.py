"""Which of the rules that were learned holds now, and whether what is learned now is another one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cndpm.experts.pool.mix import softmax
from cndpm.experts.pool.representations import Floats
from cndpm.experts.pool.value_mix import floored, log_density
from cndpm.state import Keeps, State, StateError, number, tensor, whole

__all__ = ["Rules"]

_CHANGE = 0.005
"""Probability that another rule holds for the next row."""

_DOUBT = 2.0
"""Nats of lead from which on it is remembered what the rule in force was before."""

_LEAST = 20
"""Rows that a rule is founded of at least, and that the tie between errors begins with."""

_COST = 0.05
"""Nats a row by which what forgets must be better, so that chance does not add up."""

_TIE_KEEP = 0.998
"""What is left of a row in the tie between errors: a change must not look like a tie before it is found."""


class Rules(Keeps):
    """A sticky filter over K rules, and the lead of what forgets over the one in force.

    Before a row the filter's weights move a little towards each other; after it each is multiplied by the density that
    its rule gave the target. The lead is a sum that begins again at zero whenever it falls below (CUSUM, Page 1954).
    Errors that follow each other are no other rule, though what forgets follows them: the rule in force is compared
    both as it is and with a part of the error before, as much as errors were tied so far.

    Args:
        n_columns: d.
        n_outputs: o.

    Example:
        >>> rules, x = Rules(1, 1), np.zeros((1, 1))
        >>> for _ in range(30):
        ...     _ = rules.hear(np.zeros((1, 1)), np.ones(1), x, x)
        >>> rules.is_new(evidence=20.0), len(rules.x)
        (True, 28)
    """

    kept: ClassVar = {
        "log_weights": tensor("rules"),
        "x": tensor("rows", "d"),
        "y": tensor("rows", "o"),
        "tie": tensor(2),
        "current": whole(),
        "lead": number(0.0),
    }

    def __init__(self, n_columns: int, n_outputs: int) -> None:
        self.log_weights, self.current, self.lead = np.zeros(1), 0, 0.0
        self.x, self.y = np.zeros((0, n_columns)), np.zeros((0, n_outputs))
        self.tie = np.array([0.0, _LEAST])

    def __len__(self) -> int:
        return len(self.log_weights)

    @property
    def weights(self) -> Floats:
        """The probability that each rule holds, (K,)."""
        return softmax(self.log_weights)

    @property
    def in_doubt(self) -> bool:
        """Whether what forgets leads so far that another rule may hold."""
        return self.lead > _DOUBT

    def gains(self, errors: Floats, variances: Floats, before: Floats) -> Floats:
        """Returns by how much what forgets was nearer to B targets than the rule in force, in nats, (B,).

        Args:
            errors: Of what forgets and of the rule, (2, B, o).
            variances: That they answered, (2, B, o).
            before: The rule's error at the row before, (o,).
        """
        deviation = np.sqrt(variances[1])
        latest = np.concatenate([before[None], errors[1, :-1]])
        mine, former = (np.clip(part / deviation, -3, 3) for part in (errors[1], latest))
        tie = min(max(self.tie[0] / self.tie[1], 0.0), 0.98)
        tied = log_density(tie * former * deviation, errors[1], variances[1] * (1 - tie**2))
        free, fast = (log_density(part, np.zeros(1), v) for part, v in zip(errors[::-1], variances[::-1], strict=True))
        left = _TIE_KEEP ** len(mine)
        self.tie = left * self.tie + [(mine * former).sum(), (former**2).sum() + (1 - left) * _LEAST]
        return np.asarray(fast - np.logaddexp(free, tied) + np.log(2))

    def hear(self, log_densities: Floats, gains: Floats, x: Floats, y: Floats) -> bool:
        """Hears how rows were foretold.

        Args:
            log_densities: Of the targets under each rule, (K, B).
            gains: Of what forgets, (B,).
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

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        found = super().load_state_dict(state, **sizes)
        if self.current >= len(self):
            raise StateError(f"'current' must be below the {len(self)} rules; got {self.current}")
        return found
