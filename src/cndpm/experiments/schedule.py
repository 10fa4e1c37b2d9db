"""When a run evaluates and logs: at the end of every stage, and at points spread evenly over the stream."""

from __future__ import annotations

from dataclasses import dataclass

from cndpm.streams import Stream

__all__ = ["Schedule", "evenly_spaced"]


@dataclass(frozen=True)
class Schedule:
    """Steps count learned batches: step 1 is after the first batch.

    Attributes:
        n_batches: Where the run ends.
        stage_ends: Steps after which a stage is over, the last one of the run included.
        evaluations: Steps to evaluate after; the end is not among them, it is evaluated when the learner has finished.
        log_points: Steps to write a line of progress after, the ends of stages among them.
    """

    n_batches: int
    stage_ends: frozenset[int]
    evaluations: frozenset[int]
    log_points: frozenset[int]

    @classmethod
    def of(cls, stream: Stream, *, n_batches: int, evaluations: int, log_points: int) -> Schedule:
        """The schedule of a run over the first `n_batches` batches of a stream."""
        ends = {i for i in range(1, n_batches) if stream.stage_of(i) != stream.stage_of(i - 1)} | {n_batches}
        return cls(
            n_batches=n_batches,
            stage_ends=frozenset(ends),
            evaluations=frozenset(ends | evenly_spaced(n_batches, evaluations)) - {n_batches},
            log_points=frozenset(ends | evenly_spaced(n_batches, log_points)),
        )


def evenly_spaced(n_batches: int, points: int) -> frozenset[int]:
    """At most `points` steps from 1 to `n_batches`, evenly spaced, the last one included.

    Example:
        >>> sorted(evenly_spaced(10, 4))
        [2, 5, 8, 10]
    """
    return frozenset(round(n_batches * (i + 1) / points) for i in range(points)) - {0}
