r"""Time: which of several hypotheses holds now, and whether one has been out-predicted.

A *sticky filter* is the forward pass of a hidden Markov chain over H hypotheses (Herbster and Warmuth 1998: fixed
share). Before a sample the state stays with probability 1 - s and else moves to any hypothesis; after it, each
hypothesis is weighed by how well it predicted the label:

.. math::
    w_h \leftarrow \frac{\bigl((1 - s) w_h + s / H\bigr) \, p_h(y_t \mid x_t)}{\sum_{h'} \cdots}

The sum is the filter's own prediction, so filters of several stickinesses are compared by their evidence, and the
stickiness is learned. The filter must see p(y | x, h) only: where x lies is the gate's matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Challenge", "advance_filter", "challenge", "discount", "log_normalise"]

Floats = NDArray[np.float64]


def log_normalise(log_weights: Floats, axis: int = -1) -> Floats:
    """Returns log weights whose exponentials sum to 1 along an axis.

    Args:
        log_weights: Any shape.
        axis: The axis of the sum.

    Example:
        >>> np.exp(log_normalise(np.log([1.0, 3.0])))
        array([0.25, 0.75])
    """
    normalised: Floats = log_weights - np.maximum.reduce(log_weights, axis=axis, keepdims=True)
    normalised -= np.log(np.add.reduce(np.exp(normalised), axis=axis, keepdims=True))
    return normalised


def advance_filter(log_weights: Floats, log_scores: Floats, switch: Floats) -> tuple[Floats, Floats]:
    """Moves A sticky filters over H hypotheses past B samples.

    Args:
        log_weights: Log posterior of the hypotheses, (A, H).
        log_scores: log p(y | x, h) of the samples, (B, H).
        switch: Probability of a change before a sample, of each filter, (A,).

    Returns:
        The log posterior after the last sample (A, H), and the log evidence of the samples under each filter (A,).

    Example:
        >>> even = np.log([[0.5, 0.5]])
        >>> after, evidence = advance_filter(even, np.log([[0.9, 0.1]]), np.array([0.01]))
        >>> np.exp(after).round(2), np.exp(evidence).round(2)
        (array([[0.9, 0.1]]), array([0.5]))
    """
    weights, evidence, share = np.exp(log_weights), np.zeros(len(log_weights)), switch[:, None]
    for log_score in log_scores:
        top = log_score.max()
        weights = ((1 - share) * weights + share / weights.shape[1]) * np.exp(log_score - top)
        total = weights.sum(axis=1, keepdims=True)
        weights /= total
        evidence += np.log(total[:, 0]) + top
    return np.log(np.maximum(weights, 1e-300)), evidence


def discount(evidence: Floats, log_scores: Floats, keep: float) -> Floats:
    """Returns discounted evidence after B samples: L <- keep L + log p for each in turn.

    Args:
        evidence: L, any shape (...).
        log_scores: log p(y | x) of the samples, (B, ...).
        keep: What is left of older evidence after one sample.

    Example:
        >>> discount(np.array([1.0]), np.array([[-1.0], [-2.0]]), keep=0.5)
        array([-2.25])
    """
    n = len(log_scores)
    if n == 1:
        one: Floats = keep * evidence + log_scores[0]
        return one
    fading = keep ** np.arange(n - 1, -1, -1)
    discounted: Floats = keep**n * evidence + np.tensordot(fading, log_scores, axes=1)
    return discounted


class Challenge(NamedTuple):
    """The state of a test whether a challenger has out-predicted who holds the place.

    Attributes:
        nats: Evidence for the challenger since it began to lead.
        since: Samples since then.

    Example:
        >>> Challenge().nats
        0.0
    """

    nats: float = 0.0
    since: int = 0


def challenge(state: Challenge, gains: Floats) -> Challenge:
    """Adds up what a challenger gains on B samples (Page 1954: a cumulative sum that begins anew at zero).

    Args:
        state: Before the samples.
        gains: log p by the challenger minus log p by who holds the place, (B,).

    Example:
        >>> challenge(Challenge(), np.array([-1.0, 2.0, 0.5]))
        Challenge(nats=2.5, since=2)
    """
    nats, since = state
    for gain in gains.tolist():
        nats += gain
        nats, since = (nats, since + 1) if nats > 0 else (0.0, 0)
    return Challenge(nats, since)
