"""Classes that come one after the other are all known in the end: what was learned is not drowned by what came last."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cndpm import CNDPMClassifier

SLACK = 0.05


def blobs(n_classes, n_rows, n_columns, *, in_a_line, seed):
    """Draws rows around a centre for every class, at least ten deviations from any other, in order of class."""
    rng = np.random.default_rng(seed)
    if in_a_line:  # every class lies beyond all that came before
        directions = rng.normal(size=(n_classes, n_columns))
        centres = 12 * directions / np.linalg.norm(directions, axis=1, keepdims=True)
        centres += 30 * np.arange(n_classes)[:, None]
    else:
        centres = 10 * rng.uniform(0, 4, size=(n_classes, n_columns))
        centres[:, :2] = 10 * np.stack(np.divmod(rng.permutation(16)[:n_classes], 4), axis=1)
    y = np.repeat(np.arange(n_classes), n_rows)
    return centres[y] + rng.normal(size=(len(y), n_columns)), y


def learned(x, y, batch_size):
    model = CNDPMClassifier(random_state=0)
    for start in range(0, len(x), batch_size):
        model.partial_fit(x[start : start + batch_size], y[start : start + batch_size])
    return model


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    n_classes=st.integers(2, 12),
    n_rows=st.integers(20, 60),
    n_columns=st.integers(2, 8),
    batch_size=st.sampled_from([1000, 50, 10]),
    in_a_line=st.booleans(),
    seed=st.integers(0, 99),
)
@example(n_classes=3, n_rows=20, n_columns=7, batch_size=1000, in_a_line=True, seed=38)
@example(n_classes=5, n_rows=20, n_columns=7, batch_size=1000, in_a_line=True, seed=1)
@example(n_classes=12, n_rows=41, n_columns=6, batch_size=50, in_a_line=False, seed=29)
@example(n_classes=11, n_rows=56, n_columns=7, batch_size=10, in_a_line=False, seed=50)
def test_rows_sorted_by_class_teach_as_much_as_shuffled_ones(n_classes, n_rows, n_columns, batch_size, in_a_line, seed):
    x, y = blobs(n_classes, n_rows, n_columns, in_a_line=in_a_line, seed=seed)
    held = np.arange(len(x)) % 4 == 3
    x, asked, y, truth = x[~held], x[held], y[~held], y[held]
    in_order = learned(x, y, batch_size)
    order = np.random.default_rng(seed).permutation(len(x))
    accuracy = in_order.score(asked, truth)
    assert accuracy >= (in_order.predict(asked, when="any") == truth).mean() - SLACK
    assert accuracy >= learned(x[order], y[order], batch_size).score(asked, truth) - SLACK
