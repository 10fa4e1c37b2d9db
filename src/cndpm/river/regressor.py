"""A regressor for river."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cndpm.estimators import CNDPMRegressor as Estimator
from cndpm.model.inputs import LARGEST
from cndpm.river.mixture import Mixture
from river import base

__all__ = ["CNDPMRegressor"]


class CNDPMRegressor(Mixture, base.MiniBatchRegressor):  # type: ignore[misc]
    """Predicts numbers in a stream whose distribution changes, without being told when.

    Args:
        memory_size: Samples gathered before a new expert is made of them.
        settings: Any other setting, by name; see :class:`cndpm.model.settings.CNDPMSettings`.
        seed: Of every random choice.
        batch_size: Rows that are learned at once. Those that come wait, and count in no answer, until there are as
            many or :meth:`learn_waiting` is called; more cost less time, and see a change later.

    Example:
        >>> from cndpm.river import CNDPMRegressor
        >>> model = CNDPMRegressor(memory_size=50)
        >>> for i in range(100):
        ...     model.learn_one({"a": i % 10, "b": i % 7}, 2 * (i % 10) + 1)
        >>> bool(abs(model.predict_one({"a": 4, "b": 3}) - 9) < 0.5)
        True
    """

    _estimator = Estimator

    def learn_one(self, x: Mapping[Any, Any], y: float) -> None:
        """Learns one row.

        Args:
            x: Its features by name.
            y: Its target.
        """
        row, value = self._alone(x), float(y)
        if row is None:  # what cannot be learned is refused when it comes, and not when its batch is learned
            self._take(x, value, at_once=not (self._has_learned and abs(value) <= LARGEST))
        else:
            self._learn(row, torch.tensor([[value]]))

    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Returns the mean of the target; 0 before anything was learned."""
        if not self._has_learned:
            return 0.0
        row = self._columns.row(x)
        if np.isnan(row).any():
            return float(self.estimator.predict(self._known(row))[0])
        return float(self._learner.predict_moments(torch.tensor(row))[0, 0, 0])

    def learn_many(self, X: Any, y: Any) -> None:
        """Learns rows one after the other, and before them those that wait.

        Args:
            X: A pandas table, (n, d), whose columns are the features.
            y: Targets, (n,), a pandas series.
        """
        self._take_many(X, np.asarray(y, dtype=np.float64).tolist())

    def predict_many(self, X: Any) -> Any:
        """Returns a pandas series of predictions, (n,)."""
        import pandas as pd

        answers = self.estimator.predict(self._rows_asked(X)) if self._has_learned else np.zeros(len(X))
        return pd.Series(answers, index=X.index)
