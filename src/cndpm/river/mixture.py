"""Common to the models for river: parameters, the estimator inside, and rows made of named features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cndpm.estimators.arrays import readable
from cndpm.estimators.base import Estimator
from cndpm.model.cndpm import CNDPM
from cndpm.model.events import Event
from cndpm.model.inputs import LARGEST
from cndpm.river.columns import Columns, Floats, Rows

__all__ = ["Mixture"]


class Mixture:
    """Holds an estimator that learns rows one by one; abstract.

    Args:
        memory_size: Samples gathered before a new expert is made of them.
        settings: Any other setting, by name; see :class:`cndpm.model.settings.CNDPMSettings`.
        seed: Of every random choice.
        batch_size: Rows that are learned at once, at most. Those that come wait, and count in no answer, until there
            are as many, or they surprise, or :meth:`learn_waiting` is called; 1 learns every row as it comes.
        surprise: Nats by which rows may contradict the answers to them, beyond what these expect, before they are
            learned; infinity has all wait for each other.

    Attributes:
        estimator: The estimator for scikit-learn inside, with all its answers.

    Example:
        >>> from cndpm.river import CNDPMClassifier
        >>> issubclass(CNDPMClassifier, Mixture)
        True
    """

    _estimator: ClassVar[type[Estimator]]

    def __init__(
        self,
        memory_size: int = 500,
        settings: dict[str, Any] | None = None,
        seed: int = 0,
        batch_size: int = 10,
        surprise: float = 0.5,
    ) -> None:
        if type(batch_size) is not int or batch_size < 1:
            raise ValueError(f"batch_size must be a whole number of rows, at least 1; got {batch_size!r}")
        if not isinstance(surprise, int | float) or isinstance(surprise, bool) or not surprise >= 0:
            raise ValueError(f"surprise must be a number of nats, at least 0; got {surprise!r}")
        self.memory_size = memory_size
        self.settings = settings
        self.seed = seed
        self.batch_size = batch_size
        self.surprise = surprise
        self._waiting: list[tuple[Rows, Any]] = []
        self._surprised = 0.0
        self._asked: list[tuple[Rows, Floats]] = []
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

    def _answer(self, row: Rows) -> Floats:
        """Returns the learner's answer to a row (1, d); answers are kept until something is learned."""
        known = next((answer for asked, answer in self._asked if np.array_equal(asked, row)), None)
        if known is None:
            known = self._answers(torch.from_numpy(row))[0]
            self._asked = [(row, known)]
        return known

    def _answers(self, rows: Tensor) -> Floats:
        """Returns the learner's answers to rows (n, d) as numbers, (n, ...)."""
        raise NotImplementedError

    def _surprise(self, answer: Floats, y: Any) -> float:
        """Returns by how many nats a target contradicts the answer to its row, more than the answer itself expects."""
        raise NotImplementedError

    def _fits(self, y: Any) -> bool:
        """Returns whether the learner can learn a target as it is; the estimator makes room for others, or refuses."""
        raise NotImplementedError

    def _are_sound(self, targets: list[Any]) -> bool:
        """Returns whether none of many targets would be refused; or refuses them itself."""
        raise NotImplementedError

    def _take(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learns a row, or has it wait for others; one that is refused changes nothing.

        Args:
            x: Its features by name.
            y: Its target, as the estimator takes it; None where there are none.
        """
        before = self._columns.names
        try:
            self._take_row(self._columns.learn(x), y)
        except BaseException:
            self._columns.names = before
            raise

    def _take_row(self, row: Rows, y: Any) -> None:
        # What the estimator refuses, completes or sets aside does not wait: many of them it would refuse.
        if not self._has_learned or not _is_plain(row) or not self._fits(y):
            self._learn_together([(row, y)])
            return
        is_last = self.n_waiting + 1 >= self.batch_size
        surprised = 0.0 if is_last else max(0.0, self._surprised + self._surprise(self._answer(row), y))
        if is_last or surprised > self.surprise:
            self._learn_together([(row, y)])
        else:
            self._waiting, self._surprised = [*self._waiting, (row, y)], surprised

    def _take_many(self, X: Any, targets: list[Any]) -> None:
        """Takes the rows of a table (n, d) with named columns, one after the other; a refused one changes nothing.

        Args:
            X: A pandas table.
            targets: Of its rows; None each where there are none.
        """
        before = self._columns.names
        try:
            rows = [self._columns.learn(x) for x in _records(X)]
            if len(rows) != len(targets):
                raise ValueError(f"X and y must have as many rows; got {len(rows)} and {len(targets)}")
            if self._are_sound(targets) and not any((np.abs(row) > LARGEST).any() for row in rows):
                self._take_rows(rows, targets)
            else:  # the estimator refuses them all, or sets some aside
                self._learn_together(list(zip(rows, targets, strict=True)))
        except BaseException:
            self._columns.names = before
            raise

    def _take_rows(self, rows: list[Rows], targets: list[Any]) -> None:
        """Takes rows (1, d) and targets that will not be refused; answers to rows of a batch are asked for at once."""
        for i, (row, y) in enumerate(zip(rows, targets, strict=True)):
            if not self._asked and self._has_learned and self.batch_size > 1:
                ahead = [row for row in rows[i : i + self.batch_size - self.n_waiting] if _is_plain(row)]
                answers = self._answers(torch.from_numpy(np.concatenate(ahead))) if ahead else ()
                self._asked = list(zip(ahead, answers, strict=True))
            self._take_row(row, y)

    def _learn_together(self, latest: list[tuple[Rows, Any]]) -> None:
        """Learns all rows that wait and the latest (1, d), with their targets, or none of them."""
        pairs = [*self._waiting, *latest]
        if not pairs:
            return
        rows, targets = self._known(np.concatenate([row for row, _ in pairs])), [y for _, y in pairs]
        self.estimator.partial_fit(rows, *(() if self._estimator._target == "none" else (targets,)))
        self._waiting, self._surprised, self._asked = [], 0.0, []

    def _known(self, rows: Rows) -> Rows:
        """Returns rows (n, d); one of which nothing is known has the mean of the known rows."""
        empty = np.isnan(rows).all(axis=1)
        if self._has_learned and empty.any() and self._learner.watch is not None:
            rows[empty] = self._learner.watch.rows.mean(axis=0)
        return rows

    def __getstate__(self) -> dict[str, Any]:
        # Arrays, whose pickle is the same each time; that of a tensor is not.
        learned = _converted(self.estimator._exported(), Tensor, Tensor.numpy) if self._has_learned else None
        return {**vars(self), "estimator": None, "_asked": [], "_learned": learned}

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


def _is_plain(row: Rows) -> bool:
    """Returns whether a row (1, d) has no gaps and nothing that is too large."""
    return bool((np.abs(row) <= LARGEST).all())


def _records(X: Any) -> list[Mapping[Any, Any]]:
    """Returns the rows of a table as dictionaries."""
    if not hasattr(X, "columns"):
        raise TypeError(f"X is a pandas table whose columns are the features; got a {type(X).__name__}")
    with readable("X"):
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
