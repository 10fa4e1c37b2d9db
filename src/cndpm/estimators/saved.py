"""Saving and copying of estimators: everything learned as data, and models made of it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from cndpm.devices import resolve_device
from cndpm.estimators.guarded import Guarded, answers, persistent
from cndpm.estimators.label_codec import from_plain, to_plain
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.names import is_object_name
from cndpm.state import State, StateError, check_same_form, expect, maybe, non_finite, read_state, save_state, whole
from cndpm.state.tree import detach_tensors, exchanged
from cndpm.validation import ConfigError
from cndpm.version import __version__

_MOST = 1 << 31
# Bytes of memory for each byte of a file; and what no number reaches: what is learned is at most 1e15, and is squared.
_TIMES, _BEYOND = 10, 1e100
_COUNTS = ("n_patches", "n_fourier", "image_size", "n_expanded", "n_latent_samples", "n_train_latent_samples")
_SIZES = {
    **dict.fromkeys((*_COUNTS, "n_outputs"), (5792, 8)),
    **dict.fromkeys(("hidden", "hidden_growth", "latent_dim"), (1024, 4)),
    # Of 3 x 3 places, 4 bytes each; a residual network has eight times as many at its end.
    **dict.fromkeys(("channels", "channel_growth", "density_channels", "density_channel_growth"), (128, 4 * 9 * 64)),
    "density_blocks": (64, 1 << 16),
}
"""Settings that say how large something is: what any file may ask for, and the bytes of a model for n times n of it."""


def _check(state: State, parameters: frozenset[str]) -> None:
    facts = {"seed": whole(high=_MOST), "n_outputs": whole(1, _MOST), "n_features_in": whole(1, _MOST)}
    expect(state, {**facts, "n_classes": maybe(whole(0, _MOST))})
    names, params = state["feature_names_in"], state["params"]
    if not (names is None or (_is_text(names) and len(names) == state["n_features_in"])):
        raise StateError("feature_names_in must be a name for every feature, or nothing")
    if not isinstance(params, dict) or not params.keys() <= parameters:
        raise StateError(f"params must be some of {', '.join(sorted(parameters))}; got {str(params)[:200]}")
    if not _is_text(state["merged_from"]):
        raise StateError("merged_from must be a list of texts")
    if broken := _broken(state):
        raise StateError(f"values that are not finite in {', '.join(broken[:3])}, or beyond {_BEYOND:g}")


def _admit_sizes(state: State) -> None:
    """Refuses settings by which far more memory would be taken than the file has: a layer of n has n x n numbers."""
    tensors: dict[str, Tensor] = {}
    detach_tensors(state, tensors)
    n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())

    def look(node: Any, name: str = "") -> None:
        always, square = _SIZES.get(name, (0, 0))
        if type(node) is int and square and node > max(always, math.isqrt(_TIMES * n_bytes // square)):
            raise StateError(f"{name}={node} is more than a file with {n_bytes} bytes of numbers can be of")
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            look(inner, key if isinstance(key, str) else name)

    look(state["settings"])


def _broken(state: State) -> list[str]:
    """Returns the names of tensors that hold what no model comes to: levels of novelty alone may be without bound."""
    return [name for name in non_finite(state, _BEYOND) if not name.startswith("learner/novelty/")]


def _is_text(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _imports(state: State) -> list[str]:
    """Returns all import paths among settings and parameters."""
    found: list[str] = []
    exchanged([state["settings"], state["params"].get("settings")], str, found.append)
    return list(filter(is_object_name, found))


def _as_array(tensor: Tensor) -> Any:  # pickled and copied faster; other tensors than numpy's stay what they are
    is_plain = tensor.device.type == "cpu" and tensor.layout is torch.strided and tensor.dtype is not torch.bfloat16
    return tensor.detach().numpy() if is_plain else tensor


def _on_this_machine(params: dict[str, Any]) -> dict[str, Any]:
    """Takes the CPU in place of a device that is not there: a model learned on a GPU is read without one."""
    try:
        resolve_device(params.get("device", "auto"))
    except ConfigError:
        return {**params, "device": "cpu"}
    return params


_CODE = ("density", "predictor", "features")
"""Parameters that may hold the user's own classes and modules."""


