"""Model files: what is checked before an estimator is made of one.

A file holds the parameters as they were given, the settings as they were resolved, and everything learned. A loaded
model is built from the resolved settings, so that a default which has changed since does not change the model.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from torch import Tensor

from cndpm.devices import resolve_device
from cndpm.estimators.serial import from_plain
from cndpm.names import is_object_name
from cndpm.state import State, StateError, expect, maybe, non_finite, read_state, save_state, whole
from cndpm.state.tree import detach_tensors
from cndpm.validation import ConfigError
from cndpm.version import __version__

_MOST = 1 << 31
_TIMES, _ALWAYS = 10, 1 << 28  # bytes of memory for each byte of a file, and those that any file may take
_SIZES = frozenset((
    *("n_patches", "n_fourier", "image_size", "n_expanded", "latent_dim", "n_latent_samples"),
    *("n_train_latent_samples", "hidden", "hidden_growth", "channels", "channel_growth", "density_channels"),
    *("density_channel_growth", "density_blocks", "n_outputs"),
))  # fmt: skip
"""Settings that say how large something is that a model is made of."""


def save_model(path: str | Path, exported: State, *, kind: str) -> None:
    """Writes everything that an estimator exported; StateError where not all is finite, or nothing can be written."""
    if broken := _broken(exported):
        raise StateError(
            f"nothing was saved: the model holds values that are not finite, in {', '.join(broken[:3])}. It has "
            "diverged; go on from an earlier file"
        )
    try:
        save_state(
            path, {k: v for k, v in exported.items() if k != "settings"}, kind=kind, settings=exported["settings"]
        )
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror or error}") from error


def load_model(
    path: str | Path, *, kind: str, parameters: frozenset[str], imports: bool
) -> tuple[State, dict[str, Any]]:
    """Returns what an estimator exported and its parameters, once all is checked that can be before a model is made.

    With `imports` settings may name classes to import, which is to run code. StateError: the file is damaged, of
    another kind, incomplete, or of a version that cannot be read.
    """
    file = read_state(path, kind=kind)
    try:
        state = {**file.state, "settings": file.settings}
        _check(state, parameters)
        _admit_sizes(state)
        if not imports and (named := _imports(state)):
            raise StateError(
                f"names code to import: {', '.join(named[:3])}. If you trust it, load it with imports=True"
            )
        return {**state, "package": file.package}, _on_this_machine(from_plain(state["params"]))
    except Exception as error:
        raise StateError(refusal(path, kind, file.package, error)) from error


def refusal(path: str | Path, kind: str, package: str | None, error: Exception) -> str:
    """Says why a file cannot be loaded, and which version to install where another one wrote it."""
    reason = str(error) if isinstance(error, StateError) else f"{type(error).__name__}: {str(error)[:300]}"
    other = package is not None and package != __version__
    remedy = f". It was written by cndpm {package}; install cndpm=={package} to load it" if other else ""
    return f"{path} does not hold a complete {kind} that this version can load: {reason}{remedy}"


def _check(state: State, parameters: frozenset[str]) -> None:
    facts = {
        "seed": whole(high=_MOST),
        "n_outputs": whole(1, _MOST),
        "n_classes": maybe(whole(0, _MOST)),
        "n_features_in": whole(1, _MOST),
    }
    expect(state, facts)
    names, params = state["feature_names_in"], state["params"]
    if not (names is None or (_is_text(names) and len(names) == state["n_features_in"])):
        raise StateError("feature_names_in must be a name for every feature, or nothing")
    if not isinstance(params, dict) or not params.keys() <= parameters:
        raise StateError(f"params must be some of {', '.join(sorted(parameters))}; got {str(params)[:200]}")
    if not _is_text(state.get("merged_from", [])):
        raise StateError("merged_from must be a list of texts")
    if broken := _broken(state):
        raise StateError(f"values that are not finite in {', '.join(broken[:3])}")


def _admit_sizes(state: State) -> None:
    """Refuses settings by which far more memory would be taken than the file has: a layer of n has n x n numbers."""
    tensors: dict[str, Tensor] = {}
    detach_tensors(state, tensors)
    n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    most = math.isqrt((_ALWAYS + _TIMES * n_bytes) // 8)

    def look(node: Any, name: str = "") -> None:
        if type(node) is int and name in _SIZES and node > most:
            raise StateError(f"{name}={node} is more than a file with {n_bytes} bytes of numbers can be of")
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            look(inner, key if isinstance(key, str) else name)

    look(state["settings"])


def _broken(state: State) -> list[str]:
    """Returns the names of tensors that should be finite and are not: levels of novelty may be without bound."""
    return [name for name in non_finite(state) if not name.startswith("learner/novelty/")]


def _is_text(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _imports(state: State) -> list[str]:
    """Returns all import paths among settings and parameters."""
    found: list[str] = []

    def look(node: Any) -> None:
        if isinstance(node, str) and is_object_name(node):
            found.append(node)
        for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            look(inner)

    look([state["settings"], state["params"].get("settings")])
    return found


def _on_this_machine(params: dict[str, Any]) -> dict[str, Any]:
    """Takes the CPU in place of a device that is not there: a model learned on a GPU is read without one."""
    try:
        resolve_device(params.get("device", "auto"))
    except ConfigError:
        return {**params, "device": "cpu"}
    return params
