"""Scenarios of rows whose rule changes: ``drift-...``, each a recipe that a seed turns into a stream.

They ask how the next rows are answered, so they have no test sets and are evaluated prequentially. Seed 0 draws the
rows of the published comparisons. Which there are says ``drifts.toml`` beside this file.
"""

from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from cndpm.names import UnknownNameError
from cndpm.validation import validate

if TYPE_CHECKING:
    import torch

    from cndpm.streams.rows import Rows
    from cndpm.streams.stream import Stream

__all__ = ["DriftScenario"]


class _Source(NamedTuple):
    """Draws the rows of a scenario, and says what they are."""

    path: str
    summary: str
    target: Literal["classes", "values"] = "classes"
    arguments: dict[str, Any] | None = None

    def draw(self, seed: int) -> Rows:
        """Imports the function and calls it."""
        module, name = self.path.split(".")
        rows: Rows = getattr(import_module(f"cndpm.streams.{module}"), name)(seed, **(self.arguments or {}))
        return rows


_TABLE = tomllib.loads(files("cndpm.streams").joinpath("drifts.toml").read_text(encoding="utf-8"))
DRIFTS = {name: _Source(**facts) for name, facts in _TABLE.items() if "path" in facts}
"""Every scenario of rows that are drawn, by its name."""

FILED: dict[str, Any] = {name: facts for name, facts in _TABLE.items() if "path" not in facts}
"""Scenarios of rows that the user has in a file; see :mod:`cndpm.streams.row_files`."""


class DriftScenario(BaseModel):
    """The recipe of a stream of rows in a fixed order.

    Attributes:
        name: What it is called.
        summary: One line that says what it is.
        rows: The rows, by a name of :data:`DRIFTS`.
        batch_size: Samples in a batch; the last batch before a change may have fewer.

    Example:
        >>> stream = DriftScenario(name="mine", rows="drift-flip", batch_size=20).build(seed=0)
        >>> stream.n_batches, stream.changes, stream.n_classes
        (300, (3000,), 2)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    summary: str = ""
    rows: str
    batch_size: Annotated[int, Field(gt=0)] = 10
    endless: ClassVar[bool] = False  # rows come to an end
    has_tests: ClassVar[bool] = False  # so that runs are evaluated prequentially

    @field_validator("rows")
    @classmethod
    def _is_known(cls, rows: str) -> str:
        if rows not in DRIFTS and rows not in FILED:
            raise UnknownNameError("rows", rows, (*DRIFTS, *FILED))
        return rows

    @property
    def target(self) -> Literal["classes", "values"]:
        """Whether rows carry classes or real-valued targets."""
        return "classes" if self.rows in FILED else DRIFTS[self.rows].target

    def draw(self, seed: int = 0, data_dir: str | Path | None = None) -> Rows:
        """Draws the rows, (n, n_features) float64, with their labels and changes, or reads them from a file.

        Args:
            seed: Determines the rows where they are generated.
            data_dir: Where files lie.
        """
        if self.rows in DRIFTS:
            return DRIFTS[self.rows].draw(seed)
        from cndpm.streams.row_files import rows_of_file

        return rows_of_file(self.rows, data_dir)

    def build(self, *, data_dir: str | Path | None = None, seed: int = 0, device: torch.device | str = "cpu") -> Stream:
        """Draws the rows and makes the stream.

        Args:
            data_dir: Where files lie, for those that are read from one.
            seed: Determines the rows where they are generated.
            device: Where batches arrive.
        """
        from cndpm.streams.rows import RowStream

        return RowStream(
            self.draw(seed, data_dir),
            batch_size=self.batch_size,
            seed=seed,
            device=device,
            description=self.model_dump(mode="json"),
        )


def drift_scenario(name: str, **options: Any) -> DriftScenario:
    """Returns the recipe of this name."""
    facts = {"name": name, "summary": _TABLE[name]["summary"], "rows": name}
    return validate(DriftScenario, facts | options, "scenario")
