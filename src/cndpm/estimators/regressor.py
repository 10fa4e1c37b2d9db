"""`CNDPMRegressor`: the mixture as a scikit-learn regressor."""

from __future__ import annotations

from reprlib import repr as shown
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from torch import Tensor

from cndpm.estimators.arrays import admit_magnitude, admit_number, as_array, plain_rows, readable, scored_by
from cndpm.estimators.base import Estimator, Times, declared
from cndpm.estimators.explanation import Explanation
from cndpm.estimators.guarded import answers, changes
from cndpm.estimators.missing import Completions, mean_over
from cndpm.experts.pool.class_pool import When

__all__ = ["CNDPMRegressor"]


@declared
class CNDPMRegressor(RegressorMixin, Estimator):  # type: ignore[misc]
    """Regressor for streams whose distribution changes, without being told when.

    Every expert predicts a Gaussian; the mixture's mean is the prediction, its spread the uncertainty.

    Args:

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = CNDPMRegressor(memory_size=50, random_state=0).fit(X, X[:, 0])
        >>> mean, deviation = model.predict([[1.0, 0.0]], return_std=True)
        >>> bool(abs(mean[0] - 1) < 0.2), deviation.shape
        (True, (1,))
    """

    _kind = "CNDPMRegressor"
    _target = "values"
    score = scored_by(r2_score)

    @changes
    def partial_fit(self, X: ArrayLike | Tensor, y: ArrayLike | Tensor, sample_weight: ArrayLike | None = None) -> Self:
        """Learns the next samples of the stream.

        Args:
            X: (n, n_features), or (n, *input_shape); NaN where a value is missing.
            y: Targets, (n,) or (n, n_outputs).
            sample_weight: (n,); a sample of weight w counts as if it had come w times.
        """
        return self._teach(X, y, sample_weight)

    @changes
    def fit(self, X: ArrayLike | Tensor, y: ArrayLike | Tensor, sample_weight: ArrayLike | None = None) -> Self:
        """Forgets everything, learns X as a stream in the order given, and consolidates.

        The order of up to 30 rows, which are too few to show one, makes no difference.

        Args:
            X: (n, n_features), or (n, *input_shape); NaN where a value is missing.
            y: Targets, (n,) or (n, n_outputs).
            sample_weight: (n,), as for :meth:`partial_fit`; a factor that all have in common changes nothing.
        """
        return self._teach_anew(X, y, sample_weight)

    @answers
    def predict(
        self, X: ArrayLike | Tensor, return_std: bool = False, *, when: When = "now"
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the mean of each sample's target, (n,) or (n, n_outputs).

        Args:
            X: (n, n_features), or (n, *input_shape).
            return_std: Whether its standard deviation is returned too.
            when: "now" asks for the rule that holds now, "next" for the rows that come next in the stream, in the order
                given, so that the latest errors count too, "any" as if any time of the stream were equally likely. Only
                tables with default features tell them apart.
        """
        mean, variance = self._moments(*self._asked(X), when=when)
        if self._flat_target:
            mean, variance = mean[:, 0], variance[:, 0]
        return (mean, np.sqrt(variance)) if return_std else mean

    @answers
    def predict_interval(
        self, X: ArrayLike | Tensor, *, coverage: float = 0.9, when: When = "now"
    ) -> NDArray[np.float64]:
        """Returns lower and upper bounds of each sample's target, (n, 2) or (n, n_outputs, 2).

        They are those of a normal distribution with the mean and the deviation of :meth:`predict`.

        Args:
            X: (n, n_features), or (n, *input_shape).
            coverage: Share of targets that lie between them.
            when: See :meth:`predict`.
        """
        mean, deviation = self.predict(X, return_std=True, when=when)
        return normal_interval(mean, deviation, coverage)

    @answers
    def explain(self, X: ArrayLike | Tensor) -> Explanation:
        """Returns which expert answered for each row, the mean and deviation of the target, and how new the row is."""
        mean, std = self.predict(X, return_std=True)
        return Explanation(**self._responsible(*self._asked(X)), prediction=mean, std=std)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _moments(
        self, x: Tensor, ways: Completions | None, *, when: When
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns mean and variance of the targets, (n, n_outputs) each, over all completions of a row."""
        each = self.learner_.predict_moments(x, when=when).cpu().numpy()
        mean, variance = each[:, 0], each[:, 1]
        if ways is None:
            return mean, variance
        overall = mean_over(ways, mean)
        return overall, np.maximum(mean_over(ways, variance + mean**2) - overall**2, mean_over(ways, variance))

    @property
    def _flat_target(self) -> bool:
        return self.learner_.settings.n_outputs == 1

    def _drawn(self, y: Tensor, experts: Tensor) -> NDArray[Any]:
        return (y[:, 0] if self._flat_target else y).cpu().numpy()

    def _begin(self, targets: Tensor, times: Times) -> Tensor:
        self._learner = self._make_learner(n_outputs=targets.shape[1])
        return targets

    @changes
    def _learn_known(self, rows: NDArray[np.float32], targets: list[float]) -> None:
        """Learns rows (n, d) that need no check and that nobody else changes, with one number each."""
        self._learn(torch.from_numpy(rows), torch.tensor(targets, dtype=torch.float32)[:, None])

    def _read_pair(self, X: ArrayLike | Tensor, y: Any, *, reset: bool) -> tuple[Tensor, Tensor]:
        y = _numeric(as_array(y, "y"))
        plain = None if reset else self._plain_pair(X, y)
        rows, y = plain or self._validate(X, y=y, reset=reset, multi_output=True, y_numeric=True)
        self._admit_magnitude(rows, is_first=reset)
        admit_magnitude(y, "y")
        targets = torch.tensor(np.ascontiguousarray(y), dtype=torch.float32)
        return self._tensor(rows), targets.reshape(len(targets), -1)

    def _plain_pair(self, X: Any, y: Any) -> tuple[NDArray[np.float32], NDArray[Any]] | None:
        """Returns X and y where both are plain arrays of finite numbers; None where they need another look."""
        if hasattr(self, "feature_names_in_") or type(y) is not np.ndarray or y.dtype.kind not in "fiu" or y.ndim > 2:
            return None
        rows = None if self._reader is not None else plain_rows(X, self.n_features_in_)
        return None if rows is None or y.shape[:1] != (len(rows),) or not np.isfinite(y).all() else (rows, y)


def normal_interval(
    mean: NDArray[np.float64], deviation: NDArray[np.float64], coverage: float, name: str = "coverage"
) -> NDArray[np.float64]:
    """Returns the bounds (..., 2) between which normal variables lie with probability `coverage`, between 0 and 1.

    A message calls it by the `name` that the caller has for it.
    """
    if not 0 < admit_number(coverage, name) < 1:
        raise ValueError(f"{name} is a probability between 0 and 1; got {coverage}. Take 0.9 for nine in ten.")
    away = ndtri(0.5 + coverage / 2) * deviation
    return np.stack([mean - away, mean + away], axis=-1)


def _numeric(y: Any) -> Any:
    """Returns targets, of which text is read as numbers; ValueError where one is none, or too large."""
    is_text = isinstance(y, np.ndarray) and y.dtype.kind in "US"
    if not (is_text or (isinstance(y, list) and any(isinstance(one, str) for one in y))):
        return y
    try:
        with readable("y"):
            return np.asarray(y, dtype=np.float64)
    except (ValueError, TypeError):
        raise ValueError(
            f"y of a regressor holds numbers; got {shown(y[:1])[:40]}. For labels use CNDPMClassifier."
        ) from None
