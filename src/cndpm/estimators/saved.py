"""Saving and copying of estimators: everything learned as data, and models made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cndpm.estimators.guarded import Guarded, answers, persistent
from cndpm.estimators.model_files import load_model, refusal, save_model
from cndpm.estimators.serial import to_plain
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import State, StateError, check_same_form

__all__ = ["Saved"]

_CODE = ("density", "predictor", "features")
"""Parameters that may hold the user's own classes and modules."""


class Saved(Guarded, BaseEstimator):  # type: ignore[misc]
    """Writes an estimator to a file, reads it, pickles and copies it; abstract.

    Example:
        >>> from cndpm import CNDPMDensity
        >>> isinstance(CNDPMDensity(), Saved)
        True
    """

    _kind: ClassVar[str]
    _target: ClassVar[Literal["classes", "values", "none"]]
    _seed: int
    _merged_from: frozenset[str] = frozenset()
    """What tells the models from others that this one was merged from; see :func:`cndpm.merge`."""
    n_features_in_: int

    def _make_learner(
        self, *, n_classes: int | None = None, n_outputs: int = 1, settings: CNDPMSettings | None = None
    ) -> CNDPM:
        """Makes a learner of the parameters, which has learned nothing."""
        raise NotImplementedError

    def _check(self, *, anew: bool) -> None:
        """Checks all parameters, before anything changes."""
        raise NotImplementedError

    def _input_shape(self) -> tuple[int, ...]:
        """Returns the shape of one sample."""
        raise NotImplementedError

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
        save_model(path, self._exported(), kind=self._kind)

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
        names = frozenset(cls._get_param_names()) - set(_CODE)
        state, params = load_model(path, kind=cls._kind, parameters=names, imports=imports)
        try:
            estimator = cls(**params)
            estimator._check(anew=True)
            estimator._import(state)
            check_same_form(state.pop("learner"), estimator.learner_.state_dict())
            estimator._rehearse()
        except Exception as error:
            raise StateError(refusal(path, cls._kind, state["package"], error)) from error
        return estimator

    @answers
    def __getstate__(self) -> dict[str, Any]:
        state = persistent(super().__getstate__())
        if "_learner" in state:
            state = {**state, "_learner": None, "_learned": self._export()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        learned = state.get("_learned")
        super().__setstate__({name: value for name, value in state.items() if name not in ("_learned", "_learner")})
        if learned is not None:
            self._import(learned)

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
        self._merged_from = frozenset(state.get("merged_from", ()))

    def _rehearse(self) -> None:
        """Answers for a sample of zeros, experts too: parts of a file that do not fit each other show here."""
        if self.learner_.n_experts and self.density is None and self.predictor is None:
            x = torch.zeros(1, *self._input_shape())
            answers = {"classes": "predict_log_proba", "values": "predict_moments", "none": "expert_log_proba"}
            if any(getattr(self.learner_, ask)(x).isnan().any() for ask in {answers[self._target], "expert_log_proba"}):
                raise StateError("its answers are not numbers")
