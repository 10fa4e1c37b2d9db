"""Weights of members by kept rows, each left out of what learned it: for labels that come in runs, and for any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cndpm.experts.pool.clusters import Clusters
from cndpm.experts.pool.kept_rows import KeptRows, neighbours
from cndpm.experts.pool.mix import tempered
from cndpm.experts.pool.moments import Moments
from cndpm.experts.pool.representations import Floats, Representations
from cndpm.experts.pool.trees import Trees

_N_JUDGED, _AMONG = 200, 1000
"""Rows that are judged, drawn from so many of the latest of every label."""

_FEWEST, _FEWEST_OF_LABEL = 5, 3
"""Rows that a label must have to be judged, and rows of it that are."""

_N_STEPS = 100
"""Steps by which the members' weights approach the likeliest ones."""


def weights_by(
    rows: KeptRows,
    maps: Representations,
    moments: Sequence[Moments],
    clusters: Clusters,
    trees: Trees,
    rule: int,
    balanced: Callable[[Floats], Floats],
    rng: np.random.Generator,
) -> Floats | None:
    """Returns the weights at which members, mixed, make kept rows likeliest, (T M,); None with fewer than two labels.

    Labels count alike. Beside the recent models one rule is judged. `balanced` turns log p(x | y) into
    log-probabilities of labels that are equally frequent.
    """
    labels = np.flatnonzero(np.bincount(rows.y, minlength=1) >= _FEWEST)
    if len(labels) < 2:
        return None
    latest = rows.latest(_AMONG)
    latest = latest[np.argsort(rng.random(len(latest)))]
    n_each = max(_FEWEST_OF_LABEL, _N_JUDGED // len(labels))
    at = np.concatenate([latest[rows.y[latest] == label][:n_each] for label in labels])
    y, features = rows.y[at], maps(rows.x[at])
    z, nth = features[0], rows.nth[at]
    later = rows.counts[y] - 1 - nth
    models = [one.leave_one_out(f, y, later, rule) for one, f in zip(moments, features, strict=True)]
    by_rows = (
        clusters.answer(z, y, nth),
        trees.answer(z, rows.serial[at]),
        neighbours(rows, rows.place(z), without_itself=True),
    )
    told = np.concatenate([*models, *by_rows])
    given = tempered(balanced(told))[:, np.arange(len(y)), y]
    return _likeliest(given, 1 / np.bincount(y)[y])


def _likeliest(given: Floats, shares: Floats) -> Floats:
    """Returns the weights (M,) at which a mixture makes samples likeliest that count by their shares, (B,).

    Members gave these probabilities, (M, B). Every step of expectation and maximisation makes them likelier.
    """
    weights: Floats = np.full(len(given), 1 / len(given))
    for _ in range(_N_STEPS):
        weights *= given @ (shares / (weights @ given))
        weights /= weights.sum()
    return np.maximum(weights, np.finfo(np.float64).tiny, out=weights)  # should all others be silent
