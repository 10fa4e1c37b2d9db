"""`CNDPMRegressor`: the mixture as a scikit-learn regressor."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from cndpm.estimators.base import Estimator, describes_x
from cndpm.mixture import Merge
from cndpm.model.answers import When

__all__ = ["CNDPMRegressor"]


class CNDPMRegressor(RegressorMixin, Estimator):  # type: ignore[misc]
    """Regressor for streams whose distribution changes, without being told when.

    Every expert predicts a Gaussian; the mixture's mean is the prediction, its spread the uncertainty.

    Args:
        memory_size: Samples gathered before a new expert is made of them.
        log_alpha: Log concentration: how readily data counts as new; "auto" is set by the model as it learns.
        batch_size: How many samples `fit` and `partial_fit` learn at once.
        input_shape: Shape of one sample where it is not a row; X may come flat or in shape.
        density: A density class of one's own, for neural experts.
        predictor: A predictor class of one's own, for neural experts.
        features: A torch module, e.g. a pretrained backbone, on whose outputs Gaussian experts work.
        settings: Any other setting, by name: see :class:`cndpm.model.settings.CNDPMSettings`.
        device: "auto", "cpu", "cuda" or another torch device.
        random_state: Seed of every random choice.

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

    def partial_fit(self, X: ArrayLike | Tensor, y: ArrayLike | Tensor) -> Self:
        """Learns the next samples of the stream.

        Args:
            X: (n, n_features), or (n, *input_shape).
            y: Targets, (n,) or (n, n_outputs).
        """
        first = not hasattr(self, "learner_")
        self._check(anew=first)
        x, targets = self._validate_pair(X, y, reset=first)
        if first:
            self._begin(targets)
        self._learn(x, targets)
        return self

    def fit(self, X: ArrayLike | Tensor, y: ArrayLike | Tensor) -> Self:
        """Forgets everything, learns X as a stream in the order given, and consolidates.

        Args:
            X: (n, n_features), or (n, *input_shape).
            y: Targets, (n,) or (n, n_outputs).
        """
        self._check(anew=True)
        x, targets = self._validate_pair(X, y, reset=True)
        self._begin(targets)
        self._learn(x, targets)
        return self.consolidate()

    def predict(
        self, X: ArrayLike | Tensor, return_std: bool = False, *, when: When = "now"
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the mean of each sample's target, (n,) or (n, n_outputs).

        Args:
            X: (n, n_features), or (n, *input_shape).
            return_std: Whether its standard deviation is returned too.
            when: "now" asks for the rule that holds now, "any" as if any time of the stream were equally likely. Only
                tables with default features tell them apart.
        """
        x = self._answering(X)
        mean, variance = (part.cpu().numpy() for part in self.learner_.predict_moments(x, when=when).unbind(dim=1))
        if self._flat_target:
            mean, variance = mean[:, 0], variance[:, 0]
        return (mean, np.sqrt(variance)) if return_std else mean

    def prune(self, X: ArrayLike | Tensor, y: ArrayLike | Tensor, *, threshold: float = 0.9) -> list[Merge]:
        """Removes experts that are redundant on given data; see :func:`cndpm.model.merging.prune`.

        Args:
            X: (n, n_features), or (n, *input_shape).
            y: Targets, (n,) or (n, n_outputs).
            threshold: Pairs of experts that are less similar are left alone.

        Returns:
            The merges, in the numbering of the experts before pruning.
        """
        x, targets = self._validate_pair(X, y, reset=False)
        return self.learner_.prune(x, targets, threshold=threshold)

    def sample(self, n_samples: int = 1, *, random_state: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Draws (X, y) pairs from the mixture.

        Args:
            n_samples: Number of samples.
            random_state: Determines the draws; the model is not changed.
        """
        check_is_fitted(self, "learner_")
        x, y, _ = self.learner_.sample(n_samples, seed=random_state)
        assert y is not None
        return x.cpu().numpy(), (y[:, 0] if self._flat_target else y).cpu().numpy()

    @available_if(describes_x)  # type: ignore[untyped-decorator]
    def score_samples(self, X: ArrayLike | Tensor) -> NDArray[np.float64]:
        """Returns the log density of each sample under the mixture, (n,).

        Not there where the experts model features of x, not x itself, as those of the default do.
        """
        x = self._answering(X)
        return self.learner_.log_prob(x).cpu().numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def _flat_target(self) -> bool:
        return self.learner_.settings.n_outputs == 1

    def _begin(self, targets: Tensor) -> None:
        self._start()
        self.learner_ = self._make_learner(n_outputs=targets.shape[1])

    def _validate_pair(self, X: ArrayLike | Tensor, y: Any, *, reset: bool) -> tuple[Tensor, Tensor]:
        if isinstance(y, Tensor):
            y = y.detach().cpu().numpy()
        rows, y = self._validate(X, y=y, reset=reset, multi_output=True, y_numeric=True)
        targets = torch.tensor(y, dtype=torch.float32)
        return self._tensor(rows), targets.reshape(len(targets), -1)
