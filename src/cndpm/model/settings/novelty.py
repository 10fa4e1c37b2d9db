"""How it is decided that data is new."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cndpm.mixture import AutoConcentration
from cndpm.model.concentration import Concentration, FixedConcentration
from cndpm.model.settings.section import Section

__all__ = ["AutoNovelty", "FixedNovelty", "TaskNovelty"]


class AutoNovelty(Section):
    """The model sets its own level of novelty as it learns.

    Example:
        >>> type(AutoNovelty(novelty_window=30).build()).__name__
        'AutoConcentration'
    """

    kind: Literal["auto"] = Field(default="auto", description="the concentration is set by the model as it learns")
    novelty_rate: float = Field(default=0.01, gt=0, lt=0.5, description="how often a known sample may be called new")
    novelty_window: int = Field(default=10, ge=1, description="consecutive samples judged together")

    def build(self) -> Concentration:
        """Makes the part that decides what is new."""
        return AutoConcentration(novelty_rate=self.novelty_rate, window=self.novelty_window)


class FixedNovelty(Section):
    """The paper's rule: one concentration, set by hand.

    Example:
        >>> FixedNovelty(log_alpha=-600).build().log_alpha
        -600.0
    """

    kind: Literal["fixed"] = Field(default="fixed", description="the concentration is set by hand, as in the paper")
    log_alpha: float = Field(
        default=-400.0, allow_inf_nan=False, description="log concentration: how readily data is new"
    )

    def build(self) -> Concentration:
        """Makes the part that decides what is new."""
        return FixedConcentration(self.log_alpha, None)


class TaskNovelty(Section):
    """What is new is told by task labels in training (appendix E of the paper)."""

    kind: Literal["tasks"] = Field(default="tasks", description="task labels tell in training; for cndpm-tasks")

    def build(self) -> Concentration:
        """Refuses: whoever is told of tasks decides nothing."""
        raise ValueError(
            "novelty='tasks' needs a learner that is told of tasks; got one that is not. Use the learner cndpm-tasks, "
            "or novelty='auto'."
        )
