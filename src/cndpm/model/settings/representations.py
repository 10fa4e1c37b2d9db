"""Representations of x that answer for the present, and the evidence that a rule has changed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cndpm.model.context import Present
from cndpm.model.settings.facts import Facts
from cndpm.model.settings.section import Section

__all__ = ["AutoRepresentations", "OneRepresentation", "PooledRepresentations"]

_MOST_COLUMNS = 100
"""Columns up to which several representations are cheap: their cost grows with the square."""


class OneRepresentation(Section):
    """Has the experts answer alone, over one representation, for any time.

    Example:
        >>> import torch
        >>> OneRepresentation().build(Facts("classes", 1, (4,), None, 0, torch.device("cpu")), is_plain=True) is None
        True
    """

    kind: Literal["one"] = Field(default="one", description="the experts answer alone, for any time")

    def build(self, facts: Facts, *, is_plain: bool) -> Present | None:
        """Returns None: there is no context over time.

        Args:
            facts: Of the stream.
            is_plain: Ignored.
        """
        return None


class _Pool(Section):
    """Settings of the pool, whether it was chosen or came by default."""

    pool_features: int = Field(default=200, ge=1, description="random features, or steps, of a representation")
    recent_rows: int = Field(default=500, ge=100, description="the latest rows kept, counted with the memory")
    change_evidence: float = Field(
        default=20.0, gt=0, description="nats by which models of the latest samples must lead to found a rule"
    )
    max_rules: int = Field(default=8, ge=1, description="rules kept at most; the least used makes way")


class PooledRepresentations(_Pool):
    """Puts models of the latest samples over several representations beside the experts, weighed by evidence.

    Example:
        >>> import torch
        >>> facts = Facts("classes", 1, (4,), None, 0, torch.device("cpu"))
        >>> PooledRepresentations().build(facts, is_plain=True).n_rules
        0
    """

    kind: Literal["pool"] = Field(
        default="pool", description="identity, Fourier features and steps side by side answer for the present"
    )

    def build(self, facts: Facts, *, is_plain: bool) -> Present | None:
        """Makes the present.

        Args:
            facts: Of the stream.
            is_plain: Ignored: it was asked for.
        """
        if len(facts.input_shape) != 1 or facts.target == "none":
            raise ValueError(
                "representations='pool' is for rows with targets; got samples of shape "
                f"{facts.input_shape} and target={facts.target!r}. Leave it out."
            )
        return _present(
            facts,
            n_features=self.pool_features,
            n_recent=self.recent_rows,
            evidence=self.change_evidence,
            n_rules=self.max_rules,
        )


class AutoRepresentations(_Pool):
    """Chooses several representations for rows with targets where nothing else was asked for, else one.

    Example:
        >>> import torch
        >>> image = Facts("classes", 1, (1, 8, 8), None, 0, torch.device("cpu"))
        >>> AutoRepresentations().build(image, is_plain=True) is None
        True
    """

    kind: Literal["auto"] = Field(
        default="auto", description="'pool' for labelled rows of up to 100 columns with default features, else 'one'"
    )

    def build(self, facts: Facts, *, is_plain: bool) -> Present | None:
        """Makes the present, or nothing.

        Args:
            facts: Of the stream.
            is_plain: Whether experts, features and novelty are the default's.
        """
        is_table = len(facts.input_shape) == 1 and facts.input_shape[0] <= _MOST_COLUMNS
        if not (is_plain and is_table and facts.target != "none"):
            return None
        return _present(
            facts,
            n_features=self.pool_features,
            n_recent=self.recent_rows,
            evidence=self.change_evidence,
            n_rules=self.max_rules,
        )


def _present(facts: Facts, *, n_features: int, n_recent: int, evidence: float, n_rules: int) -> Present:
    return Present(
        n_columns=facts.input_shape[0],
        for_classes=facts.target == "classes",
        n_outputs=facts.n_outputs,
        n_recent=n_recent,
        n_features=n_features,
        evidence=evidence,
        n_rules=n_rules,
        seed=facts.seed,
        device=facts.device,
    )
