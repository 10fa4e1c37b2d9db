"""`merge`: one estimator of several that learned different streams."""

from __future__ import annotations

import gc
import json
import reprlib
from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from torch import Tensor

from cndpm.estimators.base import Estimator
from cndpm.estimators.classifier import CNDPMClassifier
from cndpm.estimators.density import CNDPMDensity
from cndpm.estimators.guarded import SINGULAR, numerical, persistent
from cndpm.estimators.label_codec import LabelCodec
from cndpm.estimators.regressor import CNDPMRegressor
from cndpm.model.cndpm import CNDPM
from cndpm.model.merging import Joint, relabel
from cndpm.state import state_kind
from cndpm.state.container import container_pieces
from cndpm.state.tree import detach_tensors

__all__ = ["merge"]


def merge(models: Sequence[Estimator]) -> Any:
    """Returns one model that has learned what all of them have; they are left alone.

    Gaussian experts are sums, so those of the result equal, to rounding, those of a model that was given all streams.
    Where pools answer, as for tables, it answers as one that learned the first model's rows and then those that the
    others keep; see `cndpm.model.merging`. Networks are put side by side. All models are fitted, of one class and
    with the same parameters; begin all but the first with ``first.with_same_representation()``. ValueError: they cannot
    be merged; the message says why and what to do.

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
    if isinstance(models, str | bytes) or not isinstance(models, Iterable):
        raise TypeError(f"merge takes a list of models; got a {type(models).__name__}")
    return merge_in_turn(_copied(model, number) for number, model in enumerate(models))


def merge_in_turn(models: Iterable[Estimator]) -> Any:
    """Merges models that are not needed any more: each is used up before the next one is asked for.

    Two at a time are in memory where they are made on the way, as by ``map(load_estimator, files)``.
    """
    try:
        coming = iter(models)
        merged = next(coming, None)
        if merged is None:
            raise ValueError("merge takes at least one model; got none")
        learned = _parts(merged, 0)
        joint = Joint(merged.learner_)
        for number, model in enumerate(coming, start=1):
            its = _parts(model, number)
            _check_alike(merged, model, number)
            if learned & its:
                raise ValueError(f"model {number} has learned what one before it has: its samples would count twice")
            learned |= its
            if isinstance(merged, CNDPMClassifier) and isinstance(model, CNDPMClassifier):
                _agree_on_labels(merged, joint.learner, model)
            joint.add(model.learner_)
            del model
            gc.collect()  # Gaussians and their answers know each other: they would stay while the next comes
        merged._learner = joint.united()
        merged._merged_from = learned
        return merged
    except SINGULAR as error:
        raise numerical("merge", error) from error


def _parts(model: Any, number: int) -> frozenset[str]:
    """Returns by what a model, and every model that it was merged from, can be told from others; nothing of a blank."""
    _admit(model, number)
    return frozenset({_identity(model)}) | model._merged_from if model.learner_.events.n_samples else frozenset()


def _admit(model: Any, number: int) -> None:
    """Refuses what is no model, and a model that has not begun to learn, by its place among those that are merged."""
    if not isinstance(model, Estimator):
        remedy = "load it with its class's `load` first" if isinstance(model, str | Path) else "give fitted estimators"
        raise TypeError(f"model {number} of those that are merged is a {type(model).__name__}; {remedy}")
    if "_learner" not in vars(model):
        raise ValueError(f"model {number} of those that are merged has learned nothing; leave it out, or fit it first")


def _identity(model: Estimator) -> str:
    """Returns a hash of everything that a model has learned: the same for those alone that learned the same."""
    tensors: dict[str, Tensor] = {}
    tree = detach_tensors(model.learner_.state_dict(), tensors)
    *_, checksum = container_pieces({"learner": json.dumps(tree)}, tensors)
    return checksum.hex()[:32]


def _check_alike(merged: Estimator, model: Estimator, number: int) -> None:
    """Refuses models of different kinds, columns, categories or parameters, by what differs."""
    if type(model) is not type(merged):
        kinds = f"a {type(merged).__name__} and a {type(model).__name__}"
        raise ValueError(f"models that are merged are of one class; got {kinds}")
    readers = [None if each._reader is None else each._reader.state_dict() for each in (merged, model)]
    names = [getattr(each, "feature_names_in_", None) for each in (merged, model)]
    told = [None if name is None else list(name) for name in names]
    for what, (ours, its) in {
        "features": (merged.n_features_in_, model.n_features_in_),
        "columns": told,
        "categories of columns": readers,
        "class_weight": [getattr(each, "class_weight", None) for each in (merged, model)],
    }.items():
        if ours != its:
            raise ValueError(
                f"models that are merged have the same {what}, in the same order; model {number} has "
                f"{reprlib.repr(its)}, those before it {reprlib.repr(ours)}"
            )


def _copied(model: Estimator, number: int) -> Estimator:
    """Returns a copy, made with as little of the learner in memory as can be: `deepcopy` has it three times."""
    _admit(model, number)
    copy: Estimator = type(model).__new__(type(model))
    attributes = persistent(model.__dict__)
    copy.__dict__.update(deepcopy({name: attributes[name] for name in attributes if name != "_learner"}))
    copy._import(model._exported())
    return copy


def _agree_on_labels(merged: CNDPMClassifier, learner: CNDPM, model: CNDPMClassifier) -> None:
    """Numbers the labels of those merged so far and of the next alike: sorted where they compare, else as they came.

    Their counts are those of both together, as the merged model's are.
    """
    both = (merged, learner), (model, model.learner_)
    known = dict.fromkeys(label for each, _ in both for label in each._codec.labels)
    together = LabelCodec(known)
    if all(each._codec.labels == list(known)[: len(each._codec)] for each, _ in both):
        order = range(len(known))
    else:
        order = together.order().tolist()
    if any(each._codec.closed and len(known) > len(each._codec) for each, _ in both):
        raise ValueError(
            f"models with a closed list of classes are merged where it is the same; got {list(known)[:20]}"
        )
    labels = [together.labels[i] for i in order]
    counts = [sum(each._codec.count(label) for each, _ in both) for label in labels]
    for each, its in both:
        its.meet(len(each._codec))  # labels that it was told of and has not learned
        relabel(its, [labels.index(label) for label in each._codec.labels], len(labels))
        each._codec = LabelCodec(labels, closed=each._codec.closed)
        each._codec.counts = counts.copy()


def load_estimator(path: str | Path) -> Estimator:
    """Reads a model of any class that `save` wrote."""
    kinds: dict[str | None, type[Estimator]] = {"CNDPMRegressor": CNDPMRegressor, "CNDPMDensity": CNDPMDensity}
    return kinds.get(state_kind(path), CNDPMClassifier).load(path)
