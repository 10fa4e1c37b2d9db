"""Errors that follow each other, against the process that they were drawn from."""

import numpy as np
import pytest

from cndpm.experts.pool.residuals import Residuals

ANSWER = np.array([[[0.0], [1.0]]])


def taught(errors):
    residuals = Residuals(1)
    for error in errors:
        residuals.learn(np.array([[error]]), ANSWER, residuals.tell(ANSWER))
    return residuals


def shifts(residuals, n):
    """Returns the next n errors that are foreseen."""
    return residuals.tell(np.repeat(ANSWER, n, axis=0)).candidates[1, :, 0, 0]


def process(a, b, n=600, noise=0.1, seed=0):
    rng, errors = np.random.default_rng(seed), [0.5, 0.5]
    for _ in range(n):
        errors.append(a * errors[-1] + b * errors[-2] + noise * rng.normal())
    return errors


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.4), (1.6, -0.8), (0.0, 0.9)])
def test_the_next_error_follows_from_the_latest_two(a, b):
    errors = process(a, b)
    foreseen = shifts(taught(errors), 3)
    first = a * errors[-1] + b * errors[-2]
    second = a * first + b * errors[-1]
    assert foreseen == pytest.approx([first, second, a * second + b * first], abs=0.15)


def test_rows_that_wait_come_before_those_that_are_asked_about():
    residuals = taught(process(0.5, 0.4))
    ahead = residuals.tell(np.repeat(ANSWER, 5, axis=0)).answer
    later = residuals.tell(np.repeat(ANSWER, 2, axis=0), n_before=3).answer
    np.testing.assert_allclose(later, ahead[3:])


def test_errors_that_tell_nothing_of_the_next_change_next_to_nothing():
    answer = taught(np.random.default_rng(0).normal(size=400)).tell(ANSWER).answer[0, :, 0]
    assert abs(answer[0]) < 0.1 and answer[1] == pytest.approx(1, rel=0.1)


def test_two_answers_that_differ_are_wider_together():
    residuals = taught([0.8] * 30)
    residuals.evidence = np.zeros(2)  # as likely as each other
    told = residuals.tell(ANSWER)
    means, variances = told.candidates[:, 0, 0, 0], told.candidates[:, 0, 1, 0]
    assert told.answer[0, 0, 0] == pytest.approx(means.mean())
    assert told.answer[0, 1, 0] == pytest.approx(variances.mean() + ((means[1] - means[0]) / 2) ** 2)


def test_one_extreme_error_is_foreseen_as_one_of_five_deviations():
    extreme, large = taught([0.3, 0.3, 1e6]), taught([0.3, 0.3, 5.0])
    np.testing.assert_allclose(shifts(extreme, 2), shifts(large, 2))


def test_a_state_is_restored_to_the_bit():
    residuals, other = taught(process(0.5, 0.4, n=50)), Residuals(1)
    other.load_state_dict(residuals.state_dict())
    assert (other.tell(ANSWER).answer == residuals.tell(ANSWER).answer).all()
