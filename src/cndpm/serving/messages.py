"""Bodies of requests and answers, as the OpenAPI page shows them; :mod:`cndpm.serving.bodies` reads requests."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cndpm.experts.pool.class_pool import When

_FORBID = ConfigDict(extra="forbid")
_ROWS = (
    "Rows of numbers, each as long as those the model has learned, in the same order; null where a value is missing, "
    "texts where a column has categories."
)


class Asked(BaseModel):
    """Rows that are asked about."""

    model_config = _FORBID

    X: list[list[float | str | None]] = Field(description=_ROWS)


class AskedWhen(Asked):
    """Rows that are asked about, and which time the answers are for."""

    when: When = Field(
        default="now",
        description="`now` by the rule that holds now; `next` for the rows that come next in the stream, whose labels "
        "follow to /learn; `any` as if any time of the stream were equally likely.",
    )


class Taught(BaseModel):
    """Rows to learn."""

    model_config = _FORBID

    X: list[list[float | str | None]] = Field(description=_ROWS)
    y: list[bool | int | float | str | list[float] | None] | None = Field(
        default=None, description="A label or target for every row; none for densities."
    )
    id: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Of this request. One that comes again, since its answer was lost, is not learned twice; one with "
        "other rows is refused.",
    )


class Predicted(BaseModel):
    """Answers, one entry for each row."""

    prediction: list[Any] = Field(description="Labels, means, or 1 for known and -1 for new rows.")
    proba: list[list[float | None]] | None = Field(default=None, description="Probabilities, in the order of classes.")
    classes: list[Any] | None = Field(default=None, description="The labels met so far.")
    std: list[Any] | None = Field(default=None, description="Standard deviations of targets.")
    log_density: list[float | None] | None = Field(default=None, description="Of densities.")


class Explained(BaseModel):
    """Explanations, one entry for each row; see :class:`cndpm.estimators.explanation.Explanation`."""

    expert: list[int]
    expert_proba: list[float | None]
    prediction: list[Any]
    novelty: list[float | None]
    proba: list[float | None] | None = None
    std: list[Any] | None = None
    log_density: list[float | None] | None = None


class Learned(BaseModel):
    """Acknowledges rows: they are learned and on the disk."""

    n_rows: int
    record: int = Field(description="Number of the call of partial_fit that learned them.")
    row: int = Field(description="Which row of that call is their first.")


class Events(BaseModel):
    """Events of the experts; see :class:`cndpm.model.events.Event`."""

    events: list[dict[str, Any]]
    n_samples: int = Field(description="Samples learned so far; give it as `since` to see later events.")


class Health(BaseModel):
    """Tells whether the server answers and learns."""

    status: Literal["ok", "failed"]
    reason: str | None = Field(default=None, description="Why nothing more is learned.")
