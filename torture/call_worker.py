"""Calls estimators with hostile arguments, one call after the other; see :mod:`torture.calls`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import clone

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.errors import CNDPMError
from torture.attempts import Outcome
from torture.hostile_inputs import (
    PARAMETERS,
    hostile_option,
    hostile_rows,
    hostile_targets,
    hostile_weights,
    odd,
    proper_rows,
    proper_targets,
)

__all__ = ["CALLS_OF_A_MODEL", "attempts", "call", "fingerprint", "model_of"]

CALLS_OF_A_MODEL = 25
"""Calls that one model lives through."""

_KINDS: tuple[tuple[type, dict[str, Any]], ...] = (
    (CNDPMClassifier, {"settings": {"n_fourier": 16}}),
    (CNDPMRegressor, {"settings": {"n_fourier": 16}}),
    (CNDPMDensity, {}),
    (CNDPMClassifier, {"input_shape": (2, 2), "settings": {"features": "identity"}}),
    (CNDPMClassifier, {"log_alpha": -400.0, "settings": {"n_fourier": 16}}),
    (CNDPMRegressor, {"settings": {"features": "identity"}}),
)
"""Few features: with the default's 512 most of the time would go into comparing states."""

_N_FEATURES = 4
_DENSE = 10_000
"""Columns up to which a model is asked about dense rows."""

_METHODS = ("partial_fit",) * 8 + ("fit",) * 3 + ("construct", "prune", "set_params") * 2 + ("consolidate",)
_ASKED = (
    *("predict", "predict_proba", "predict_log_proba", "score_samples", "score", "sample", "bits_per_dim", "save"),
    *("novelty", "explain", "decision_function"),
)
_OWN = (ValueError, TypeError)


def model_of(seed: int, life: int) -> tuple[Any, Random]:
    """Returns a fitted model and the source of everything that is done to it."""
    random = Random(f"{seed} {life}")
    estimator, parameters = _KINDS[life % len(_KINDS)]
    model = estimator(memory_size=random.choice((6, 15, 40)), random_state=life, device="cpu", **parameters)
    n = random.choice((1, 12, 60))
    model.partial_fit(proper_rows(random, n, _N_FEATURES), proper_targets(random, model._target, n))
    return model, random


def fingerprint(model: Any) -> list[Any]:
    """Returns parameters and everything learned, to the bit."""
    if not hasattr(model, "learner_"):
        return [_plain(model.get_params(deep=False))]
    learned = model._export()
    del learned["params"]
    return [_plain(model.get_params(deep=False)), _plain(learned)]


def _plain(node: Any) -> Any:
    if isinstance(node, torch.Tensor):
        return str(node.dtype), tuple(node.shape), node.detach().cpu().numpy().tobytes()
    if isinstance(node, dict):
        return [(str(key), _plain(value)) for key, value in node.items()]
    if isinstance(node, list | tuple):
        return [_plain(value) for value in node]
    if isinstance(node, np.random.RandomState):
        return _plain(list(node.get_state(legacy=False)["state"].values()))
    return node.tobytes() if isinstance(node, np.ndarray) else repr(node)


def call(model: Any, random: Random, folder: str, known: list[Any] | None = None) -> tuple[str, str]:
    """Makes one hostile call; returns its outcome, as of :mod:`torture.calls`, and what was called.

    Args:
        model: Is called.
        random: Source of all choices.
        folder: Where models are saved.
        known: Holds the fingerprint of the model, if that of the last call is still true; then holds that of this one.
    """
    name = random.choice((*_METHODS, *_ASKED))
    known = [] if known is None else known
    before = known.pop() if known else fingerprint(model)
    try:
        _attempt(model, name, random, folder)
    except _OWN as error:
        outcome, said = ("refused", str(error)) if str(error) else ("unclear", type(error).__name__)
    except AttributeError as error:
        outcome, said = ("refused" if "has no attribute" in str(error) else "foreign"), repr(error)
    except OSError as error:
        outcome, said = ("refused" if name == "save" else "foreign"), repr(error)
    except Exception as error:
        outcome, said = "foreign", repr(error)
    else:
        return _judge(model, name, before)
    known.append(fingerprint(model))
    return outcome if known[0] == before else "changed", f"{name}: {said}"


def _judge(model: Any, name: str, before: list[Any]) -> tuple[str, str]:
    """Returns the outcome of a call that was accepted: answers are numbers, and asking changes nothing."""
    if name in _ASKED and fingerprint(model) != before:
        return "changed", name
    ask = {"none": "score_samples", "values": "predict", "classes": "predict_proba"}[model._target]
    try:
        answer = getattr(model, ask)(_asked(model.n_features_in_))
    except Exception as error:
        return "silent", f"{name}: {error!r}"
    return ("accepted", name) if np.isfinite(answer).all() else ("silent", f"{name}: answers {answer.tolist()}")


