"""Every change that is compared with what ships is one, and nothing of it stays behind."""

import numpy as np
import pytest
from benchmarks.left_out import _MODULES, CHANGES, changed, measure


def shipped(name):
    module, constant = name.split(".")
    return getattr(_MODULES[module], constant)


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "shipped"])
def test_a_change_is_none_of_what_ships(change):
    before = {name: shipped(name) for name in CHANGES[change]}
    assert any(not np.array_equal(value, before[name]) for name, value in CHANGES[change].items())
    with changed(CHANGES[change]):
        assert all(np.array_equal(value, shipped(name)) for name, value in CHANGES[change].items())
    assert all(shipped(name) is value for name, value in before.items())


def test_a_pool_without_trees_answers_otherwise():
    whole, without = (measure((change, "breast cancer", 0)) for change in ("shipped", "no trees"))
    assert whole["accuracy"] > 90
    assert without["log_loss"] != whole["log_loss"]
