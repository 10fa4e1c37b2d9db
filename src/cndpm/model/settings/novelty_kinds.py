"""Settings of novelty: how it is decided that data is new, and whether a full memory always becomes an expert."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from cndpm.model.founding import AlwaysFound, EarnedFounding, Founding
from cndpm.model.learned_level import LearnedLevel
from cndpm.model.novelty import FixedLevel, Novelty, TaskLabels
from cndpm.model.settings.facts import Section

Parts = tuple[Novelty, Founding]


class AutoNovelty(Section):
    """Has the model set its own level of novelty as it learns, and found experts that earn their place."""

    kind: Literal["auto"] = Field(default="auto", description="the concentration is set by the model as it learns")
    novelty_rate: float = Field(default=0.01, ge=1e-9, lt=0.5, description="how often a known sample may be called new")
    novelty_window: int = Field(default=10, ge=1, le=1_000_000, description="consecutive samples judged together")

    def build(self, *, has_labels: bool, at_end_of_task: Callable[[], None]) -> Parts:
        """Makes the parts that decide which samples are new and found experts."""
        level = LearnedLevel(novelty_rate=self.novelty_rate, window=self.novelty_window)
        return level, EarnedFounding(for_labels=has_labels)


class FixedNovelty(Section):
    """Follows the paper: one concentration, set by hand; every full memory becomes an expert."""

    kind: Literal["fixed"] = Field(default="fixed", description="the concentration is set by hand, as in the paper")
    log_alpha: float = Field(
        default=-400.0, allow_inf_nan=False, description="log concentration: how readily data is new"
    )

    def build(self, *, has_labels: bool, at_end_of_task: Callable[[], None]) -> Parts:
        """Makes the parts that decide which samples are new and found experts."""
        return FixedLevel(self.log_alpha), AlwaysFound()


class TaskNovelty(Section):
    """Has task labels tell in training which samples are new (appendix E of the paper)."""

    kind: Literal["tasks"] = Field(default="tasks", description="task labels tell in training; for cndpm-tasks")

    def build(self, *, has_labels: bool, at_end_of_task: Callable[[], None]) -> Parts:
        """Makes the parts that decide which samples are new and found experts."""
        return TaskLabels(at_end_of_task), AlwaysFound()
