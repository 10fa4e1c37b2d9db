"""A regressor for river."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from river.conf.interval import Interval
from torch import Tensor

from cndpm.estimators import CNDPMRegressor as Estimator
from cndpm.estimators.arrays import as_array, readable
from cndpm.estimators.regressor import normal_interval
from cndpm.model.extremes import LARGEST
from cndpm.river.columns import Floats
from cndpm.river.mixture import Mixture, admit_table, records_of
from river import base

__all__ = ["CNDPMRegressor"]


class CNDPMRegressor(Mixture, base.MiniBatchRegressor):  # type: ignore[misc]
    """Predicts numbers in a stream whose distribution changes, without being told when.

    Example:
        >>> from cndpm.river import CNDPMRegressor
        >>> model = CNDPMRegressor(memory_size=50)
        >>> for i in range(100):
        ...     model.learn_one({"a": i % 10, "b": i % 7}, 2 * (i % 10) + 1)
        >>> bool(abs(model.predict_one({"a": 4, "b": 3}) - 9) < 0.5)
        True
    """

    _estimator = Estimator
    estimator: Estimator

    def learn_one(self, x: Mapping[Any, Any], y: float, w: float = 1.0) -> None:
        """Learns one row.

        Args:
            x: Its features by name: numbers, truths or words.
            y: Its target.
            w: Its weight: it counts as if it had come so often.
        """
        self._take(x, _number(y), w)

    def predict_one(  # type: ignore[override]
        self, x: Mapping[Any, Any], with_interval: bool = False, confidence_level: float = 0.95
    ) -> float | Interval:
        """Returns the mean of the target; 0 before anything was learned.

        Args:
            x: Features by name.
            with_interval: Whether the interval in which the target lies is returned instead, as river's conformal
                regressors do; without bounds before anything was learned.
            confidence_level: How probably it lies there.
        """
        mean, variance = self._moments(x)
        if not with_interval:
            return mean
        deviation = np.array(math.sqrt(variance))
        return Interval(*normal_interval(np.array(mean), deviation, confidence_level, "confidence_level").tolist())

    def _moments(self, x: Mapping[Any, Any]) -> tuple[float, float]:
        """Returns mean and variance of the target."""
        if not self._has_learned:
            return 0.0, math.inf
        row = self._row(x)
        if np.isnan(row).any():
            mean, deviation = self.estimator.predict(self._known(row), return_std=True, when="next")
            return float(mean[0]), float(deviation[0]) ** 2
        mean, variance = self._answer(row).tolist()
        return mean, variance

    def _answers(self, rows: Tensor) -> Floats:
        return self._learner.predict_for(rows, "next", values=True)[:, :, 0].numpy()

    def _surprise(self, answer: Floats, y: Any) -> float:
        mean, variance = answer.tolist()
        return float(0.5 * ((y - mean) ** 2 / variance - 1))

    def _fits(self, y: Any) -> bool:
        return bool(abs(y) <= LARGEST)  # what cannot be learned is refused when it comes, not when its batch is learned

    def learn_many(self, X: Any, y: Any) -> None:
        """Learns rows one after the other, as :meth:`learn_one` does; the last ones may wait.

        Args:
            X: A pandas table, (n, d), whose columns are the features.
            y: Targets, (n,), a pandas series.
        """
        with readable("y"):
            targets = np.asarray(as_array(y, "y"), dtype=np.float64).tolist()
        self._take_many(X, targets)

    def predict_many(self, X: Any) -> Any:
        """Returns a pandas series of predictions, (n,)."""
        import pandas as pd

        admit_table(X)
        answers = [self.predict_one(x) for x in records_of(X)]
        return pd.Series(answers, index=X.index)


def _number(y: Any) -> float:
    with readable("y"):
        if isinstance(y, str) or not hasattr(y, "__float__"):
            raise TypeError(f"y is a number; got {reprlib.repr(y)}, a {type(y).__name__}")
        return float(y)
