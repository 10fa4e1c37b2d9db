"""What the label before tells of the next against powers of the counted transition matrix."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.pool.dynamics import Dynamics

N_LABELS = 3
sequences = st.lists(st.integers(0, N_LABELS - 1), min_size=1, max_size=30)


def learned(labels, n_labels=N_LABELS):
    dynamics = Dynamics()
    dynamics.admit(n_labels)
    if labels:
        dynamics.learn(np.array(labels))
    return dynamics


def counted(labels):
    """Transition probabilities (C, C) and shares (C,) by a loop."""
    pairs, counts = np.full((N_LABELS, N_LABELS), 0.1), np.full(N_LABELS, 0.1)
    for i, label in enumerate(labels):
        faded = 0.9995 ** (len(labels) - 1 - i)
        counts[label] += faded
        if i:
            pairs[labels[i - 1], label] += faded
    return pairs / pairs.sum(axis=1, keepdims=True), counts / counts.sum()


@given(sequences, st.integers(1, 4))
def test_the_h_th_row_is_told_by_the_h_th_power_of_the_transitions(labels, n):
    step, shares = counted(labels)
    expected = [np.log(np.linalg.matrix_power(step, h + 1)[labels[-1]] / shares) for h in range(n)]
    np.testing.assert_allclose(learned(labels).lift(n), expected, atol=1e-9)


@given(sequences, sequences, st.integers(1, 3))
def test_labels_that_came_since_stand_in_for_the_last_one_learned(labels, since, n):
    step, shares = counted(labels)
    expected = [np.log(np.linalg.matrix_power(step, h + 1)[since[-1]] / shares) for h in range(n)]
    np.testing.assert_allclose(learned(labels).lift(n, since), expected, atol=1e-9)


@given(sequences, sequences)
def test_where_each_label_is_known_every_row_is_one_step_behind_it(labels, asked):
    step, shares = counted(labels)
    expected = np.log(step[[labels[-1], *asked[:-1]]] / shares)
    np.testing.assert_allclose(learned(labels).lift(len(asked), asked, is_each_known=True), expected, atol=1e-9)


def test_before_the_first_label_nothing_is_told():
    assert not learned([]).lift(3).any()


@given(sequences, st.lists(st.integers(1, 9), max_size=4))
def test_batches_are_one_sequence(labels, sizes):
    whole, cut, start = learned(labels), learned([]), 0
    for size in [*sizes, len(labels)]:
        if labels[start : start + size]:
            cut.learn(np.array(labels[start : start + size]))
        start += size
    np.testing.assert_array_equal(whole.lift(2), cut.lift(2))


@given(sequences, st.permutations(range(N_LABELS + 1)))
def test_other_numbers_of_labels_tell_the_same_of_them(labels, places):
    relabelled, renumbered = learned(labels), learned([places[label] for label in labels], N_LABELS + 1)
    relabelled.relabel(np.array(places))
    np.testing.assert_allclose(relabelled.lift(3), renumbered.lift(3), atol=1e-12)


@given(sequences)
def test_state_resumes_to_the_bit(labels):
    dynamics, resumed = learned(labels), Dynamics()
    resumed.load_state_dict(dynamics.state_dict())
    for one in (dynamics, resumed):
        one.learn(np.array(labels))
    np.testing.assert_array_equal(dynamics.lift(3), resumed.lift(3))
