"""Common to the models for river: parameters, the estimator inside, and rows made of named features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.estimators.arrays import readable, whole_number
from cndpm.estimators.base import Estimator
from cndpm.estimators.missing import fill_missing
from cndpm.estimators.parameters import check_names, with_known_names
from cndpm.estimators.weights import HEAVIEST
from cndpm.model.cndpm import CNDPM
from cndpm.model.events import Event
from cndpm.model.extremes import LARGEST
from cndpm.river.columns import Columns, Floats, Rows
from cndpm.river.kept import Kept, held_bytes
from cndpm.state.tree import attach_tensors, detach_tensors

_KEPT = 2000
"""Rows that a model can be founded anew on when columns have come."""
_SOON, _SHARE = 10, 8
"""Rows for which a new column waits: as many, but at least one in `_SHARE` of those learned so far."""


class _Row(NamedTuple):
    """A row (1, d) with its target and weight."""

    values: Rows
    y: Any
    weight: float = 1.0


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
    """

    _estimator: ClassVar[type[Estimator]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        with_known_names(cls)
        if cls.__doc__ and "memory_size:" not in cls.__doc__:
            arguments = (Mixture.__doc__ or "").partition("Args:")[2].partition("\n\n")[0]
            cls.__doc__ = cls.__doc__.replace("\n\n    Example:", f"\n\n    Args:{arguments}\n\n    Example:", 1)

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Refuses names that are no parameters, with those that look alike."""
        check_names(cls, given)
        return super().__new__(cls)

    def __init__(
        self,
        memory_size: int = 500,
        settings: dict[str, Any] | None = None,
        seed: int = 0,
        batch_size: int = 10,
        surprise: float = 0.5,
    ) -> None:
        whole_number(batch_size, "batch_size", least=1)
        if not isinstance(surprise, int | float) or isinstance(surprise, bool) or not surprise >= 0:
            raise ValueError(f"surprise must be a number of nats, at least 0; got {surprise!r}")
        self.memory_size = memory_size
        self.settings = settings
        self.seed = seed
        self.batch_size = batch_size
        self.surprise = surprise
        self.estimator = self._made()
        self.estimator._check(anew=True)
        self._columns = Columns()
        self._n_used = 0
        self._n_learned = 0
        self._first_unused = 0
        self._kept: Kept[_Row] = Kept(_KEPT, seed)
        self._waiting: list[_Row] = []
        self._surprised = 0.0
        self._asked: tuple[Rows, Floats] | None = None
        self._has_drifted = False

    @property
    def n_experts(self) -> int:
        """Number of experts so far."""
        return self.estimator.n_experts_ if self._has_learned else 0

    @property
    def events(self) -> list[Event]:
        """The events of the experts in order; see :class:`cndpm.model.events.Event`."""
        return self.estimator.events_ if self._has_learned else []

    @property
    def drift_detected(self) -> bool:
        """Whether the latest call that learned founded a rule or an expert, the first aside, or brought one back."""
        return self._has_drifted

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes that the model holds, tensors and all."""
        return held_bytes(self)

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
        if self._asked is None or not np.array_equal(self._asked[0], row):
            self._asked = row, self._answers(torch.from_numpy(row))[0]
        return self._asked[1]

    def _answers(self, rows: Tensor) -> Floats:
        """Returns the learner's answers to rows (n, d) as numbers, (n, ...)."""
        raise NotImplementedError

    def _surprise(self, answer: Floats, y: Any) -> float:
        """Returns by how many nats a target contradicts the answer to its row, more than the answer itself expects."""
        raise NotImplementedError

    def _fits(self, y: Any) -> bool:
        """Returns whether the learner can learn a target as it is; the estimator makes room for others, or refuses."""
        return True

    def _are_sound(self, targets: list[Any]) -> bool:
        """Returns whether none of many targets would be refused; or refuses them itself."""
        return all(map(self._fits, targets))

    def _take(self, x: Mapping[Any, Any], y: Any, weight: float = 1.0) -> None:
        """Learns features by name with a target as the estimator takes it, or has them wait for others."""
        with readable("w"):
            if not isinstance(weight, int | float | np.number) or not 0 <= weight <= HEAVIEST:
                raise ValueError(f"w is how often a row counts, from 0 to {HEAVIEST}; got {weight!r}")
            weight = float(weight)
        with self._all_or_nothing():
            self._columns, values = self._columns.taking(x)
            if weight:
                self._take_row(_Row(values, y, weight))

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Gives the columns back that a call brought which was refused."""
        before, self._has_drifted = self._columns, False
        try:
            yield
        except BaseException:
            self._columns = before
            raise

    def _take_row(self, row: _Row) -> None:
        # What the estimator refuses, completes or sets aside does not wait: many of them it would refuse.
        asked = row.values[:, : self._n_used]
        if not self._has_learned or not _is_plain(asked) or not self._fits(row.y):
            self._learn_together([row], is_plain=False)
            return
        is_last = self.n_waiting + 1 >= self.batch_size
        more = 0.0 if is_last else row.weight * self._surprise(self._answer(asked), row.y)
        surprised = max(0.0, self._surprised + more)
        if is_last or surprised > self.surprise:
            self._learn_together([row])
        else:
            self._waiting, self._surprised, self._asked = [*self._waiting, row], surprised, None

    def _take_many(self, X: Any, targets: list[Any] | None = None) -> None:
        """Takes the rows of a table (n, d) of pandas, one after the other; a refused one changes nothing."""
        with self._all_or_nothing():
            records = records_of(X)
            targets = [None] * len(records) if targets is None else targets
            if len(records) != len(targets):
                raise ValueError(f"X and y must have as many rows; got {len(records)} and {len(targets)}")
            for x in records:
                self._columns = self._columns.taking(x)[0]
            rows = [_Row(self._columns.row(x), y) for x, y in zip(records, targets, strict=True)]
            if self._are_sound(targets) and not any((np.abs(row.values) > LARGEST).any() for row in rows):
                for row in rows:
                    self._take_row(row)
            else:  # the estimator refuses them all, or sets some aside
                self._learn_together(rows, is_plain=False)

    def _learn_together(self, latest: list[_Row], *, is_plain: bool = True) -> None:
        """Learns all rows that wait and the latest, or none of them; `is_plain` if these could have waited, too."""
        rows = [*self._waiting, *latest]
        if not rows:
            return
        waited = self._n_learned - self._first_unused  # founding anew costs all kept rows, so new columns wait
        is_time = len(self._columns) > self._n_used and waited >= max(_SOON, self._n_learned // _SHARE)
        if not self._has_learned or is_time:
            self._found([*self._kept, *rows])
        else:
            n_before = self._learner.events.n_samples
            values = (rows[0].values if is_plain and len(rows) == 1 else self._values(rows))[:, : self._n_used]
            self._learn(self.estimator, values if is_plain else self._known(values), rows, is_plain=is_plain)
            self._has_drifted |= any(e.sample > n_before and _is_drift(e) for e in self._learner.events.events[-10:])
        for row in rows:
            self._kept.add(row)
        self._n_learned += len(rows)
        if len(self._columns) == self._n_used:
            self._first_unused = self._n_learned
        self._waiting, self._surprised, self._asked = [], 0.0, None

    def _found(self, rows: list[_Row]) -> None:
        """Makes an estimator of all columns that have come, and has it learn rows.

        Rows with a value that is too large, which came in a column that was not in use, are left out: by them gaps of
        others would be filled.
        """
        rows = [row for row in rows if not (np.abs(row.values) > LARGEST).any()] or rows
        values = self._values(rows)
        is_whole = ~np.isnan(values).any(axis=1)
        if self._has_learned:
            is_empty: NDArray[np.bool_] = np.asarray(np.isnan(values).all(axis=1))
            if is_empty.any():  # nothing is known of a row: it has the means of the columns
                values = np.where(is_empty[:, None], np.nanmean(values[~is_empty], axis=0), values)
            values = fill_missing(values, values[is_whole])
        made = self._made()
        made.batch_size = max(self.batch_size, _SOON)
        self._learn(made, values, rows, is_plain=False)
        made.batch_size = self.batch_size
        self.estimator, self._n_used = made, len(self._columns)

    def _learn(self, estimator: Any, values: Rows, rows: list[_Row], *, is_plain: bool) -> None:
        """Has an estimator learn values (n, d) with the targets and weights of rows, `is_plain` without a check."""
        if "_learner" in vars(estimator) and estimator._learner.places is not None:
            estimator._learner.places.row_by_row = True
        weights, targets = [row.weight for row in rows], [row.y for row in rows]
        if self._estimator._target == "none":
            estimator.partial_fit(values)
        elif any(weight != 1 for weight in weights):
            estimator.partial_fit(values, targets, sample_weight=weights)
        elif is_plain:
            estimator._learn_known(values, targets)
        else:
            estimator.partial_fit(values, targets)

    def _values(self, rows: list[_Row]) -> Rows:
        """Returns rows in all columns that have come, (n, d)."""
        return np.concatenate([self._columns.widened(row.values) for row in rows])

    def _row(self, x: Mapping[Any, Any]) -> Rows:
        """Returns features as a row of the columns in use, (1, d)."""
        return self._columns.row(x)[:, : self._n_used]

    def _known(self, rows: Rows) -> Rows:
        """Returns rows (n, d); one of which nothing is known has the mean of the known rows."""
        empty = np.isnan(rows).all(axis=1)
        if empty.any() and self._learner.watch is not None:
            rows[empty] = self._learner.watch.rows.mean(axis=0)
        return rows

    def __getstate__(self) -> dict[str, Any]:
        # Arrays, whose pickle is the same each time; that of a tensor is not.
        tensors: dict[str, Tensor] = {}
        tree = detach_tensors(self.estimator._exported(), tensors) if self._has_learned else None
        learned = tree, {name: tensor.numpy() for name, tensor in tensors.items()}
        return {**vars(self), "estimator": None, "_asked": None, "_learned": learned}

    def __setstate__(self, state: dict[str, Any]) -> None:
        tree, arrays = state["_learned"]
        vars(self).update({name: value for name, value in state.items() if name != "_learned"})
        self.estimator = self._made()
        if tree is not None:
            self.estimator._import(attach_tensors(tree, {name: torch.tensor(each) for name, each in arrays.items()}))

    def _made(self) -> Estimator:
        given: dict[str, Any] = {"memory_size": self.memory_size, "settings": self.settings, "random_state": self.seed}
        return self._estimator(**given, batch_size=self.batch_size, device="cpu")

    @classmethod
    def _unit_test_params(cls) -> Iterable[dict[str, Any]]:
        yield {"memory_size": 50}


def _is_drift(event: Event) -> bool:
    return "rule" in event.kind or event.kind == "returned" or (event.kind == "founded" and event.expert > 0)


def _is_plain(row: Rows) -> bool:
    """Returns whether a row (1, d) has no gaps and nothing that is too large."""
    return bool((np.abs(row) <= LARGEST).all())


def admit_table(X: Any) -> None:
    """Refuses what is no table."""
    with readable("X"):
        if not (hasattr(X, "columns") and hasattr(X, "index")):
            raise TypeError(f"X is a pandas table whose columns are the features; got a {type(X).__name__}")


def records_of(X: Any) -> list[Mapping[Any, Any]]:
    """Returns the rows of a table as dictionaries."""
    admit_table(X)
    with readable("X"):
        names = list(X.columns)
        columns = [X[name].to_numpy().tolist() for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
