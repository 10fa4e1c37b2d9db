"""A run that pauses itself: ``python tests/pausing.py 31 cndpm run split-digits`` stops behind line 31 of its log.

Whoever waits for a moment of another process from outside may come too late.
"""

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

__all__ = ["kill", "paused"]


def paused(n_lines: int, program: str, *arguments: object, folder: Path) -> subprocess.Popen[str]:
    """Starts a module, or a file of Python, in a process and waits until its log has so many lines."""
    command = [sys.executable, __file__, n_lines, program, *arguments]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(list(map(str, command)), cwd=folder, env=environment, **pipes)
    how = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert how is not None and how.si_code == os.CLD_STOPPED, process.communicate()[1]
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


if __name__ == "__main__":
    from cndpm.experiments.record_files import LogFile, Row

    append, n_lines = LogFile.append, int(sys.argv[1])

    def pausing(log: LogFile, event: str, step: int, values: Row) -> Row:
        row = append(log, event, step, values)
        if log._n_lines == n_lines:
            os.kill(os.getpid(), signal.SIGSTOP)
        return row

    LogFile.append = pausing  # type: ignore[assignment]
    del sys.argv[:2]
    if sys.argv[0].endswith(".py"):
        runpy.run_path(sys.argv[0], run_name="__main__")
    else:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
