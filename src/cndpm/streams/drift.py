"""Scenarios of rows whose rule changes: ``drift-...``, each a recipe that a seed turns into a stream.

They ask how the next rows are answered, so they have no test sets and are evaluated prequentially. Seed 0 draws the
rows of the published comparisons.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from cndpm.names import UnknownNameError

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

    def draw(self, seed: int) -> Rows:
        """Imports the function and calls it."""
        module, name = self.path.split(".")
        rows: Rows = getattr(import_module(f"cndpm.streams.{module}"), name)(seed)
        return rows


DRIFTS: dict[str, _Source] = {
    "drift-flip": _Source("rows.flipped_rule", "A linear rule that is reversed half-way: needs no download"),
    "drift-rotate": _Source("rows.rotated_rule", "A linear rule that is turned by 90 degrees half-way"),
    "drift-in-turn": _Source("rows.rules_in_turn", "Two linear rules that take turns of 2,000 rows"),
    "drift-turning": _Source("rows.turning_rule", "A linear rule of three classes that turns slowly by 180 degrees"),
    "drift-scales": _Source("rows.tripling_scales", "Five domains with a rule each, whose scale triples every time"),
    "drift-sign": _Source("rows.flipped_sign", "Regression: a linear target whose sign is reversed half-way", "values"),
    "drift-sine": _Source("river_rows.sine", "River's Sine, reversed half-way"),
    "drift-sine-in-turn": _Source("river_rows.sine_in_turn", "River's Sine and its reverse in turns of 2,000 rows"),
    "drift-mixed": _Source("river_rows.mixed", "River's Mixed, reversed half-way"),
    "drift-sea": _Source("river_rows.sea", "River's SEA with a tenth of the labels wrong: variant 0, 3, 0"),
    "drift-agrawal": _Source("river_rows.agrawal", "River's Agrawal: rule 0, 4, 0"),
    "drift-hyperplane": _Source("river_rows.hyperplane", "River's Hyperplane, five of ten weights moving"),
    "drift-rbf": _Source("river_rows.moving_centroids", "River's RandomRBFDrift, all twenty centroids moving"),
    "drift-image-segments": _Source("river_rows.image_segments", "Segments of outdoor images, seven classes"),
    "drift-phishing": _Source("river_rows.phishing", "Websites, phishing or not"),
    "drift-water-flow": _Source("river_rows.water_flow", "Regression: the flow of water, hour by hour", "values"),
    "drift-approval": _Source("river_rows.approval", "Regression: approval, by day and polls", "values"),
}
"""Every scenario of rows by its name; those after `drift-sign` need ``cndpm[river]``."""

FILED = {
    "electricity": "Whether the price of electricity rises, half-hour by half-hour; needs your file",
    "covertype": "What grows on a patch of forest; needs your file",
    "insects-abrupt": "Which insect flies by while the temperature jumps; needs your file",
    "insects-gradual": "Which insect flies by while the temperature changes gradually; needs your file",
    "insects-incremental": "Which insect flies by while the temperature rises; needs your file",
}
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

    @property
    def endless(self) -> bool:
        """False: rows come to an end."""
        return False

    @property
    def has_tests(self) -> bool:
        """False: there are no test sets, so that runs are evaluated prequentially."""
        return False

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


def drift_scenario(name: str, batch_size: int = 10) -> DriftScenario:
    """Returns the recipe of this name."""
    summary = DRIFTS[name].summary if name in DRIFTS else FILED[name]
    return DriftScenario(name=name, summary=summary, rows=name, batch_size=batch_size)
