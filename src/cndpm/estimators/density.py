"""`CNDPMDensity`: the mixture as a scikit-learn density estimator, for unlabelled streams."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from cndpm.estimators.base import Estimator, consolidate
from cndpm.estimators.guarded import answers, changes
from cndpm.estimators.journal import Step
from cndpm.mixture import Merge

__all__ = ["CNDPMDensity"]


class CNDPMDensity(DensityMixin, Estimator):  # type: ignore[misc]
    """Estimates the density of an unlabelled stream whose distribution changes.

    Its experts are clusters, found on the way.

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

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(20, 1, (100, 2))])
        >>> model = CNDPMDensity(memory_size=50, random_state=0).fit(X)
        >>> model.n_experts_, model.predict(X[[0, -1]]).tolist()
        (2, [0, 1])
        >>> near, far = model.score_samples([[0.0, 0.0], [10.0, 10.0]])
        >>> bool(near > far)
        True
    """

    _kind = "CNDPMDensity"
    _target = "none"

    @changes
    def partial_fit(self, X: ArrayLike | Tensor, y: None = None) -> Self:
        """Learns the next samples of the stream.

        Args:
            X: (n, n_features), or (n, *input_shape).
            y: Ignored.
        """
        if not hasattr(self, "learner_"):
            self._adopt(self._fresh(X))
            return self
        self._check(anew=False)
        self._learn(self._tensor(self._validate(X, reset=False)), None)
        return self

    @changes
    def fit(self, X: ArrayLike | Tensor, y: None = None) -> Self:
        """Forgets everything, learns X as a stream in the order given, and consolidates.

        Args:
            X: (n, n_features), or (n, *input_shape).
            y: Ignored.
        """
        fresh = self._fresh(X)
        consolidate(fresh.learner_)
        self._adopt(fresh)
        return self

    @answers
    def score_samples(self, X: ArrayLike | Tensor) -> NDArray[np.float64]:
        """Returns the log density of each sample, (n,)."""
        x = self._answering(X)
        return self.learner_.log_prob(x).cpu().numpy()

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

    @answers
    def predict(self, X: ArrayLike | Tensor) -> NDArray[np.int64]:
        """Returns the expert most probably responsible for each sample, (n,)."""
        x = self._answering(X)
        if self.n_experts_ == 0:
            raise ValueError("there is no expert yet; learn more or call consolidate()")
        return self.learner_.expert_log_proba(x).argmax(dim=1).cpu().numpy()

    @answers
    def sample(self, n_samples: int = 1, *, random_state: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Draws samples from the mixture.

        Args:
            n_samples: Number of samples.
            random_state: Determines the draws; the model is not changed.

        Returns:
            Samples (n_samples, *input_shape), and the index of the expert of each, (n_samples,).
        """
        check_is_fitted(self, "learner_")
        x, _, experts = self.learner_.sample(n_samples, seed=random_state)
        return x.cpu().numpy(), experts.cpu().numpy()

    @changes
    def prune(self, X: ArrayLike | Tensor, *, threshold: float = 0.9) -> list[Merge]:
        """Removes experts that are redundant on given data; see :func:`cndpm.model.merging.prune`.

        Args:
            X: (n, n_features), or (n, *input_shape).
            threshold: Pairs of experts that are less similar are left alone.

        Returns:
            The merges, in the numbering of the experts before pruning.
        """
        x = self._answering(X)
        merges: list[Merge] = self._apply(Step(lambda learner, _: learner.prune(x, threshold=threshold), x.nbytes))
        return merges

    def _fresh(self, X: Any) -> Self:
        """Returns another estimator that has learned these samples and nothing else."""
        self._check(anew=True)
        fresh = self._blank()
        x = fresh._tensor(fresh._validate(X, reset=True))
        fresh._start()
        fresh._learner = fresh._make_learner()
        fresh._learner.learn_block(x, None, fresh.batch_size)
        return fresh
