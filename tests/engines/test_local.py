"""Workers of this machine, where `tests/experiments/test_workers.py` does not try them already."""

import pytest
from tests.engines.tasks import die_at_first

from cndpm.engines import LocalEngine, make_engine
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError


def test_a_task_whose_process_was_killed_is_begun_again(tmp_path):
    assert LocalEngine(1, retries=1).results(die_at_first, [(tmp_path, 1)]) == [1]


def test_engines_have_names():
    with pytest.raises(UnknownNameError, match=r"there is no engine called 'rey'\. Did you mean ray\?"):
        make_engine("rey", 2)
    with pytest.raises(ConfigError, match="belong to --engine ray"):
        make_engine("local", 2, address="auto")
    with pytest.raises(ValueError, match="at least one worker; got 0"):
        make_engine("local", 0)
