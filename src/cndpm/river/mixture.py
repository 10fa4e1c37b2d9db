"""Common to the models for river: parameters, the estimator inside, and rows made of named features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cndpm.estimators.base import Estimator
from cndpm.model.cndpm import CNDPM
from cndpm.model.events import Event
from cndpm.model.inputs import LARGEST
from cndpm.river.columns import Columns, Rows

__all__ = ["Mixture"]


class Mixture:
    """Holds an estimator that learns rows one by one; abstract.

    Args:
        memory_size: Samples gathered before a new expert is made of them.
        settings: Any other setting, by name; see :class:`cndpm.model.settings.CNDPMSettings`.
        seed: Of every random choice.
        batch_size: Rows that are learned at once. Those that come wait, and count in no answer, until there are as
            many or :meth:`learn_waiting` is called; more cost less time, and see a change later.

    Attributes:
        estimator: The estimator for scikit-learn inside, with all its answers.

    Example:
        >>> from cndpm.river import CNDPMClassifier
        >>> issubclass(CNDPMClassifier, Mixture)
        True
    """

    _estimator: ClassVar[type[Estimator]]

    def __init__(
        self, memory_size: int = 500, settings: dict[str, Any] | None = None, seed: int = 0, batch_size: int = 1
    ) -> None:
        if type(batch_size) is not int or batch_size < 1:
            raise ValueError(f"batch_size must be a whole number of rows, at least 1; got {batch_size!r}")
        self.memory_size = memory_size
        self.settings = settings
        self.seed = seed
        self.batch_size = batch_size
        self._waiting: list[tuple[Rows, Any]] = []
        self.estimator = self._made()
        self._columns = Columns()

    @property
    def n_experts(self) -> int:
        """Number of experts so far."""
        return self.estimator.n_experts_ if self._has_learned else 0

    @property
    def events(self) -> list[Event]:
        """The events of the experts in order; see :class:`cndpm.model.events.Event`."""
        return self.estimator.events_ if self._has_learned else []

    @property
    def _has_learned(self) -> bool:
        return "_learner" in vars(self.estimator)

    @property
    def _learner(self) -> CNDPM:
        """The learner itself: river's rows come from one thread, and need none of the estimator's care for many."""
        learner: CNDPM = vars(self.estimator)["_learner"]
        return learner

    @property
    def n_waiting(self) -> int:
        """Rows that have come and are not learned yet: fewer than `batch_size`."""
        return len(self._waiting)

    def learn_waiting(self) -> None:
        """Learns the rows that wait, for instance at the end of a stream; has no effect where none do."""
        self._learn_together([])

    def _alone(self, x: Mapping[Any, Any]) -> Rows | None:
        """Returns features as a row, (1, d), that can be learned by itself without the estimator; None for others."""
        if self.batch_size > 1 or not self._has_learned:
            return None
        row = self._columns.row(x)
        return None if np.isnan(row).any() else row

    def _learn(self, row: Rows, y: Tensor | None) -> None:
        """Learns one row (1, d) with its target; the estimator has learned before."""
        self._learner.learn_block(torch.tensor(row), y, 1)

    def _take(self, x: Mapping[Any, Any], y: Any, *, at_once: bool) -> None:
        """Learns a row, or has it wait for others; one that is refused changes nothing.

        Args:
            x: Its features by name.
            y: Its target, as the estimator takes it; None where there are none.
            at_once: Whether it may not wait.
        """
        before = self._columns.names
        try:
            row = self._columns.learn(x)
            # What the estimator refuses, completes or sets aside does not wait: many of them it would refuse.
            is_plain = bool((np.abs(row) <= LARGEST).all())
            if at_once or not is_plain or self.n_waiting + 1 >= self.batch_size:
                self._learn_together([(row, y)])
            else:
                self._waiting = [*self._waiting, (row, y)]
        except BaseException:
            self._columns.names = before
            raise

    def _take_many(self, X: Any, targets: list[Any]) -> None:
        """Learns those that wait and a table (n, d) with named columns, in batches; a refused one changes nothing.

        Args:
            X: A pandas table.
            targets: Of its rows; None each where there are none.
        """
        before = self._columns.names
        try:
            rows = [self._columns.learn(x) for x in _records(X)]
            self._learn_together(list(zip(rows, targets, strict=True)))
        except BaseException:
            self._columns.names = before
            raise

    def _learn_together(self, latest: list[tuple[Rows, Any]]) -> None:
        """Learns all rows that wait and the latest (1, d), with their targets."""
        pairs = [*self._waiting, *latest]
        if not pairs:
            return
        rows, targets = self._known(np.concatenate([row for row, _ in pairs])), [y for _, y in pairs]
        self.estimator.partial_fit(rows, *(() if targets[0] is None else (targets,)))
        self._waiting = []

    def _known(self, rows: Rows) -> Rows:
        """Returns rows (n, d); one of which nothing is known has the mean of the known rows."""
        empty = np.isnan(rows).all(axis=1)
        if self._has_learned and empty.any() and self._learner.watch is not None:
            rows[empty] = self._learner.watch.rows.mean(axis=0)
        return rows

    def __getstate__(self) -> dict[str, Any]:
        # Arrays, whose pickle is the same each time; that of a tensor is not.
        learned = _converted(self.estimator._exported(), Tensor, Tensor.numpy) if self._has_learned else None
        return {**vars(self), "estimator": None, "_learned": learned}

    def __setstate__(self, state: dict[str, Any]) -> None:
        learned = state["_learned"]
        vars(self).update({name: value for name, value in state.items() if name != "_learned"})
        self.estimator = self._made()
        if learned is not None:
            self.estimator._import(_converted(learned, np.ndarray, torch.tensor))

    def _made(self) -> Estimator:
        given: dict[str, Any] = {"memory_size": self.memory_size, "settings": self.settings, "random_state": self.seed}
        return self._estimator(**given, batch_size=self.batch_size, device="cpu")

    def _rows_asked(self, X: Any) -> Rows:
        return self._known(np.concatenate([self._columns.row(x) for x in _records(X)]))

    @classmethod
    def _unit_test_params(cls) -> Iterable[dict[str, Any]]:
        yield {"memory_size": 50}


def _records(X: Any) -> list[Mapping[Any, Any]]:
    """Returns the rows of a table as dictionaries."""
    names = list(X.columns)
    columns = [X[name].to_numpy().tolist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _converted(tree: Any, kind: type, convert: Callable[[Any], Any]) -> Any:
    """Returns a tree of dictionaries and lists with all leaves of a kind converted."""
    if isinstance(tree, dict):
        return {key: _converted(value, kind, convert) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_converted(value, kind, convert) for value in tree]
    return convert(tree) if isinstance(tree, kind) else tree
