"""A classifier for river."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from torch import Tensor

from cndpm.estimators import CNDPMClassifier as Estimator
from cndpm.estimators.arrays import readable
from cndpm.estimators.label_codec import LabelCodec, label_values
from cndpm.estimators.weights import log_class_weights
from cndpm.river.columns import Floats
from cndpm.river.mixture import Mixture, admit_table, records_of
from river import base

__all__ = ["CNDPMClassifier"]


class CNDPMClassifier(Mixture, base.MiniBatchClassifier):  # type: ignore[misc]
    """Classifies the rows of a stream whose distribution changes, without being told when.

    Labels may be of any hashable type, and new ones may come at any time. No scaling is needed.

    Args:
        memory_size: Samples gathered before a new expert is made of them.
        settings: Any other setting, by name; see :class:`cndpm.model.settings.CNDPMSettings`.
        seed: Of every random choice.
        batch_size: Rows that are learned at once, at most. 1 learns every row as it comes; of more, those that come
            wait, and count in no answer, until there are as many, or they surprise, or :meth:`learn_waiting` is called.
        surprise: Nats by which rows may contradict the answers to them, beyond what these expect, before they are
            learned; infinity has all wait for each other.
        class_weight: Weights by label, by which the classes' priors are multiplied, or "balanced": answers are as if
            all classes had come equally often so far.

    Example:
        >>> from river import datasets, evaluate, metrics
        >>> from cndpm.river import CNDPMClassifier
        >>> stream = datasets.Phishing().take(300)
        >>> accuracy = evaluate.progressive_val_score(stream, CNDPMClassifier(memory_size=50), metrics.Accuracy())
        >>> accuracy.get() > 0.8
        True
    """

    _estimator = Estimator
    estimator: Estimator

    def __init__(
        self,
        memory_size: int = 500,
        settings: dict[str, Any] | None = None,
        seed: int = 0,
        batch_size: int = 1,
        surprise: float = 0.5,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
    ) -> None:
        self.class_weight = class_weight
        super().__init__(memory_size, settings, seed, batch_size, surprise)

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learns one row.

        Args:
            x: Its features by name: numbers, truths or words.
            y: Its label.
            w: Its weight: it counts as if it had come so often.
        """
        self._take(x, label_values([y])[0], w)

    def predict_proba_one(self, x: Mapping[Any, Any]) -> dict[Any, float]:  # type: ignore[override]
        """Returns the probability of every label met so far, features by name; nothing before the first."""
        if not self._has_learned:
            return {}
        row = self._row(x)
        if np.isnan(row).any():
            known = self.estimator.predict_proba(self._known(row), when="next")[0].tolist()
            return dict(zip(self.estimator.classes_.tolist(), known, strict=True))
        return dict(zip(self._codec.labels, self._weighted(np.exp(self._answer(row))).tolist(), strict=True))

    def _answers(self, rows: Tensor) -> Floats:
        since = [code for row in self._waiting if (code := self._codec.find(row.y)) is not None]
        return self._learner.predict_log_proba(rows, when="next", since=since).numpy()

    def _weighted(self, proba: Floats) -> Floats:
        """Returns probabilities (n_labels,), in order of arrival, with the classes' weights."""
        if not self.class_weight:
            return proba
        weighted = proba * np.exp(log_class_weights(self.class_weight, self._codec.labels, self._codec.counts))
        return np.asarray(weighted / weighted.sum())

    def _made(self) -> Estimator:
        made: Estimator = super()._made()
        made.class_weight = self.class_weight
        return made

    def _surprise(self, answer: Floats, y: Any) -> float:
        return float(np.exp(answer) @ answer - answer[self._codec.find(y)])

    def _fits(self, y: Any) -> bool:
        return self._codec.find(y) is not None

    def _are_sound(self, targets: list[Any]) -> bool:
        LabelCodec(targets)
        return True

    @property
    def _codec(self) -> LabelCodec:
        return self.estimator._codec

    def learn_many(self, X: Any, y: Any) -> None:
        """Learns rows one after the other, as :meth:`learn_one` does; the last ones may wait.

        Args:
            X: A pandas table, (n, d), whose columns are the features.
            y: Labels, (n,), a pandas series.
        """
        with readable("y"):
            labels = label_values(list(y))
        self._take_many(X, labels)

    def predict_proba_many(self, X: Any) -> Any:
        """Returns a pandas table of probabilities, one column for each label, (n, n_labels)."""
        import pandas as pd

        admit_table(X)
        if not self._has_learned:
            return pd.DataFrame(index=X.index)
        proba = [self.predict_proba_one(x) for x in records_of(X)]
        return pd.DataFrame(proba, index=X.index).reindex(columns=self.estimator.classes_)