class Saved(Guarded, BaseEstimator):  # type: ignore[misc]
    """Writes an estimator to a file, reads it, pickles and copies it; abstract."""

    __signature__: ClassVar[inspect.Signature]
    _kind: ClassVar[str]
    _target: ClassVar[Literal["classes", "values", "none"]]
    _seed: int
    _merged_from: frozenset[str] = frozenset()
    """What tells the models from others that this one was merged from; see :func:`cndpm.merge`."""
    n_features_in_: int

    _make_learner: Callable[..., CNDPM]
    """Makes a learner of the parameters, which has learned nothing."""
    _check: Callable[..., None]
    """Checks all parameters, before anything changes."""
    _input_shape: Callable[[], tuple[int, ...]]
    """Returns the shape of one sample."""
    _read_pair: Callable[..., tuple[Tensor, Any]]
    """Returns samples and targets, checked; `reset` tells that they are the first."""
    _drawn: Callable[..., NDArray[Any]]
    """Returns what goes with samples that were drawn, as arrays."""
    _begin: Callable[..., Tensor | None]
    """Makes the learner by the first targets; returns these as it learns them."""

    def save(self, path: str | Path) -> None:
        """Writes parameters and everything learned to one file: data, no code.

        A saved model goes on learning, after :meth:`load`, to the same bits as if it had never been saved.
        """
        check_is_fitted(self, "learner_")
        for name in _CODE:
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is code, which the file does not hold; pickle the model, or save "
                    "learner_.state_dict() with cndpm.state.save_state"
                )
        exported = self._exported()
        if broken := _broken(exported):
            raise StateError(
                f"nothing was saved: the model holds values that are not finite, in {', '.join(broken[:3])}. It has "
                "diverged; go on from an earlier file"
            )
        _admit_sizes(exported)
        try:
            save_state(path, exported, kind=self._kind, settings=exported.pop("settings"))
        except OSError as error:
            raise StateError(f"cannot write {path}: {error.strerror or error}") from error

    @classmethod
    def load(cls, path: str | Path, *, imports: bool = False) -> Self:
        """Reads what :meth:`save` wrote; a model that learned on a GPU is read onto the CPU where there is none.

        Args:
            path: The file. Reading it runs no code of it.
            imports: Whether settings in the file may name classes to import (``package.module:Class``), which is to run
                code that is installed here.

        Raises:
            StateError: The file is damaged, of another kind, or of a version that this one cannot read.
        """
        file = read_state(path, kind=cls._kind)
        try:
            state = {**file.state, "settings": file.settings}
            _check(state, frozenset(cls._get_param_names()) - set(_CODE))
            _admit_sizes(state)
            if not imports and (named := _imports(state)):
                raise StateError(f"names code to import: {', '.join(named[:3])}. If you trust it, say imports=True")
            estimator = cls(**_on_this_machine(from_plain(state["params"])))
            estimator._check(anew=True)
            estimator._import(state)
            check_same_form(state.pop("learner"), estimator.learner_.state_dict())
            estimator._rehearse()
        except Exception as error:
            brief = f"{type(error).__name__}: {' '.join(str(error)[:300].split())}"
            reason, by = str(error) if isinstance(error, StateError) else brief, file.package
            remedy = "" if by == __version__ else f". It was written by cndpm {by}; install cndpm=={by} to load it"
            raise StateError(
                f"{path} does not hold a complete {cls._kind} that this version can load: {reason}{remedy}"
            ) from error
        return estimator

    @answers
    def __getstate__(self) -> dict[str, Any]:
        state = persistent(super().__getstate__())
        if "_learner" in state:
            state = {**state, "_learner": None, "_learned": exchanged(self._export(), Tensor, _as_array)}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        learned = state.get("_learned")
        super().__setstate__({name: value for name, value in state.items() if name not in ("_learned", "_learner")})
        if learned is not None:
            self._import(exchanged(learned, np.ndarray, torch.tensor))

    @answers
    def _exported(self) -> State:
        return self._export()

    def _export(self) -> State:
        """Returns everything learned, as tensors and plain values."""
        params = {k: v for k, v in self.get_params(deep=False).items() if k not in _CODE}
        if isinstance(params["random_state"], np.random.RandomState):
            params["random_state"] = self._seed
        names = getattr(self, "feature_names_in_", None)
        return {
            "params": to_plain(params),
            "settings": self.learner_.settings.model_dump(mode="json"),
            "seed": self._seed,
            "n_outputs": self.learner_.settings.n_outputs,
            "n_classes": self.learner_.n_classes,
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else [str(name) for name in names],
            "learner": self.learner_.state_dict(),
            "merged_from": sorted(self._merged_from),
        }

    def _import(self, state: State) -> None:
        self._seed = state["seed"]
        self.n_features_in_ = state["n_features_in"]
        if state["feature_names_in"] is not None:
            self.feature_names_in_ = np.array(state["feature_names_in"], dtype=object)
        learner = self._make_learner(
            n_classes=state["n_classes"], settings=CNDPMSettings.model_validate(state["settings"])
        )
        learner.load_state_dict(state["learner"])
        self._learner = learner
        self._merged_from = frozenset(state["merged_from"])

    def _rehearse(self) -> None:
        """Answers for a sample of zeros, experts too: parts of a file that do not fit each other show here."""
        if self.learner_.n_experts and self.density is None and self.predictor is None:
            x = torch.zeros(1, *self._input_shape())
            answers = {"classes": "predict_log_proba", "values": "predict_moments", "none": "expert_log_proba"}
            if any(getattr(self.learner_, ask)(x).isnan().any() for ask in {answers[self._target], "expert_log_proba"}):
                raise StateError("its answers are not numbers")
