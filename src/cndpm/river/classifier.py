"""A classifier for river."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from cndpm.estimators import CNDPMClassifier as Estimator
from cndpm.estimators.label_codec import LabelCodec
from cndpm.river.columns import Floats
from cndpm.river.mixture import Mixture
from river import base

__all__ = ["CNDPMClassifier"]


class CNDPMClassifier(Mixture, base.MiniBatchClassifier):  # type: ignore[misc]
    """Classifies the rows of a stream whose distribution changes, without being told when.

    Labels may be of any hashable type, and new ones may come at any time. No scaling is needed.

    Args:
        memory_size: Samples gathered before a new expert is made of them.
        settings: Any other setting, by name; see :class:`cndpm.model.settings.CNDPMSettings`.
        seed: Of every random choice.
        batch_size: Rows that are learned at once, at most. Those that come wait, and count in no answer, until there
            are as many, or they surprise, or :meth:`learn_waiting` is called; 1 learns every row as it comes.
        surprise: Nats by which rows may contradict the answers to them, beyond what these expect, before they are
            learned; infinity has all wait for each other.

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

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Mapping[Any, Any], y: Any) -> None:
        """Learns one row.

        Args:
            x: Its features by name.
            y: Its label.
        """
        self._take(x, _plain(y))

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Returns the probability of every label met so far; nothing before the first.

        Args:
            x: Features by name.
            kwargs: Ignored.
        """
        if not self._has_learned:
            return {}
        row = self._columns.row(x)
        if np.isnan(row).any():
            known = self.estimator.predict_proba(self._known(row))[0].tolist()
            return dict(zip(self.estimator.classes_.tolist(), known, strict=True))
        return dict(zip(self._codec.labels, np.exp(self._answer(row)).tolist(), strict=True))

    def _answers(self, rows: Tensor) -> Floats:
        return self._learner.predict_log_proba(rows).numpy()

    def _surprise(self, answer: Floats, y: Any) -> float:
        return float(np.exp(answer) @ answer - answer[self._codec.find(y)])

    def _fits(self, y: Any) -> bool:
        return self._codec.find(y) is not None

    def _are_sound(self, targets: list[Any]) -> bool:
        LabelCodec(targets)
        return True

    @property
    def _codec(self) -> LabelCodec:
        codec: LabelCodec = self.estimator._codec
        return codec

    def learn_many(self, X: Any, y: Any) -> None:
        """Learns rows one after the other, as :meth:`learn_one` does; the last ones may wait.

        Args:
            X: A pandas table, (n, d), whose columns are the features.
            y: Labels, (n,), a pandas series.
        """
        self._take_many(X, [_plain(label) for label in y])

    def predict_proba_many(self, X: Any) -> Any:
        """Returns a pandas table of probabilities, one column for each label, (n, n_labels)."""
        import pandas as pd

        if not self._has_learned:
            return pd.DataFrame(index=X.index)
        proba = self.estimator.predict_proba(self._rows_asked(X))
        return pd.DataFrame(proba, columns=self.estimator.classes_, index=X.index)


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
