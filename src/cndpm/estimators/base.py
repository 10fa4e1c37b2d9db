"""What the three estimators share: input, device, the learner inside, saving and loading."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from cndpm.devices import resolve_device
from cndpm.estimators.notebook import mixture_html
from cndpm.estimators.serial import from_plain, to_plain
from cndpm.experts.features import ModuleFeatures
from cndpm.model.assembly import CustomDensity, CustomPredictor
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import State, StateError, load_state, save_state

__all__ = ["DEFAULTS", "Estimator"]

DEFAULTS: dict[str, Any] = {"experts": "gaussian", "log_alpha": "auto", "anytime": True}
"""What serves without tuning: closed-form experts, a concentration of the model's own, answers from the first batch.

The paper's settings are those of :class:`cndpm.model.settings.CNDPMSettings`.
"""


_CODE = ("density", "predictor", "features")
"""Parameters that may hold the user's own classes and modules."""


class Estimator(BaseEstimator):  # type: ignore[misc]
    """The part of an estimator that does not depend on what y is."""

    _kind: ClassVar[str]
    _target: ClassVar[Literal["classes", "values", "none"]]
    _defaults: ClassVar[dict[str, Any]]

    def __init__(
        self,
        *,
        memory_size: int = 500,
        log_alpha: float | Literal["auto"] = "auto",
        batch_size: int = 10,
        input_shape: tuple[int, ...] | None = None,
        density: CustomDensity | None = None,
        predictor: CustomPredictor | None = None,
        features: nn.Module | None = None,
        settings: dict[str, Any] | None = None,
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.memory_size = memory_size
        self.log_alpha = log_alpha
        self.batch_size = batch_size
        self.input_shape = input_shape
        self.density = density
        self.predictor = predictor
        self.features = features
        self.settings = settings
        self.device = device
        self.random_state = random_state

    # What was learned

    learner_: CNDPM
    n_features_in_: int

    @property
    def n_experts_(self) -> int:
        """Number of experts made so far."""
        check_is_fitted(self, "learner_")
        return self.learner_.n_experts

    @property
    def counts_(self) -> NDArray[np.float64]:
        """Samples that each expert has learned, (n_experts,)."""
        check_is_fitted(self, "learner_")
        return self.learner_.counts.cpu().numpy()

    def consolidate(self) -> Self:
        """Sleeps now on whatever the memory holds: what was provisional becomes an expert."""
        check_is_fitted(self, "learner_")
        self.learner_.consolidate()
        return self

    @classmethod
    def paper(cls, *, log_alpha: float = -400.0, settings: dict[str, Any] | None = None, **parameters: Any) -> Self:
        """The paper's configuration: neural experts, a concentration set by hand, only experts answer.

        Args:
            log_alpha: Log concentration; the paper's values reach from -450 to 410, one for each dataset.
            settings: Further settings; the defaults are those of Split-MNIST.
            parameters: As for the class.

        Example:
            >>> CNDPMClassifier.paper(input_shape=(1, 28, 28), random_state=0)
        """
        papers = {"experts": "neural", "anytime": False}
        return cls(log_alpha=log_alpha, settings={**papers, **(settings or {})}, **parameters)

    def _html_repr(self) -> str:
        """How a notebook shows it: the parameters, and what was learned."""
        shown: str = super()._html_repr()
        if not hasattr(self, "learner_"):
            return shown
        memory = (len(self.learner_.memory), self.learner_.memory.capacity)
        return shown + mixture_html(type(self).__name__, self.counts_.tolist(), memory=memory)

    # Saving

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
        save_state(path, self._export(), kind=self._kind)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads what :meth:`save` wrote."""
        state = load_state(path, kind=cls._kind)
        try:
            estimator = cls(**from_plain(state["params"]))
            estimator._import(state)
        except (KeyError, TypeError, RuntimeError) as error:
            raise StateError(f"{path} does not hold a complete {cls._kind}: {error}") from error
        return estimator

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "learner_" in state:
            state = {**state, "learner_": None, "_learned": self._export()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        learned = state.pop("_learned", None)
        super().__setstate__(state)
        if learned is not None:
            self._import(learned)

    def _export(self) -> State:
        """Everything learned, as tensors and plain values."""
        params = {k: v for k, v in self.get_params(deep=False).items() if k not in _CODE}
        if isinstance(params["random_state"], np.random.RandomState):
            params["random_state"] = self._seed
        names = getattr(self, "feature_names_in_", None)
        return {
            "params": to_plain(params),
            "seed": self._seed,
            "n_outputs": self.learner_.settings.n_outputs,
            "n_classes": self.learner_.n_classes,
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else [str(name) for name in names],
            "learner": self.learner_.state_dict(),
        }

    def _import(self, state: State) -> None:
        self._seed = state["seed"]
        self.n_features_in_ = state["n_features_in"]
        if state["feature_names_in"] is not None:
            self.feature_names_in_ = np.array(state["feature_names_in"], dtype=object)
        self.learner_ = self._make_learner(n_classes=state["n_classes"], n_outputs=state["n_outputs"])
        self.learner_.load_state_dict(state["learner"])

    # Inside

    def _make_learner(self, *, n_classes: int | None = None, n_outputs: int = 1) -> CNDPM:
        chosen = {"memory_size": self.memory_size, "log_alpha": self.log_alpha}
        values = {**self._defaults, **chosen, **(self.settings or {}), "target": self._target}
        if self._target == "values":
            values["n_outputs"] = n_outputs
        return CNDPM(
            _validated(values),
            input_shape=self._input_shape(),
            n_classes=n_classes,
            seed=self._seed,
            device=resolve_device(self.device),
            density=self.density,
            predictor=self.predictor,
            feature_map=ModuleFeatures(self.features) if self.features is not None else None,
        )

    def _start(self) -> None:
        """What happens once, before the first batch: the seed is fixed."""
        self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _input_shape(self) -> tuple[int, ...]:
        shape = tuple(self.input_shape) if self.input_shape is not None else (self.n_features_in_,)
        if math.prod(shape) != self.n_features_in_:
            raise ValueError(
                f"input_shape={shape} has {math.prod(shape)} values a sample; X has {self.n_features_in_} features"
            )
        return shape

    def _validate(self, X: ArrayLike | Tensor, *, reset: bool, **checks: Any) -> Any:
        """X as float32 (n, n_features), checked against what was fitted; images may come in their own shape."""
        return validate_data(self, X=_flat(X, self.input_shape), reset=reset, dtype=np.float32, **checks)

    def _tensor(self, X: NDArray[np.float32]) -> Tensor:
        # A copy in memory of torch, which is aligned: numpy's is so by luck, and bits must not depend on that.
        return torch.tensor(X).reshape(len(X), *self._input_shape())

    def _answering(self, X: ArrayLike | Tensor) -> Tensor:
        check_is_fitted(self, "learner_")
        return self._tensor(self._validate(X, reset=False))

    def _batches(self, n: int) -> list[slice]:
        if self.batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; got {self.batch_size}")
        return [slice(i, i + self.batch_size) for i in range(0, n, self.batch_size)]


def _flat(X: Any, input_shape: tuple[int, ...] | None) -> Any:
    """Tensors become arrays, images become rows; tables (pandas) stay what they are, for their column names."""
    if isinstance(X, Tensor):
        X = X.detach().cpu().numpy()
    if input_shape is not None and isinstance(X, np.ndarray) and X.shape[1:] == tuple(input_shape):
        return X.reshape(len(X), -1)
    return X


def _validated(values: dict[str, Any]) -> CNDPMSettings:
    """Settings, or a ValueError with one line for every wrong one."""
    try:
        return CNDPMSettings(**values)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}; got {e['input']!r}" for e in error.errors()]
        raise ValueError("invalid parameters: " + "; ".join(lines)) from None
