"""`merge`: one estimator of several that learned different streams."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from cndpm.estimators.base import Estimator
from cndpm.estimators.classifier import CNDPMClassifier
from cndpm.estimators.density import CNDPMDensity
from cndpm.estimators.guarded import persistent
from cndpm.estimators.label_codec import LabelCodec
from cndpm.estimators.regressor import CNDPMRegressor
from cndpm.model.cndpm import CNDPM
from cndpm.model.joining import Joint, relabel
from cndpm.state import state_kind

__all__ = ["load_estimator", "merge", "merge_in_turn"]


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
    return merge_in_turn(map(_copied, models))


def merge_in_turn(models: Iterable[Estimator]) -> Any:
    """Merges models that are not needed any more: each is used up before the next one is asked for.

    Two at a time are in memory where they are made on the way, as by ``map(load_estimator, files)``.

    Args:
        models: As for :func:`merge`.

    Raises:
        ValueError: They cannot be merged; the message says why and what to do.
    """
    coming = iter(models)
    merged = next(coming, None)
    if merged is None:
        raise ValueError("merge takes at least one model; got none")
    joint = Joint(merged.learner_)
    while (model := next(coming, None)) is not None:
        if type(model) is not type(merged):
            kinds = f"a {type(merged).__name__} and a {type(model).__name__}"
            raise ValueError(f"models that are merged are of one class; got {kinds}")
        if isinstance(merged, CNDPMClassifier) and isinstance(model, CNDPMClassifier):
            _agree_on_labels(merged, joint.learner, model)
        joint.add(model.learner_)
        del model
        gc.collect()  # Gaussians and their answers know each other: without this, they would stay while the next comes
    merged._learner = joint.united()
    return merged


def _copied(model: Estimator) -> Estimator:
    """Returns a copy, made with as little of the learner in memory as can be: `deepcopy` has it three times."""
    copy: Estimator = type(model).__new__(type(model))
    attributes = persistent(model.__dict__)
    copy.__dict__.update(deepcopy({name: attributes[name] for name in attributes if name != "_learner"}))
    copy._import(model._exported())
    return copy


def _agree_on_labels(merged: CNDPMClassifier, learner: CNDPM, model: CNDPMClassifier) -> None:
    """Numbers the labels of two models alike: in sorted order where they can be compared, else as they came.

    Their counts are those of both together, as the merged model's are.

    Args:
        merged: Holds the labels of all models so far.
        learner: What they have learned.
        model: The next one.
    """
    both = (merged, learner), (model, model.learner_)
    known = dict.fromkeys(label for each, _ in both for label in each._codec.labels)
    together = LabelCodec(known)
    if all(each._codec.labels == list(known)[: len(each._codec)] for each, _ in both):
        order = range(len(known))
    else:
        order = together.order().tolist()
    labels = [together.labels[i] for i in order]
    counts = [sum(each._codec.count(label) for each, _ in both) for label in labels]
    for each, its in both:
        relabel(its, [labels.index(label) for label in each._codec.labels], len(labels))
        each._codec = LabelCodec(labels, closed=each._codec.closed)
        each._codec.counts = counts.copy()


def load_estimator(path: str | Path) -> Estimator:
    """Reads a model of any class that `save` wrote."""
    kinds: dict[str | None, type[Estimator]] = {"CNDPMRegressor": CNDPMRegressor, "CNDPMDensity": CNDPMDensity}
    return kinds.get(state_kind(path), CNDPMClassifier).load(path)
