"""Checks the parameters of an estimator before anything is learned: types, ranges, names and the device."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral
from typing import Any

import numpy as np
from pydantic import ValidationError
from torch import nn

from cndpm.devices import resolve_device
from cndpm.estimators.arrays import CHANNELS, admit_number, whole_number
from cndpm.estimators.weights import check_class_weight
from cndpm.experts.features import FeatureMap, FunctionFeatures, ModuleFeatures
from cndpm.model.settings import CNDPMSettings
from cndpm.names import nearest_names
from cndpm.validation import describe_errors

_ALIKE = (("random_state", "seed"), ("w", "weight", "sample_weight"), ("coverage", "confidence_level"))
"""Words for one thing, here and elsewhere."""


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuses (ValueError, TypeError) values of parameters that are not settings of the learner."""
    whole_number(parameters["batch_size"], "batch_size", least=1)
    check_rate(parameters.get("false_alarm_rate", 0.5))
    whole_number(parameters["n_exemplars"], "n_exemplars", least=0)
    whole_number(parameters["n_projected"], "n_projected", least=1)
    check_class_weight(parameters.get("class_weight"))
    _check_shape(parameters["input_shape"])
    if not isinstance(parameters["verbose"], int):
        raise TypeError(f"verbose must be True or False; got {parameters['verbose']!r}")
    for name in ("density", "predictor"):
        if not (parameters[name] is None or callable(parameters[name])):
            raise TypeError(f"{name} must be a class that makes one, or None; got {parameters[name]!r}")
    features = parameters["features"]
    if not (features is None or (callable(features) and not isinstance(features, type))):
        raise TypeError(
            f"features must be a torch module, a function of arrays, or None; got {features!r}. Names such as "
            "'fourier' or 'backbone' go into settings={'features': ...}."
        )
    resolve_device(parameters["device"])


def feature_map_of(features: nn.Module | Callable[[Any], Any] | None) -> FeatureMap | None:
    """Returns what makes features by a module or a function of arrays; None for None."""
    if features is None:
        return None
    return ModuleFeatures(features) if isinstance(features, nn.Module) else FunctionFeatures(features)


def check_names(called: Callable[..., Any], given: Iterable[str]) -> None:
    """Refuses (TypeError) arguments that a class or a method does not take, unless it takes all, with those alike."""
    is_class = isinstance(called, type)
    known = inspect.signature(called.__init__ if is_class else called).parameters
    unknown = [name for name in given if name not in known]
    if not unknown or any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        return
    in_settings = [f"settings={{{name!r}: ...}}" for name in unknown[:1] if is_class and name in CNDPMSettings.names()]
    names = [name for name in known if name != "self"]
    meant = {word: name for name in names for words in _ALIKE if name in words for word in words}
    found = nearest_names(unknown[0], dict.fromkeys([*names, *meant]))
    near = in_settings or dict.fromkeys(meant.get(name, name) for name in found)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"It has {', '.join(names)}."
    raise TypeError(f"{called.__name__} has no parameter {unknown[0]!r}. {hint}") from None


def with_known_names(made: type) -> None:
    """Has the public methods that a class defines refuse arguments that they do not take, by :func:`check_names`."""

    def told(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def whole(*args: Any, **given: Any) -> Any:
            try:
                return method(*args, **given)
            except TypeError:
                check_names(method, given)
                raise

        return whole

    for name, method in list(vars(made).items()):
        if inspect.isfunction(method) and not name.startswith("_"):
            setattr(made, name, told(method))


def check_unchanged(begun: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuses (ValueError) parameters that are not those that learning began with."""
    for name, then in begun.items():
        if now[name] is not then and now[name] != then:
            raise ValueError(
                f"{name} cannot change once learning has begun; it was {then!r} and is {now[name]!r} now. Set it back, "
                "call fit to forget everything, or take a fresh model: sklearn.base.clone(model)."
            )


def check_rate(rate: Any) -> None:
    """Checks a rate of false alarms: a number between 0 and 1."""
    if not 0 < admit_number(rate, "false_alarm_rate") < 1:
        raise ValueError(f"false_alarm_rate is a share of known rows between 0 and 1; got {rate}. Take 0.05, say.")


def validated_settings(settings: Any, facts: Mapping[str, Any], **parameters: Any) -> CNDPMSettings:
    """Returns the learner's settings: what the user set, in any spelling, over the estimator's own `parameters`.

    The `facts` that the estimator knows by itself cannot be set. ValueError: one line for every setting that is wrong.
    """
    if not (settings is None or isinstance(settings, Mapping)):
        raise TypeError(f"settings must be a dictionary of settings by name, or None; got {settings!r}")
    for name in facts:
        if name in (settings or {}):
            raise ValueError(f"{name} is set by the estimator itself; got settings={{{name!r}: ...}}. Leave it out.")
    given = plain_values(dict(settings or {}))
    try:
        return CNDPMSettings.model_validate(CNDPMSettings.merge({**facts, **plain_values(parameters)}, given))
    except ValidationError as error:
        raise ValueError("invalid parameters: " + describe_errors(error)) from None


def plain_values(value: Any) -> Any:
    """Returns the same tree with numpy's numbers, of which grids are often made, as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    return {key: plain_values(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _check_shape(shape: Any) -> None:
    if shape is None:
        return
    if not isinstance(shape, tuple | list) or not all(isinstance(n, Integral) for n in shape) or not shape:
        raise TypeError(f"input_shape must be a tuple of whole numbers such as (1, 28, 28), or None; got {shape!r}")
    if any(int(n) < 1 for n in shape):
        raise ValueError(f"input_shape must have sides of at least 1; got {shape}")
    if len(shape) == 3 and shape[2] in CHANNELS and shape[0] not in CHANNELS:
        turned = (shape[2], *shape[:2])
        raise ValueError(
            f"input_shape={tuple(shape)} has the channels last; take input_shape={turned} and X.transpose(0, 3, 1, 2)."
        )


SEPARATOR = "__"
"""Stands between the parts of a nested parameter's name, as in scikit-learn."""


def leaves(settings: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Returns every value of nested settings by its path.

    Example:
        >>> leaves({"experts": {"kind": "neural"}, "hidden": 8}, "settings")
        {'settings__experts__kind': 'neural', 'settings__hidden': 8}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        path = f"{prefix}{SEPARATOR}{name}"
        found |= leaves(value, path) if isinstance(value, Mapping) else {path: value}
    return found


def changed_settings(settings: Mapping[str, Any] | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings with changes by path, or raises ValueError; they keep their spelling where they can."""
    nested = _nested(changes)
    tree = CNDPMSettings.merge(settings or {}, nested)
    spelt = _overlaid(settings or {}, nested)
    try:
        return spelt if CNDPMSettings.merge({}, spelt) == tree else tree
    except ValueError:  # the same setting in two spellings: the nested one holds each once
        return tree


def _nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, value in changes.items():
        *sections, name = path.split(SEPARATOR)
        node = nested
        for section in sections:
            node = node.setdefault(section, {})
        node[name] = value
    return nested


def _overlaid(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    overlaid = dict(settings)
    for name, value in changes.items():
        inner = overlaid.get(name)
        overlaid[name] = _overlaid(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return overlaid
