"""Models of scikit-learn and river as learners, by the names of their classes: for comparisons.

``sklearn:sklearn.linear_model.SGDClassifier`` learns by `partial_fit`, ``river:river.forest.ARFClassifier`` row by row.
What is named may also be a function that makes such a model, a pipeline for instance. Settings are its arguments.

Their state is no data, so a checkpoint holds the samples instead, from which a resumed run learns again: to the same
bits, in the same time.
"""

from __future__ import annotations

import inspect
import pickle
from abc import abstractmethod
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ConfigDict, model_validator
from torch import Tensor

from cndpm.learner import Footprint, Inputs, Learner, LearnerSettings
from cndpm.names import ObjectNameError, load_object, nearest_names
from cndpm.state import State
from cndpm.validation import ConfigError

_SEEDS = ("random_state", "seed")
"""Arguments by which models of others take a seed."""
_LEAST = 1e-6
"""The least probability of a label."""


class _Arguments(LearnerSettings):
    """Arguments of a model, by name."""

    model_config = ConfigDict(frozen=True, extra="allow", validate_default=True)
    _make: ClassVar[Any]

    @model_validator(mode="after")
    def _are_known(self) -> Self:
        known = inspect.signature(self._make).parameters
        takes_any = any(one.kind is one.VAR_KEYWORD for one in known.values())
        for name in () if takes_any else sorted((self.model_extra or {}).keys() - known.keys()):
            near = nearest_names(name, list(known))
            raise ValueError(f"no argument {name!r}." + (f" Did you mean {' or '.join(near)}?" if near else ""))
        return self


class _Others(Learner):
    """Holds a model of another package and all samples that it has learned; abstract."""

    _needs: ClassVar[tuple[str, ...]]
    _make: ClassVar[Any]
    Settings = _Arguments

    def __init__(self, settings: Any, **facts: Any) -> None:
        super().__init__(settings, **facts)
        if self.n_classes is None:
            raise ConfigError(f"{type(self).__qualname__} is compared where labels are classes that are known at first")
        self._restart()

    def _restart(self) -> None:
        known = inspect.signature(self._make).parameters
        seed = {name: self.seed for name in _SEEDS if name in known}
        try:
            self.model = type(self)._make(**seed | (self.settings.model_extra or {}))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{type(self).__qualname__} made no model: {error}") from error
        missing = [name for name in self._needs if not hasattr(self.model, name)]
        if missing:
            raise ConfigError(f"{type(self).__qualname__} cannot learn a stream of classes: it has no {missing[0]}")
        self._learned: list[tuple[Tensor, Tensor]] = []

    def learn(self, x: Inputs, y: Tensor | None) -> None:
        assert y is not None
        self._learned.append((x.detach().cpu().clone(), y.detach().cpu().clone()))
        self._learn(x.detach().flatten(1).cpu().numpy().astype(np.float64), y.cpu().numpy())

    def predict_log_proba(self, x: Inputs) -> Tensor:
        if not self._learned:
            return torch.full((len(x), self.n_classes), -float(np.log(self.n_classes)))  # type: ignore[arg-type]
        proba = np.clip(self._proba(x.detach().flatten(1).cpu().numpy().astype(np.float64)), _LEAST, None)
        return torch.from_numpy(np.log(proba / proba.sum(axis=1, keepdims=True))).float()

    def footprint(self) -> Footprint:
        """Counts the bytes of the model's pickle as numbers of four."""
        return Footprint(n_parameters=0, n_numbers_kept=len(pickle.dumps(self.model)) // 4)

    def state_dict(self) -> State:
        none = torch.zeros(0, *self.input_shape), torch.zeros(0, dtype=torch.int64)
        x, y = (torch.cat(parts) for parts in zip(none, *self._learned, strict=True))
        return {"x": x, "y": y, "sizes": torch.tensor([len(y) for _, y in self._learned], dtype=torch.int64)}

    def load_state_dict(self, state: State) -> None:
        self._restart()
        sizes = state["sizes"].tolist()
        for x, y in zip(state["x"].split(sizes), state["y"].split(sizes), strict=True):
            self.learn(x, y)

    @abstractmethod
    def _learn(self, x: NDArray[np.float64], y: NDArray[np.int64]) -> None:
        """Has the model learn rows (n, d)."""

    @abstractmethod
    def _proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the model's probabilities, (n, n_classes)."""


class _SklearnLearner(_Others):
    """Learns batches by `partial_fit`."""

    _needs = ("partial_fit", "predict")

    def _learn(self, x: NDArray[np.float64], y: NDArray[np.int64]) -> None:
        self.model.partial_fit(x, y, classes=np.arange(self.n_classes or 0))

    def _proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        if hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.predict_proba(x), dtype=np.float64)
        return np.asarray(self.model.predict(x)[:, None] == np.arange(self.n_classes or 0), dtype=np.float64)


class _RiverLearner(_Others):
    """Learns rows one by one."""

    _needs = ("learn_one", "predict_proba_one")

    def _learn(self, x: NDArray[np.float64], y: NDArray[np.int64]) -> None:
        for row, label in zip(x.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(row)), label)

    def _proba(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        proba = np.zeros((len(x), self.n_classes or 0))
        for answers, row in zip(proba, x.tolist(), strict=True):
            for label, share in self.model.predict_proba_one(dict(enumerate(row))).items():
                answers[int(label)] = share
        return proba


_KINDS: dict[str, type[_Others]] = {"sklearn": _SklearnLearner, "river": _RiverLearner}


@cache
def others_learner(name: str) -> type[Learner]:
    """Returns a learner around a model of scikit-learn or river: ``sklearn:package.module.Class`` or ``river:...``.

    ObjectNameError: there is no such class, or it is not installed.
    """
    kind, _, path = name.replace(":", ".").partition(".")
    module, _, attribute = path.rpartition(".")
    if not module:
        raise ObjectNameError(f"{name} names no class: write {kind}:package.module.Class")
    if not path.startswith(f"{kind}.") and find_spec(module.partition(".")[0]) is None:
        raise ObjectNameError(f"{name}: there is no {module}. Names are as in an import: {kind}:{kind}.{path}")
    make = load_object(f"{module}:{attribute}")
    if not callable(make):
        raise ObjectNameError(f"{name} is no class, and no function that makes a model")
    arguments = type("Arguments", (_Arguments,), {"_make": staticmethod(make), "__module__": __name__})
    members = {"Settings": arguments, "_make": staticmethod(make), "__module__": kind, "__qualname__": path}
    return type(attribute, (_KINDS[kind],), members)
