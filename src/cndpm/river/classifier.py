"""A classifier for river."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from cndpm.estimators import CNDPMClassifier as Estimator
from cndpm.estimators.label_codec import LabelCodec
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
        batch_size: Rows that are learned at once. Those that come wait, and count in no answer, until there are as
            many or :meth:`learn_waiting` is called; more cost less time, and see a change later.

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
        index = self._codec.find(y) if self._has_learned else None
        row = None if index is None else self._alone(x)
        if row is None or index is None:  # the estimator makes room for a new label, and completes rows
            self._take(x, _plain(y), at_once=index is None)
        else:
            self._learn(row, torch.tensor([index]))
            self._codec.counts[index] += 1

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
        proba = np.exp(self._learner.predict_log_proba(torch.tensor(row))[0].numpy())
        return dict(zip(self._codec.labels, proba.tolist(), strict=True))

    @property
    def _codec(self) -> LabelCodec:
        codec: LabelCodec = self.estimator._codec
        return codec

    def learn_many(self, X: Any, y: Any) -> None:
        """Learns rows one after the other, and before them those that wait.

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
