"""`merge`: one estimator of several that learned different streams."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from cndpm.estimators.base import Estimator
from cndpm.estimators.classifier import CNDPMClassifier
from cndpm.estimators.density import CNDPMDensity
from cndpm.estimators.label_codec import LabelCodec
from cndpm.estimators.regressor import CNDPMRegressor
from cndpm.model.joining import merge as merge_learners
from cndpm.model.joining import relabel
from cndpm.state import StateError

__all__ = ["load_estimator", "merge"]


def merge(models: Sequence[Estimator]) -> Any:
    """Returns one model that has learned what all of them have; they are left alone.

    Gaussian experts are sums, so the result equals, to rounding, a model that was given all streams; see
    :mod:`cndpm.model.joining`. Networks are put side by side. Begin all models but the first with
    ``first.with_same_representation()``.

    Args:
        models: Fitted models of one class with the same parameters and the same representation.

    Raises:
        ValueError: They cannot be merged; the message says why and what to do.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(400, 3)), np.repeat(["a", "b"], 200)
        >>> X[y == "b"] += 9
        >>> first = CNDPMClassifier(memory_size=50, random_state=0).partial_fit(X[:200], y[:200])
        >>> second = first.with_same_representation().partial_fit(X[200:], y[200:])
        >>> both = merge([first, second])
        >>> both.n_experts_, both.classes_.tolist()
        (2, ['a', 'b'])
    """
    if not models:
        raise ValueError("merge takes at least one model; got none")
    kinds = {type(model) for model in models}
    if len(kinds) > 1:
        raise ValueError(f"models that are merged are of one class; got {sorted(kind.__name__ for kind in kinds)}")
    copies = [deepcopy(model) for model in models]
    merged = copies[0]
    if isinstance(merged, CNDPMClassifier):
        _agree_on_labels([copy for copy in copies if isinstance(copy, CNDPMClassifier)])
    merged._learner = merge_learners([copy.learner_ for copy in copies])
    return merged


def _agree_on_labels(models: Sequence[CNDPMClassifier]) -> None:
    """Numbers the labels of all models alike: in sorted order where they can be compared, else as they came.

    Their counts are those of all models together, as the merged model's are.
    """
    known = dict.fromkeys(label for model in models for label in model._codec.labels)
    together = LabelCodec(known)
    if all(model._codec.labels == list(known)[: len(model._codec)] for model in models):
        order = range(len(known))
    else:
        order = together.order().tolist()
    labels = [together.labels[i] for i in order]
    counts = [sum(model._codec.count(label) for model in models) for label in labels]
    for model in models:
        mapping = [labels.index(label) for label in model._codec.labels]
        relabel(model.learner_, mapping, len(labels))
        model._codec = LabelCodec(labels, closed=model._codec.closed)
        model._codec.counts = counts.copy()


def load_estimator(path: str | Path) -> Estimator:
    """Reads a model of any class that `save` wrote."""
    kinds: list[type[Estimator]] = [CNDPMClassifier, CNDPMRegressor, CNDPMDensity]
    for kind in kinds:
        try:
            return kind.load(path)
        except StateError as error:
            if kind is kinds[-1] or "was asked for" not in str(error):
                raise
    raise AssertionError
