"""Which rule of values holds, and what is kept while that is in doubt."""

import numpy as np

from cndpm.experts.pool.value_rules import Rules


def test_a_rule_that_takes_over_ends_the_doubt_about_the_one_before():
    rules, x = Rules(1, 1), np.zeros((5, 1))
    rules.found()
    assert not rules.hear(np.zeros((2, 5)), np.ones(5), x, x) and rules.lead > 4
    assert rules.hear(np.array([[0.0] * 5, [-5.0] * 5]), np.ones(5), x, x)
    assert (rules.current, rules.lead) == (0, 0.0)


def test_the_latest_five_hundred_rows_in_doubt_are_kept_with_their_targets():
    rules = Rules(1, 1)
    for start in range(0, 700, 10):
        row = np.arange(start, start + 10.0)[:, None]
        rules.hear(np.zeros((1, 10)), np.ones(10), row, -row)
    np.testing.assert_array_equal(rules.x, np.arange(200.0, 700.0)[:, None])
    np.testing.assert_array_equal(rules.y, -rules.x)
