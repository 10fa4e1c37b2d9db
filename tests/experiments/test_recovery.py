"""Recovery is what a search through all losses would find, and forgets what it need not know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.experiments.meter import Recovery


def searched(losses, changes, window, shares):
    """The definition, in a loop over all windows of the whole stream."""
    found = []
    for change, end in zip(changes, [*changes[1:], len(losses)], strict=True):
        begin = max([0, *(c for c in changes if c < change)])
        former = losses[max(begin, change - window) : change].mean()
        later = [losses[n : n + window].mean() for n in range(change, end - window + 1)]
        good = [1 - loss >= 0.95 * (1 - former) if shares else loss * 0.95 <= former for loss in later]
        found.append(good.index(True) if any(good) else None)
    return found


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 999),
    window=st.integers(1, 12),
    gap=st.integers(3, 40),
    n=st.integers(1, 3),
    shares=st.booleans(),
)
def test_recovery_is_what_a_search_finds(seed, window, gap, n, shares):
    rng = np.random.default_rng(seed)
    changes = [gap * (i + 1) for i in range(n)]
    x = rng.random(gap * (n + 1))
    losses = (x > 0.6).astype(float) if shares else x
    recovery = Recovery(changes, window=window, shares=shares)
    for start in range(0, len(losses), 7):
        recovery.add(losses[start : start + 7].tolist())
    assert [row["samples"] for row in recovery.results()] == searched(losses, changes, window, shares)


def test_a_change_that_costs_nothing_is_over_at_once_and_one_that_never_is_has_no_number():
    for after, expected in ((0.0, 0), (1.0, None)):
        recovery = Recovery([20], window=10, shares=True)
        recovery.add([0.0] * 20 + [after] * 30)
        assert recovery.results() == [{"change": 20, "before": 100.0, "samples": expected}]


def test_samples_that_were_not_answered_count_and_are_no_loss():
    recovery = Recovery([10], window=5, shares=True)
    recovery.skip(10)
    recovery.add([0.0] * 10)
    assert recovery.results() == [{"change": 10, "before": None, "samples": None}]


def test_it_goes_on_to_the_same_results_and_keeps_one_window():
    losses = (np.random.default_rng(0).random(300) > 0.7).astype(float)
    whole, part = (Recovery([100, 200], window=20, shares=True) for _ in range(2))
    whole.add(losses.tolist())
    for start in range(0, 300, 30):
        part.add(losses[start : start + 30].tolist())
        state, part = part.state_dict(), Recovery([100, 200], window=20, shares=True)
        assert len(state["_latest"]) <= 20
        part.load_state_dict(state)
    assert part.results() == whole.results() and part.results()[0]["before"] == pytest.approx(
        100 * (1 - losses[80:100].mean())
    )
