"""Changes of a learner that estimators make, as steps that can be done again, and draws from it."""

from __future__ import annotations

from torch import Tensor

from cndpm.estimators.arrays import admit_number, whole_number
from cndpm.estimators.fit_progress import progress_of
from cndpm.estimators.journal import Between, Step
from cndpm.model.cndpm import CNDPM


def learning(x: Tensor, y: Tensor | None, batch_size: int, *, verbose: bool = False) -> Step:
    """Returns the step that learns samples, which nobody else changes, batch by batch."""

    def run(learner: CNDPM, between: Between | None) -> None:
        with progress_of(learner, len(x), verbose=verbose) as advance:
            learner.learn_block(x, y, batch_size, after_batch=_both(between, advance))

    return Step(run, n_bytes=_n_bytes(x, y))


def _both(first: Between | None, second: Between | None) -> Between | None:
    """Returns what calls two functions, of which there may be none."""
    if first is None or second is None:
        return first or second

    def call(n: int) -> None:
        first(n)
        second(n)

    return call


def pruning(x: Tensor, y: Tensor | None, threshold: float) -> Step:
    """Returns the step that removes experts which are redundant on given data; it returns the merges."""
    least = admit_number(threshold, "threshold")
    return Step(lambda learner, _: learner.prune(x, y, threshold=least), n_bytes=_n_bytes(x, y))


def consolidate(learner: CNDPM) -> None:
    """Sleeps on what waits in the memory, and makes answers exact until more is learned."""
    learner.consolidate()
    learner.finish()


def draw(learner: CNDPM, n_samples: int, random_state: int) -> tuple[Tensor, Tensor | None, Tensor]:
    """Draws samples; see :meth:`cndpm.model.cndpm.CNDPM.sample`."""
    n = whole_number(n_samples, "n_samples", least=1, most=1 << 31)
    return learner.sample(n, seed=whole_number(random_state, "random_state", least=0, most=(1 << 63) - 1))


def _n_bytes(x: Tensor, y: Tensor | None) -> int:
    return x.nbytes + (0 if y is None else y.nbytes)
