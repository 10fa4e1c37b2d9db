"""Weights of samples and of classes.

A sample of weight w counts as if it had come w times, and is learned so often. What is left of a fraction comes once
more with that probability, drawn by the sample's number, so that sums are right on average and the same calls give the
same model. Weights of a table compare its rows with each other; those of a stream, with rows of other calls.

A class of weight w has its prior multiplied by w: how a class looks does not depend on how often it comes. It changes
answers alone. "balanced" are scikit-learn's weights, n / (n_classes * n_c), with the counts of all samples learned so
far: answers are as if all classes had come equally often. As counts grow, weights follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight
from torch import Tensor

from cndpm.estimators.arrays import as_array, readable
from cndpm.estimators.label_codec import label_values

HEAVIEST = 1000
"""The largest weight: a sample of it is learned as often."""
FEW = 30
"""Rows that are too few to show an order: a rule that was reversed in the middle is hardly found (docs/log.md)."""
_ROUNDING = 1e-6
"""Part of a weight by which it may miss a whole multiple."""
_LARGEST_FLOAT = float(np.finfo(np.float64).max)


def times_learned(
    sample_weight: Any, rows: NDArray[Any], *, seed: int, n_before: int, is_table: bool = False
) -> NDArray[np.int64]:
    """Returns how often each sample is learned, (n,); ValueError for a weight that is negative, masked or too large.

    Of a table (`is_table`) weights are relative: a factor that all have in common is left out.

    Example:
        >>> times_learned([0, 1, 2.5], np.zeros((3, 1)), seed=0, n_before=0).tolist() in ([0, 1, 2], [0, 1, 3])
        True
        >>> times_learned([0, 0.2, 0.4], np.zeros((3, 1)), seed=0, n_before=0, is_table=True).tolist()
        [0, 1, 2]
    """
    given = as_array(sample_weight, "sample_weight")
    with readable("sample_weight"):
        weights = np.asarray(_check_sample_weight(given, rows, dtype=np.float64, ensure_non_negative=True))
    if is_table and weights.any():
        weights = _relative(weights)
    if len(weights) and weights.max() > HEAVIEST:
        raise ValueError(
            f"sample_weight has {weights.max():g}{' times the mean' * is_table}; weights up to {HEAVIEST} can be "
            "learned, since a sample of weight w is learned w times. Give smaller ones."
        )
    whole = np.floor(weights)
    draws = np.random.Generator(np.random.Philox(key=[seed, n_before])).random(len(weights))
    return np.asarray(whole + (draws < weights - whole), dtype=np.int64)


def _relative(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns weights (n,) in units of the largest that all are multiples of; of their mean where none is found."""
    weights = weights / weights.max() if weights.max() > 2**53 else weights  # no fractions of larger ones are told
    there = weights[weights > 0]
    unit = float(np.gcd.reduce(there.astype(np.int64))) if not (there % 1).any() else there.min()
    if there.max() <= HEAVIEST * unit:
        multiples = np.asarray(np.rint(weights / unit), dtype=np.float64)
        if (np.abs(weights - multiples * unit) <= _ROUNDING * weights).all():
            return multiples
    return np.asarray(weights / there.mean(), dtype=np.float64)


def few_in_order(rows: NDArray[Any], y: Any, *, seed: int) -> NDArray[np.int64] | None:
    """Returns an order in which to learn few rows, (n,), which depends on them and their targets alone; else None."""
    n = len(rows)
    if n > FEW:
        return None
    targets = y.tolist() if isinstance(y, Tensor) else label_values(y)
    in_order = sorted(range(n), key=lambda i: (rows[i].tobytes(), repr(targets[i])))
    return np.array(in_order, dtype=np.int64)[np.random.Generator(np.random.Philox(key=[seed, n])).permutation(n)]


def check_class_weight(class_weight: Any) -> None:
    """Refuses (ValueError, TypeError) what is neither positive weights by label nor the word "balanced"."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        kind = ValueError if isinstance(class_weight, str) else TypeError
        raise kind(f"class_weight is 'balanced', weights by label, or None; got {shown(class_weight)}")
    for label, weight in class_weight.items():
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not is_number or not 0 < weight <= _LARGEST_FLOAT:
            raise ValueError(f"weights of classes are positive numbers; that of {shown(label)} is {shown(weight)}")


def log_class_weights(class_weight: Any, classes: Sequence[Any], counts: Sequence[int]) -> NDArray[np.float64]:
    """Returns the log weight of each class, (n_classes,); 0 for those without one.

    Example:
        >>> np.exp(log_class_weights({"rare": 3}, ["often", "rare"], [30, 10])).round(3).tolist()
        [1.0, 3.0]
        >>> np.exp(log_class_weights("balanced", ["often", "rare"], [30, 10])).round(3).tolist()
        [0.667, 2.0]
    """
    check_class_weight(class_weight)
    if class_weight == "balanced":
        often = np.asarray(counts, dtype=np.float64)
        weights = np.divide(often.sum(), np.count_nonzero(often) * often, out=np.ones(len(often)), where=often > 0)
    else:
        weights = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    return np.asarray(np.log(weights), dtype=np.float64)
