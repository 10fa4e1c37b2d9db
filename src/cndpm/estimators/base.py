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
from torch import Tensor

from cndpm.estimators.serial import from_plain, to_plain
from cndpm.learners.assembly import CustomDensity, CustomPredictor
from cndpm.learners.cndpm import CNDPM
from cndpm.learners.settings import CNDPMSettings
from cndpm.state import State, StateError, load_state, save_state

__all__ = ["DEFAULTS", "Estimator"]

DEFAULTS: dict[str, Any] = {
    "standardise": True,
    "anytime": True,
    "likelihood": "gaussian",
    "n_latent_samples": 8,
    "n_train_latent_samples": 1,
    "density_lr": 2e-3,
    "predictor_lr": 2e-3,
    "density_sleep_steps": 3000,
    "predictor_sleep_steps": 2000,
    "density_wake_lr_factor": 0.2,
    "predictor_wake_lr_factor": 0.2,
    "sleep_until": "converged",
    "sleep_check_every": 50,
    "sleep_patience": 4,
    "min_share": 0.0,
}
"""What serves rows of any scale without tuning; the paper's settings are `CNDPMSettings()`."""


class Estimator(BaseEstimator):  # type: ignore[misc]
    """The part of an estimator that does not depend on what y is."""

    _kind: ClassVar[str]
    _target: ClassVar[Literal["classes", "values", "none"]]
    _defaults: ClassVar[dict[str, Any]]

    def __init__(
        self,
        *,
        memory_size: int = 500,
        log_alpha: float | None = None,
        batch_size: int = 10,
        input_shape: tuple[int, ...] | None = None,
        density: CustomDensity | None = None,
        predictor: CustomPredictor | None = None,
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

    # Saving

    def save(self, path: str | Path) -> None:
        """Writes parameters and everything learned to one file: data, no code.

        A saved model goes on learning, after :meth:`load`, to the same bits as if it had never been saved.
        """
        check_is_fitted(self, "learner_")
        for name in ("density", "predictor"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"a {name} class of one's own is code, which the file does not hold; save its parameters with "
                    "learner_.state_dict() instead"
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
        params = {k: v for k, v in self.get_params(deep=False).items() if k not in ("density", "predictor")}
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
        chosen: dict[str, Any] = {"memory_size": self.memory_size}
        if self.log_alpha is not None:
            chosen["log_alpha"] = self.log_alpha
        values = {**self._defaults, **chosen, **(self.settings or {}), "target": self._target}
        if self._target == "values":
            values["n_outputs"] = n_outputs
        return CNDPM(
            _validated(values),
            input_shape=self._input_shape(),
            n_classes=n_classes,
            seed=self._seed,
            device=_device(self.device),
            density=self.density,
            predictor=self.predictor,
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

    def _validate(self, X: ArrayLike | Tensor, y: Any = "no_validation", *, reset: bool) -> Any:
        """X as float32 (n, n_features), checked against what was fitted; images may come in their own shape."""
        return validate_data(self, X=_flat(X, self.input_shape), y=y, reset=reset, dtype=np.float32)

    def _tensor(self, X: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(X)).reshape(len(X), *self._input_shape())

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


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must be 'auto' or a torch device such as 'cpu' or 'cuda'; got {name!r}") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={name!r} was asked for, but no CUDA device is available; use 'auto' or 'cpu'")
    return device


def _validated(values: dict[str, Any]) -> CNDPMSettings:
    """Settings, or a ValueError with one line for every wrong one."""
    try:
        return CNDPMSettings(**values)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}; got {e['input']!r}" for e in error.errors()]
        raise ValueError("invalid parameters: " + "; ".join(lines)) from None
