"""Common to the models for river: parameters, the estimator inside, and rows made of named features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.estimators.base import Estimator
from cndpm.model.cndpm import CNDPM
from cndpm.model.events import Event
from cndpm.river.columns import Columns

__all__ = ["Mixture"]


class Mixture:
    """Holds an estimator that learns rows one by one; abstract.

    Args:
        memory_size: Samples gathered before a new expert is made of them.
        settings: Any other setting, by name; see :class:`cndpm.model.settings.CNDPMSettings`.
        seed: Of every random choice.

    Attributes:
        estimator: The estimator for scikit-learn inside, with all its answers.

    Example:
        >>> from cndpm.river import CNDPMClassifier
        >>> issubclass(CNDPMClassifier, Mixture)
        True
    """

    _estimator: ClassVar[type[Estimator]]

    def __init__(self, memory_size: int = 500, settings: dict[str, Any] | None = None, seed: int = 0) -> None:
        self.memory_size = memory_size
        self.settings = settings
        self.seed = seed
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

    def _known(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Returns rows (n, d); one of which nothing is known has the mean of the known rows."""
        empty = np.isnan(rows).all(axis=1)
        if self._has_learned and empty.any() and self._learner.watch is not None:
            rows[empty] = self._learner.watch.rows.mean(axis=0)
        return rows

    def _learn(self, row: NDArray[np.float32], y: Tensor | None) -> None:
        """Learns one row (1, d) with its target; the estimator has learned before."""
        self._learner.learn_block(torch.tensor(row), y, 1)

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
        return self._estimator(**given, batch_size=1, device="cpu")

    def _rows(self, X: Any) -> NDArray[np.float32]:
        """Returns a table (n, d) with named columns as rows to learn."""
        return self._known(np.concatenate([self._columns.learn(x) for x in _records(X)]))

    def _rows_asked(self, X: Any) -> NDArray[np.float32]:
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