def _asked(n_columns: int) -> Any:
    """Returns three plain rows; sparse ones where columns are so many that only such were learned."""
    if n_columns > _DENSE:
        return sparse.csr_matrix((np.linspace(-3.0, 9.0, 3), (np.arange(3), np.arange(3))), shape=(3, n_columns))
    return np.linspace(-3.0, 9.0, 3 * n_columns).reshape(3, -1)


def _attempt(model: Any, name: str, random: Random, folder: str) -> None:
    n = random.choice((1, 1, 2, 5, 12, 30))
    rows = partial(hostile_rows, random, n, _N_FEATURES)
    targets = partial(hostile_targets, random, n)
    if random.random() < 0.4:
        rows = partial(proper_rows, random, n, _N_FEATURES)
    elif random.random() < 0.4:
        targets = partial(proper_targets, random, model._target, n)
    if name == "construct":
        _construct(model, random)
    elif name == "set_params":
        _set_params(model, random)
    elif name == "save":
        path = random.choice((Path(folder) / "model", Path(folder) / "no" / "model", folder, "a\0b", odd(random)))
        at = f"{folder}/{path}" if isinstance(path, str) else path
        model.save(at)
        try:
            is_same = fingerprint(type(model).load(at)) == fingerprint(model)
        except CNDPMError as error:
            raise RuntimeError(f"what was saved cannot be loaded: {error}") from error
        if not is_same:
            raise RuntimeError("another model was loaded than saved")
    elif name == "sample":
        model.sample(random.choice((1, 3, odd(random))), random_state=random.choice((0, 2**70, odd(random))))
    elif name == "consolidate":
        model.consolidate()
    elif name in ("fit", "partial_fit", "prune", "score"):
        if name == "score":  # compares labels by code of scikit-learn
            targets = partial(proper_targets, random, model._target, n)
        arguments = (rows(),) if model._target == "none" and name == "prune" else (rows(), targets())
        _with_options(model, name, arguments, random)
    else:
        asked = inspect.signature(getattr(model, name)).parameters.keys() & {"when", "coverage"}
        options = {option: hostile_option(random) for option in sorted(asked) if random.random() < 0.3}
        getattr(model, name)(rows(), **options)


def _with_options(model: Any, name: str, arguments: tuple[Any, ...], random: Random) -> None:
    options: dict[str, Any] = {}
    if name == "prune":
        options = {"threshold": random.choice((0.9, -1, 0.0, float("nan"), odd(random)))}
    elif name == "partial_fit" and model._target == "classes" and random.random() < 0.1:
        options = {"classes": random.choice((range(5), [], ["a", "a"], odd(random)))}
    if name in ("fit", "partial_fit") and model._target != "none" and random.random() < 0.2:
        options["sample_weight"] = hostile_weights(random, len(arguments[1]) if _has_length(arguments[1]) else 1)
    if name == "fit" and random.random() < 0.5:
        arguments = (arguments[0], proper_targets(random, model._target, 30))
    getattr(model, name)(*arguments, **options)


def _has_length(values: Any) -> bool:
    return type(values) in (list, tuple) or (type(values) is np.ndarray and values.ndim > 0)  # others may raise


def _construct(model: Any, random: Random) -> None:
    """Fits a model with hostile parameters; the given one must not notice."""
    chosen = random.sample(sorted(PARAMETERS), random.choice((1, 1, 2)))
    parameters = {name: random.choice(PARAMETERS[name]) for name in chosen}
    other = clone(model)
    vars(other).update({"memory_size": 15} | parameters)
    other.fit(proper_rows(random, 12, _N_FEATURES), proper_targets(random, model._target, 12))


def _set_params(model: Any, random: Random) -> None:
    """Sets a parameter and learns; then the parameter is set back, which is not what is tested."""
    name = random.choice(sorted(PARAMETERS))
    before = model.get_params(deep=False)
    try:
        if random.random() < 0.2:
            model.set_params(**{random.choice(("", "nothing", "settings__nothing", "settings__", "a__b")): 1})
        model.set_params(**{name: random.choice(PARAMETERS[name])})
        model.partial_fit(proper_rows(random, 3, _N_FEATURES), proper_targets(random, model._target, 3))
    finally:
        model.set_params(**before)


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:
    """Yields the outcome of every call from `first` to `end`.

    Args:
        seed: Calls are functions of the seed and their number.
        first: Number of the first call that is told; those before it in its model's life are made again.
        end: Number behind the last one.
        folder: Where models are saved.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # scikit-learn's, about what it was given
    for life in range(first // CALLS_OF_A_MODEL, -(-end // CALLS_OF_A_MODEL)):
        (model, random), known = model_of(seed, life), list[Any]()
        for number in range(life * CALLS_OF_A_MODEL, min((life + 1) * CALLS_OF_A_MODEL, end)):
            outcome, detail = call(model, random, str(folder), known)
            if number >= first:
                yield Outcome(number, outcome, detail)
