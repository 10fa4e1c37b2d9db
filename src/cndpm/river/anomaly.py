"""An anomaly detector for river."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from cndpm.estimators import CNDPMDensity as Estimator
from cndpm.river.columns import Floats
from cndpm.river.mixture import Mixture

try:
    from river.base import AnomalyDetector
except ImportError:  # before river 0.26
    from river.anomaly.base import AnomalyDetector  # type: ignore[no-redef]

__all__ = ["CNDPMAnomaly"]


class CNDPMAnomaly(Mixture, AnomalyDetector):  # type: ignore[misc]
    """Scores how unlike everything known a row is.

    The score is 1 less the share of known rows that look at least as strange: of rows like the known ones one in
    twenty scores above 0.95, one in a hundred above 0.99, at any time. So a threshold is a rate of false alarms:
    ``anomaly.ThresholdFilter(model, threshold=0.99)``.

    Example:
        >>> import random
        >>> from cndpm.river import CNDPMAnomaly
        >>> model, draws = CNDPMAnomaly(), random.Random(0)
        >>> for _ in range(200):
        ...     model.learn_one({"a": draws.gauss(0, 1), "b": draws.gauss(5, 1)})
        >>> model.score_one({"a": 0.0, "b": 5.0}) < 0.5, model.score_one({"a": 0.0, "b": 12.0}) > 0.99
        (True, True)
    """

    _estimator = Estimator

    def learn_one(self, x: Mapping[Any, Any]) -> None:
        """Learns one row, features by name."""
        self._take(x, None)

    def learn_many(self, X: Any) -> None:
        """Learns the rows of a pandas table, (n, d), one after the other; the last ones may wait."""
        self._take_many(X)

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Returns a score between 0 and 1, features by name; 0 before anything was learned."""
        if not self._has_learned:
            return 0.0
        row = self._row(x)
        novelty = self.estimator.novelty(self._known(row))[0] if np.isnan(row).any() else self._answer(row)
        return float(-np.expm1(-novelty))

    def _answers(self, rows: Tensor) -> Floats:
        watch = self._learner.watch
        return np.zeros(len(rows)) if watch is None else watch.novelty(rows)

    def _surprise(self, answer: Floats, y: Any) -> float:
        return float(answer) - 1  # of rows like the known ones the mean is one
