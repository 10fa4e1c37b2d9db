"""Whether rows with targets are answered by pools of many members, or by the experts themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from pydantic import Field

from cndpm.experts.pool import ClassPool, ValuePool
from cndpm.model.places import Pool
from cndpm.model.settings.facts import Facts, Section

_MOST_COLUMNS = 100
"""Columns up to which several representations are cheap: their cost grows with the square."""


class OneRepresentation(Section):
    """Has the experts answer alone, over one representation, for any time."""

    kind: Literal["one"] = Field(default="one", description="the experts answer alone, for any time")

    def build(self, facts: Facts, *, is_plain: bool) -> Callable[[], Pool] | None:
        """Returns None: there are no pools."""
        return None


class _Pool(Section):
    """Settings of the pool, whether it was chosen or came by default."""

    kept_rows: int = Field(
        default=5000,
        ge=0,
        le=1_000_000,
        description="the latest rows of every label, as neighbours and to judge members",
    )
    change_evidence: float = Field(
        default=20.0, gt=0, description="nats by which models of the latest samples must lead to found a rule"
    )
    max_rules: int = Field(default=8, ge=1, description="rules kept at most; the oldest makes way")

    def pools(self, facts: Facts) -> Callable[[], Pool]:
        """Returns what makes a pool for a stream."""
        chosen: dict[str, Any] = {"n_rows": self.kept_rows, "evidence": self.change_evidence, "n_rules": self.max_rules}
        if facts.target == "classes":
            return partial(ClassPool, facts.input_shape[0], seed=facts.seed, **chosen)
        return partial(ValuePool, facts.input_shape[0], facts.n_outputs, seed=facts.seed, **chosen)


class PooledRepresentations(_Pool):
    """Has a pool of models over several representations, rules and neighbours answer, weighed by evidence."""

    kind: Literal["pool"] = Field(
        default="pool", description="models of three representations, rules and neighbours answer, weighed by evidence"
    )

    def build(self, facts: Facts, *, is_plain: bool) -> Callable[[], Pool] | None:
        """Returns what makes a pool."""
        if len(facts.input_shape) != 1 or facts.target == "none":
            raise ValueError(
                "representations='pool' is for rows with targets; got samples of shape "
                f"{facts.input_shape} and target={facts.target!r}. Leave it out."
            )
        return self.pools(facts)


class AutoRepresentations(_Pool):
    """Chooses several representations for rows with targets where nothing else was asked for, else one."""

    kind: Literal["auto"] = Field(
        default="auto", description="'pool' for labelled rows of up to 100 columns with default features, else 'one'"
    )

    def build(self, facts: Facts, *, is_plain: bool) -> Callable[[], Pool] | None:
        """Returns what makes a pool, or None."""
        is_table = len(facts.input_shape) == 1 and facts.input_shape[0] <= _MOST_COLUMNS
        if not (is_plain and is_table and facts.target != "none"):
            return None
        return self.pools(facts)
