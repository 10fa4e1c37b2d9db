"""`CNDPMDensity`: the mixture as a scikit-learn density estimator, for unlabelled streams."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from cndpm.estimators.base import Estimator
from cndpm.mixture import Merge

__all__ = ["CNDPMDensity"]


class CNDPMDensity(DensityMixin, Estimator):  # type: ignore[misc]
    """Density of an unlabelled stream whose distribution changes; its experts are clusters found on the way.

    Args:
        memory_size: Samples gathered before a new expert is made of them.
        log_alpha: Log concentration: how readily data counts as new; "auto" is set by the model as it learns.
        batch_size: How many samples `fit` and `partial_fit` learn at once.
        input_shape: Shape of one sample where it is not a row; X may come flat or in shape.
        density: A density class of one's own, for neural experts.
        features: A torch module, e.g. a pretrained backbone, on whose outputs Gaussian experts work.
        settings: Any other setting, by name: see :class:`cndpm.model.settings.CNDPMSettings`.
        device: "auto", "cpu", "cuda" or another torch device.
        random_state: Seed of every random choice.
    """

    _kind = "CNDPMDensity"
    _target = "none"

    def partial_fit(self, X: ArrayLike | Tensor, y: None = None) -> Self:
        """Learns the next samples of the stream; y is ignored."""
        first = not hasattr(self, "learner_")
        self._check(anew=first)
        x = self._tensor(self._validate(X, reset=first))
        if first:
            self._begin()
        self._learn(x, None)
        return self

    def fit(self, X: ArrayLike | Tensor, y: None = None) -> Self:
        """Forgets everything, learns X as a stream in the order given, and consolidates; y is ignored."""
        self._check(anew=True)
        x = self._tensor(self._validate(X, reset=True))
        self._begin()
        self._learn(x, None)
        return self.consolidate()

    def score_samples(self, X: ArrayLike | Tensor) -> NDArray[np.float64]:
        """Log density of each sample, (n,)."""
        x = self._answering(X)
        return self.learner_.log_prob(x).cpu().numpy()

    def score(self, X: ArrayLike | Tensor, y: None = None) -> float:
        """Mean log density; y is ignored."""
        return float(self.score_samples(X).mean())

    def bits_per_dim(self, X: ArrayLike | Tensor) -> float:
        """Mean negative log density in bits per feature: lower is better."""
        return -self.score(X) / (self.n_features_in_ * math.log(2))

    def predict(self, X: ArrayLike | Tensor) -> NDArray[np.int64]:
        """The expert most probably responsible for each sample, (n,)."""
        x = self._answering(X)
        if self.n_experts_ == 0:
            raise ValueError("there is no expert yet; learn more or call consolidate()")
        return self.learner_.expert_log_proba(x).argmax(dim=1).cpu().numpy()

    def sample(self, n_samples: int = 1, *, random_state: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Draws samples from the mixture, and the expert that each comes from."""
        check_is_fitted(self, "learner_")
        x, _, experts = self.learner_.sample(n_samples, seed=random_state)
        return x.cpu().numpy(), experts.cpu().numpy()

    def prune(self, X: ArrayLike | Tensor, *, threshold: float = 0.9) -> list[Merge]:
        """Removes experts that are redundant on given data; returns what was merged into what."""
        return self.learner_.prune(self._answering(X), threshold=threshold)

    def _begin(self) -> None:
        self._start()
        self.learner_ = self._make_learner()
