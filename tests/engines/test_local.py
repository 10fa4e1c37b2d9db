"""Workers of this machine, where `tests/experiments/test_workers.py` does not try them already."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.engines.tasks import die_at_first

from cndpm.engines import LocalEngine, make_engine
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError


def test_a_task_whose_process_was_killed_is_begun_again(tmp_path):
    assert LocalEngine(1, retries=1).results(die_at_first, [(tmp_path, 1)]) == [1]


@pytest.mark.slow
def test_no_worker_stays_behind_when_its_parent_is_killed(tmp_path):
    code = (
        "from cndpm.engines import LocalEngine; from tests.engines.tasks import stay\n"
        f"if __name__ == '__main__': LocalEngine(1).results(stay, [{str(tmp_path / 'worker')!r}])"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    until((tmp_path / "worker").exists)
    until((tmp_path / "worker").read_text)
    worker = Path("/proc", (tmp_path / "worker").read_text())
    assert worker.exists()
    parent.kill()
    parent.wait()
    until(lambda: not worker.exists())


def until(condition):
    """Waits for something that other processes do."""
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_engines_have_names():
    with pytest.raises(UnknownNameError, match=r"there is no engine called 'rey'\. Did you mean ray\?"):
        make_engine("rey", 2)
    with pytest.raises(ConfigError, match="belong to --engine ray"):
        make_engine("local", 2, address="auto")
    with pytest.raises(ValueError, match="at least one worker; got 0"):
        make_engine("local", 0)
