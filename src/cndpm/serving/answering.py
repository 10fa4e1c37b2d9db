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
from cndpm.estimators.regressor import CNDPMRegressor
from cndpm.serving.batcher import Answered

__all__ = ["described", "explanations", "learnable", "predictions", "rows"]


def rows(X: Sequence[Sequence[float]], model: Estimator, *, most: int) -> NDArray[np.float32]:
    """Returns rows as an array (n, n_features) that a model can be given.

    Args:
        X: n rows of numbers.
        model: Says how many numbers a row has.
        most: Rows allowed.

    Raises:
        ValueError: There are too many or none, a row has another length, or a number is not finite or too large.
    """
    if not 1 <= len(X) <= most:
        raise ValueError(f"a request has between 1 and {most} rows; got {len(X)}. Send several requests.")
    lengths = {len(row) for row in X}
    if lengths != {model.n_features_in_}:
        raise ValueError(f"every row has {model.n_features_in_} numbers; got rows of {sorted(lengths)[:5]}")
    array = np.array(X, dtype=np.float64)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise ValueError(f"X[{row}, {column}] is {array[row, column]}; numbers must be finite")
    admit_magnitude(array, "X")
    return array.astype(np.float32)


def learnable(model: Estimator, y: Sequence[Any] | None, n_rows: int) -> list[Any] | None:
    """Returns labels or targets that can be given to `partial_fit`.

    Args:
        model: Tells whether it takes labels, targets or none.
        y: As it came.
        n_rows: Rows that it belongs to.

    Raises:
        ValueError: It is missing, not wanted, of another length, or (for targets) not finite.
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
        if not np.isfinite(targets).all():
            raise ValueError("y must be finite numbers")
        learnt: list[Any] = targets.tolist()
        return learnt
    return list(y)


def predictions(model: Estimator, X: NDArray[np.float32]) -> Answered:
    """Returns the answers of a model: labels and probabilities, means and deviations, or densities.

    Args:
        model: Any estimator.
        X: (n, n_features).
    """
    if isinstance(model, CNDPMClassifier):
        return _classified(model, X)
    if isinstance(model, CNDPMRegressor):
        mean, std = model.predict(X, return_std=True)
        return {"prediction": _plain(mean), "std": _plain(std)}, {}
    assert isinstance(model, CNDPMDensity)
    return {"prediction": model.predict(X).tolist(), "log_density": _plain(model.score_samples(X))}, {}


def _classified(model: CNDPMClassifier, X: NDArray[np.float32]) -> Answered:
    """Returns labels and probabilities; asks again where another thread has met a new label in between."""
    while True:
        classes, log_proba = model.classes_, model.predict_log_proba(X)
        if log_proba.shape[1] == len(classes):
            labels = classes[log_proba.argmax(axis=1)].tolist()
            return {"prediction": labels, "proba": _plain(np.exp(log_proba))}, {"classes": classes.tolist()}


def explanations(model: Estimator, X: NDArray[np.float32]) -> Answered:
    """Returns what `explain` says of rows.

    Args:
        model: Any estimator.
        X: (n, n_features).
    """
    columns = model.explain(X).columns()
    return {name: _plain(values) for name, values in columns.items()}, {}


def described(model: Estimator) -> dict[str, Any]:
    """Returns facts about a model, for people and for clients."""
    facts = {
        "kind": type(model).__name__,
        "n_features": model.n_features_in_,
        "n_experts": model.n_experts_,
        "n_samples": model.learner_.events.n_samples,
        "memory": len(model.learner_.memory),
    }
    return facts | ({"classes": model.classes_.tolist()} if isinstance(model, CNDPMClassifier) else {})


def _plain(values: NDArray[Any]) -> list[Any]:
    """Returns an array as nested lists; numbers that JSON has no word for become None."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        values = np.where(np.isfinite(values), values, np.array(None, dtype=object))
    plain: list[Any] = values.tolist()
    return plain
