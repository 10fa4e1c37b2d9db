"""`CNDPMDensity`: the mixture as a scikit-learn density estimator and outlier detector, for unlabelled streams."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin, OutlierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from cndpm.estimators.base import Estimator, Times, declared
from cndpm.estimators.explanation import Explanation
from cndpm.estimators.guarded import answers, changes
from cndpm.estimators.missing import log_mean_over
from cndpm.estimators.parameters import check_rate

__all__ = ["CNDPMDensity"]


@declared
class CNDPMDensity(OutlierMixin, DensityMixin, Estimator):  # type: ignore[misc]
    """Estimates the density of an unlabelled stream whose distribution changes, and tells which rows are unlike it.

    Its experts are clusters, found on the way. Rows are kept as examples of what is known: a kernel around each gives
    the density where known rows are likelier so than under the experts, and what they look like to the model sets the
    level below which a row is an outlier, at the rate of false alarms that is asked for.

    Args:
        false_alarm_rate: The share of known rows that `predict` may call outliers; it may change at any time.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(20, 1, (100, 2))])
        >>> model = CNDPMDensity(memory_size=50, random_state=0).fit(X)
        >>> model.n_experts_, model.explain(X[[0, -1]]).expert.tolist()
        (2, [0, 1])
        >>> model.predict([[0.0, 0.0], [10.0, 10.0]]).tolist()
        [1, -1]
        >>> near, far = model.score_samples([[0.0, 0.0], [10.0, 10.0]])
        >>> bool(near > far)
        True
    """

    _kind = "CNDPMDensity"
    _target = "none"

    false_alarm_rate: float = 0.05

    @changes
    def partial_fit(self, X: ArrayLike | Tensor, y: None = None) -> Self:
        """Learns the next samples of the stream.

        Args:
            X: (n, n_features), or (n, *input_shape).
            y: Ignored.
        """
        return self._teach(X)

    @changes
    def fit(self, X: ArrayLike | Tensor, y: None = None) -> Self:
        """Forgets everything, learns X as a stream in the order given, and consolidates.

        Args:
            X: (n, n_features), or (n, *input_shape).
            y: Ignored.
        """
        return self._teach_anew(X, is_table=False)

    @answers
    def score_samples(self, X: ArrayLike | Tensor) -> NDArray[np.float64]:
        """Returns the log density of each sample, (n,).

        Of the experts and of kernels around the kept rows, that one is asked under which known rows are likelier.
        """
        x, ways = self._asked(X)
        watch = self.learner_.watch
        if watch is not None and watch.has_kernels and self.learner_.describes_x:
            return log_mean_over(ways, watch.log_density(x))
        return log_mean_over(ways, self.learner_.log_prob(x).cpu().numpy())

    @answers
    def score(self, X: ArrayLike | Tensor, y: None = None) -> float:
        """Returns the mean log density.

        Args:
            X: (n, n_features), or (n, *input_shape).
            y: Ignored.
        """
        return float(self.score_samples(X).mean())

    @answers
    def bits_per_dim(self, X: ArrayLike | Tensor) -> float:
        """Returns the mean negative log density in bits per feature: lower is better."""
        return -self.score(X) / (self.n_features_in_ * math.log(2))

    @property
    @answers
    def offset_(self) -> float:
        """The log density below which a row is an outlier: -inf until a few rows are known."""
        check_is_fitted(self, "learner_")
        check_rate(self.false_alarm_rate)
        return self._watch().level(self.false_alarm_rate)

    @answers
    def decision_function(self, X: ArrayLike | Tensor) -> NDArray[np.float64]:
        """Returns how far the log density of each row lies above `offset_`, (n,): negative for outliers.

        Where experts have no density of x itself, as those of images by default, it is that of kernels alone.
        """
        x, ways = self._asked(X)
        is_density = self.learner_.describes_x or not self._watch().is_ready
        scores = self.score_samples(X) if is_density else log_mean_over(ways, self._watch().log_density(x))
        return scores - self.offset_

    @answers
    def predict(self, X: ArrayLike | Tensor) -> NDArray[np.int64]:
        """Returns 1 for rows like those that are known and -1 for outliers, (n,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    @answers
    def explain(self, X: ArrayLike | Tensor) -> Explanation:
        """Returns which expert is responsible for each row, how probable and how new the row is."""
        log_density = self.score_samples(X) if self.learner_.describes_x else None
        return Explanation(**self._responsible(*self._asked(X)), prediction=self.predict(X), log_density=log_density)

    def _read_pair(self, X: Any, y: None, *, reset: bool) -> tuple[Tensor, None]:
        return self._tensor(self._validate(X, reset=reset)), None

    def _drawn(self, y: Tensor | None, experts: Tensor) -> NDArray[Any]:
        return experts.cpu().numpy()

    def _begin(self, targets: None, times: Times) -> None:
        self._learner = self._make_learner()
