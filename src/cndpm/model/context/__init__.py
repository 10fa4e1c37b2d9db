"""Context over time: what holds now, told by how well models of the latest samples predict the labels that arrive."""

from cndpm.model.context.present import Present
from cndpm.model.context.recent_rows import RecentRows
from cndpm.model.context.rules import Rules

__all__ = ["Present", "RecentRows", "Rules"]
