"""Workers of this machine, where `tests/experiments/test_workers.py` does not try them already."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.engines.tasks import die_at_first, fail

from cndpm.engines.local import LocalEngine, _interrupts_held, make_engine, one_thread_each, portable
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError


def test_a_task_whose_process_was_killed_is_begun_again(tmp_path):
    assert LocalEngine(1, retries=1).results(die_at_first, [(tmp_path, 1)]) == [1]


def test_no_worker_stays_behind_when_its_parent_is_killed(tmp_path):
    code = (
        "from cndpm.engines.local import LocalEngine; from tests.engines.tasks import stay\n"
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


def test_an_error_goes_to_the_parent_with_its_trace():
    with pytest.raises(ValueError, match="task 3 cannot be done") as caught:
        LocalEngine(1).results(fail, [3])
    assert "in fail" in caught.value.__notes__[0]


def test_an_error_that_cannot_be_sent_is_described():
    class OwnError(Exception):
        pass

    sent = portable(OwnError("of this place"))
    assert type(sent) is RuntimeError and "of this place" in str(sent)


@pytest.mark.parametrize(("environment", "threads"), [({}, 1), ({"OMP_NUM_THREADS": "3"}, 3)])
def test_a_worker_computes_with_one_thread_unless_it_is_told_otherwise(monkeypatch, environment, threads):
    before = torch.get_num_threads()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    torch.set_num_threads(3)
    try:
        one_thread_each()
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_processes_are_started_where_interrupts_are_held_back():
    def held():
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())

    with _interrupts_held():
        assert held()
    assert not held()
