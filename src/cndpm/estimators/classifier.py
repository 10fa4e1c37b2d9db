"""`CNDPMClassifier`: the mixture as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_consistent_length, check_is_fitted, column_or_1d
from torch import Tensor

from cndpm.estimators.arrays import as_array, plain_labels, readable, scored_by
from cndpm.estimators.base import Estimator, Times, declared
from cndpm.estimators.explanation import Explanation
from cndpm.estimators.guarded import answers, changes
from cndpm.estimators.label_codec import LabelCodec, from_plain, to_plain
from cndpm.estimators.missing import Completions, log_mean_over
from cndpm.estimators.weights import log_class_weights
from cndpm.experts.pool.class_pool import When
from cndpm.state import State, StateError, expect, listed, whole

__all__ = ["CNDPMClassifier"]


@declared
class CNDPMClassifier(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Classifier for streams whose distribution changes, without being told when.

    Experts are made as the data needs them, classes are discovered as they arrive (numbers, strings or tuples), and
    nothing learned before is overwritten.

    Args:
        class_weight: Weights by label, by which the classes' priors are multiplied, or "balanced": answers are as if
            all classes had come equally often so far. It may change at any time.

    Example:
        >>> import numpy as np
        >>> y = np.repeat(["low", "high"], 100)
        >>> X = np.random.default_rng(0).normal(size=(200, 4)) + 9 * (y == "high")[:, None]
        >>> model = CNDPMClassifier(memory_size=50, random_state=0)
        >>> for start in range(0, 200, 20):  # where "high" begins is not told
        ...     model = model.partial_fit(X[start : start + 20], y[start : start + 20])
        >>> model.predict(X[[0, -1]]).tolist(), model.n_experts_
        (['low', 'high'], 2)
    """

    _kind = "CNDPMClassifier"
    _target = "classes"
    score = scored_by(accuracy_score)

    class_weight: dict[Any, float] | Literal["balanced"] | None = None

    @changes
    def partial_fit(
        self,
        X: ArrayLike | Tensor,
        y: Sequence[Any] | NDArray[Any] | Tensor,
        classes: Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learns the next samples of the stream.

        Args:
            X: (n, n_features), or (n, *input_shape); NaN where a value is missing.
            y: (n,) labels: numbers, strings, booleans, None or tuples of these; new ones are welcome at any time.
            classes: All labels there may ever be; optional, and only on the first call.
            sample_weight: (n,); a sample of weight w counts as if it had come w times.
        """
        return self._teach(X, y, sample_weight, classes=classes)

    @changes
    def fit(
        self, X: ArrayLike | Tensor, y: Sequence[Any] | NDArray[Any] | Tensor, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Forgets everything, learns X as a stream in the order given, and consolidates.

        The order of up to 30 rows, which are too few to show one, makes no difference.

        Args:
            X: (n, n_features), or (n, *input_shape); NaN where a value is missing.
            y: (n,) labels, as for :meth:`partial_fit`.
            sample_weight: (n,), as for :meth:`partial_fit`; a factor that all have in common changes nothing.
        """
        return self._teach_anew(X, y, sample_weight)

    @answers
    def predict(self, X: ArrayLike | Tensor, *, exact: bool = False, when: When = "now") -> NDArray[Any]:
        """Returns the most probable label of each sample, (n,).

        Args:
            X: (n, n_features), or (n, *input_shape).
            exact: Whether the experts' covariance is brought up to date first. Otherwise it is as old as its last
                renewal, which follows a schedule; means are always up to date. After `fit` and `consolidate` answers
                are exact until more is learned.
            when: "now" asks for the rule that holds now, "next" for the rows that come next in the stream, in the order
                given, so that how labels follow each other counts too, "any" as if any time of the stream were equally
                likely. Only tables with default features tell them apart.
        """
        best = self.predict_log_proba(X, exact=exact, when=when).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @answers
    def predict_proba(self, X: ArrayLike | Tensor, *, exact: bool = False, when: When = "now") -> NDArray[np.float64]:
        """Returns probabilities (n, n_classes), columns in the order of `classes_`.

        Args:
            X: (n, n_features), or (n, *input_shape).
            exact: Whether what the experts share is brought up to date first; see :meth:`predict`.
            when: See :meth:`predict`.
        """
        proba: NDArray[np.float64] = np.exp(self.predict_log_proba(X, exact=exact, when=when))
        return proba

    @answers
    def predict_log_proba(
        self, X: ArrayLike | Tensor, *, exact: bool = False, when: When = "now"
    ) -> NDArray[np.float64]:
        """Returns log-probabilities (n, n_classes), columns as those of :meth:`predict_proba`.

        Args:
            X: (n, n_features), or (n, *input_shape).
            exact: Whether what the experts share is brought up to date first; see :meth:`predict`.
            when: See :meth:`predict`.
        """
        return self._log_proba(*self._asked(X), exact=exact, when=when)

    @answers
    def decision_function(self, X: ArrayLike | Tensor) -> NDArray[np.float64]:
        """Returns log-odds of the second class, (n,), where there are two; else log-probabilities, (n, n_classes)."""
        log_proba = self.predict_log_proba(X)
        return log_proba[:, 1] - log_proba[:, 0] if log_proba.shape[1] == 2 else log_proba

    @answers
    def explain(self, X: ArrayLike | Tensor) -> Explanation:
        """Returns which expert answered for each row, the label and its probability, and how new the row is."""
        x, ways = self._asked(X)
        log_proba = self._log_proba(x, ways)
        best = log_proba.argmax(axis=1)
        proba = np.exp(log_proba[np.arange(len(best)), best])
        return Explanation(**self._responsible(x, ways), prediction=self.classes_[best], proba=proba)

    @property
    @answers
    def classes_(self) -> NDArray[Any]:
        """The labels met so far, sorted where they can be."""
        check_is_fitted(self, "learner_")
        return self._codec.classes()

    # Inside

    def _log_proba(
        self, x: Tensor, ways: Completions | None, *, exact: bool = False, when: When = "now"
    ) -> NDArray[np.float64]:
        """Returns log-probabilities (n, n_classes), columns in the order of `classes_`, with the classes' weights."""
        order = self._codec.order()
        each = self.learner_.predict_log_proba(x, exact=exact, when=when).cpu().numpy()[:, order]
        log_proba = log_mean_over(ways, each)
        if not self.class_weight:
            return log_proba
        labels, counts = ([values[i] for i in order] for values in (self._codec.labels, self._codec.counts))
        weighted = log_proba + log_class_weights(self.class_weight, labels, counts)
        normalised: NDArray[np.float64] = weighted - logsumexp(weighted, axis=1, keepdims=True)
        return normalised

    def _read_pair(self, X: Any, y: Any, *, reset: bool) -> tuple[Tensor, Any]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        rows = self._validate(X, reset=reset)
        labels = _labels(y)
        if len(rows) != len(labels):
            check_consistent_length(rows, labels)
        return self._tensor(rows), labels

    @changes
    def _learn_known(self, rows: NDArray[np.float32], labels: list[Any]) -> None:
        """Learns rows (n, d) that need no check and that nobody else changes, with labels that were met before."""
        self._go_on(torch.from_numpy(rows), labels, None)

    def _known_targets(self, targets: Any) -> Tensor:
        return torch.from_numpy(self._codec.encode(targets, learn=False))

    def _drawn(self, y: Tensor, experts: Tensor) -> NDArray[Any]:
        labels: NDArray[Any] = np.array(self._codec.labels, dtype=object)[y.cpu().numpy()]
        return labels.astype(self.classes_.dtype)

    def _go_on(self, x: Tensor, targets: Any, times: Times, classes: Sequence[Any] | None = None) -> None:
        if classes is not None and set(LabelCodec(classes).labels) != set(self._codec.labels):
            raise ValueError(f"classes={list(classes)} differs from the first call's: {self._codec.labels}")
        codec = self._codec.copy()  # new labels are only taken over once all are found good
        self._learn(x, torch.from_numpy(codec.encode(targets, times, learn=True)), times, _codec=codec)

    def _begin(self, targets: Any, times: Times, classes: Sequence[Any] | None = None) -> Tensor:
        self._codec = LabelCodec(() if classes is None else classes, closed=classes is not None)
        indices = torch.from_numpy(self._codec.encode(targets, times, learn=True))
        self._learner = self._make_learner(n_classes=len(self._codec) if self._codec.closed else None)
        return indices

    def _export(self) -> State:
        labels = [to_plain(label) for label in self._codec.labels]
        learned = {"labels": labels, "label_counts": list(self._codec.counts), "closed": self._codec.closed}
        return {**super()._export(), **learned}

    def _import(self, state: State) -> None:
        codec = LabelCodec([from_plain(label) for label in state["labels"]], closed=state["closed"])
        expect(state, {"label_counts": listed(whole())})
        if len(state["label_counts"]) != len(codec):
            raise StateError(f"label_counts must be {len(codec)} numbers; got {len(state['label_counts'])}")
        codec.counts = list(state["label_counts"])
        n_classes = len(codec) if codec.closed else None
        if state["n_classes"] != n_classes:
            raise StateError(f"n_classes must be {n_classes}, as its labels say; got {state['n_classes']}")
        super()._import(state)
        if (n_known := self._learner.n_known_classes) > len(codec):
            raise StateError(f"n_known_classes must be at most {len(codec)}, as its labels say; got {n_known}")
        self._codec = codec


def _labels(y: Any) -> Any:
    """Returns one hashable label a sample; arrays are checked as scikit-learn does, other sequences are not."""
    if plain_labels(y) is not None:
        return y
    y = as_array(y, "y")
    with readable("y"):
        if isinstance(y, list | tuple):
            return list(y)
        plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)  # of pandas' columns that may hold NA
        y = column_or_1d(y if plain is None else y.to_numpy(object if y.isna().any() else plain), warn=True)
        is_missing = [label is None or type(label).__name__ == "NAType" for label in y] if y.dtype.kind == "O" else []
        if any(is_missing):
            told = f"y[{is_missing.index(True)}] is {y[is_missing.index(True)]}. Leave out rows without a label"
            raise ValueError(f"{told}; where None is a label, give y as a list.")
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
    return y
