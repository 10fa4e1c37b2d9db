"""Answers of a model as plain values, which JSON can hold, and rows as they come from JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm.estimators.arrays import admit_magnitude
from cndpm.estimators.base import Estimator
from cndpm.estimators.classifier import CNDPMClassifier
from cndpm.estimators.density import CNDPMDensity
from cndpm.estimators.readers import ProjectedRows, ReadRows, TableRows
from cndpm.estimators.regressor import CNDPMRegressor
from cndpm.experts.pool.class_pool import When
from cndpm.serving.batcher import Answered

_KINDS = frozenset({int, float, bool, type(None)})
_SHOWN = 3
"""Mistakes that an error names; the others are counted."""


def rows(X: Sequence[Sequence[Any]], model: Estimator, *, most: int) -> NDArray[np.float32]:
    """Returns rows as a model reads them, (n, width), with NaN where a value is missing (None).

    ValueError: there are more than `most` or none, a row has another length, or a value is not of its column's kind,
    not finite or too large.
    """
    if not 1 <= len(X) <= most:
        raise ValueError(f"a request has between 1 and {most} rows; got {len(X)}. Send several requests.")
    wrong = [(i, len(row)) for i, row in enumerate(X) if len(row) != model.n_features_in_]
    if wrong:
        first = ", ".join(f"row {i} has {n}" for i, n in wrong[:_SHOWN])
        raise ValueError(
            f"every row has {model.n_features_in_} values; {len(wrong)} of {len(X)} rows have not: {first}"
        )
    reader = model._reader
    read = reader.from_lists(X) if isinstance(reader, TableRows) else _numbers(X)
    if np.isnan(read).any():
        _admit_gaps(read, model)
    admit_magnitude(np.nan_to_num(read), "X")
    return reader(read) if isinstance(reader, ProjectedRows) else read.astype(np.float32)


def _numbers(X: Sequence[Sequence[Any]]) -> NDArray[np.float64]:
    """Returns rows of numbers as an array."""
    wrong = [i for i, row in enumerate(X) if not _KINDS.issuperset(map(type, row))]
    if wrong:
        raise ValueError(
            f"X holds numbers and null; {len(wrong)} of {len(X)} rows hold something else, first {wrong[0]}"
        )
    try:
        array = np.array(X, dtype=np.float64)
    except OverflowError:
        raise ValueError("X holds a whole number that is too large") from None
    if np.isinf(array).any():
        row, column = np.argwhere(np.isinf(array))[0]
        raise ValueError(f"X[{row}, {column}] is too large; numbers must be finite, or null where one is missing")
    return array


def _admit_gaps(read: NDArray[Any], model: Estimator) -> None:
    """Refuses missing values where a model cannot complete them."""
    if model.n_exemplars == 0 or isinstance(model._reader, ProjectedRows):
        raise ValueError("X holds null, a missing value, which this model cannot complete: it keeps no rows")
    if (empty := np.isnan(read).all(axis=1)).any():
        raise ValueError(f"row {int(empty.argmax())} holds nothing but null: nothing is known of it. Leave it out.")


def learnable(model: Estimator, y: Sequence[Any] | None, n_rows: int) -> list[Any] | None:
    """Returns labels or targets that can be given to `partial_fit`.

    ValueError: they are missing, not wanted, not as many as the rows, or (targets) not finite.
    """
    if isinstance(model, CNDPMDensity):
        if y is not None:
            raise ValueError("this model is a density and learns rows without y; leave y out")
        return None
    if y is None:
        raise ValueError("y is missing: one label or target for every row")
    if len(y) != n_rows:
        raise ValueError(f"X and y must have as many entries; got {n_rows} rows and {len(y)} in y")
    if isinstance(model, CNDPMRegressor):
        try:
            targets = np.array(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("y must be numbers: this model predicts values") from None
        except OverflowError:
            raise ValueError("y holds a whole number that is too large") from None
        if not np.isfinite(targets).all():
            raise ValueError("y must be finite numbers")
        return list(targets.tolist())
    return list(y)


def predictions(model: Estimator, X: NDArray[np.float32], when: When = "now", *, n_before: int = 0) -> Answered:
    """Returns a model's answers for :func:`rows`: labels and probabilities, means and deviations, or densities.

    With `when="next"` they come after the latest rows learned and `n_before` others, whose labels are not known yet.
    """
    read: Any = ReadRows(np.concatenate([X[:1].repeat(n_before, axis=0), X]))
    columns, shared = _predicted(model, read, when)
    return {name: values[n_before:] for name, values in columns.items()}, shared


def _predicted(model: Estimator, X: Any, when: When) -> Answered:
    if isinstance(model, CNDPMClassifier):
        return _classified(model, X, when)
    if isinstance(model, CNDPMRegressor):
        mean, std = model.predict(X, return_std=True, when=when)
        return {"prediction": _plain(mean), "std": _plain(std)}, {}
    assert isinstance(model, CNDPMDensity)
    return {"prediction": model.predict(X).tolist(), "log_density": _plain(model.score_samples(X))}, {}


def _classified(model: CNDPMClassifier, X: Any, when: When) -> Answered:
    """Returns labels and probabilities; asks again where another thread has met a new label in between."""
    while True:
        classes, log_proba = model.classes_, model.predict_log_proba(X, when=when)
        if log_proba.shape[1] == len(classes):
            labels = classes[log_proba.argmax(axis=1)].tolist()
            return {"prediction": labels, "proba": _plain(np.exp(log_proba))}, {"classes": classes.tolist()}


def explanations(model: Estimator, X: NDArray[np.float32]) -> Answered:
    """Returns what `explain` says of :func:`rows`."""
    read: Any = ReadRows(X)
    columns = model.explain(read).columns()
    return {name: _plain(values) for name, values in columns.items()}, {}


def described(model: Estimator) -> dict[str, Any]:
    """Returns facts about a model, for people and for clients."""
    facts = {
        "kind": type(model).__name__,
        "n_features": model.n_features_in_,
        "n_experts": model.n_experts_,
        "n_samples": model.learner_.events.n_samples,
        "memory": len(model.learner_.memory),
        "columns": names.tolist() if (names := getattr(model, "feature_names_in_", None)) is not None else None,
        "categories": _categories(model),
    }
    return facts | ({"classes": model.classes_.tolist()} if isinstance(model, CNDPMClassifier) else {})


def _categories(model: Estimator) -> list[list[Any] | None] | None:
    """Returns the categories of every column, None for numbers; None in all where no column has any."""
    if not isinstance(model._reader, TableRows):
        return None

    def word(value: Any) -> Any:
        is_plain = isinstance(value, str | int) or (isinstance(value, float) and np.isfinite(value))
        return value if is_plain else str(value)

    return [None if each is None else list(map(word, each)) for _, each in model._reader.columns]


def _plain(values: NDArray[Any]) -> list[Any]:
    """Returns an array as nested lists; numbers that JSON has no word for become None."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        values = np.where(np.isfinite(values), values, np.array(None, dtype=object))
    return list(values.tolist())
