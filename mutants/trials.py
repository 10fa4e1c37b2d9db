"""Trials of mutants: each is applied to a copy of the project, where the tests that should notice it run.

A trial is a fork of this process, which has imported the slow libraries once and nothing of the package: trials last a
second, and the imports would cost several each. Forks need a POSIX system.
"""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mutants.catalogue import Mutant, mutated

__all__ = ["Outcome", "TestsFailError", "check_tests_pass", "import_slow_libraries", "project_copies", "try_mutants"]

_SLOW_LIBRARIES = (
    "torch",
    "torch.func",
    "torch._dynamo",  # optimisers import it
    "scipy.optimize",
    "scipy.stats",
    "scipy.io",
    "numba",
    "sklearn",
    "pydantic",
    "hypothesis.strategies",
    "hypothesis.extra.numpy",
    "pytest",
)
_OPTIONS = (
    "-x",
    "-q",
    "--no-header",
    "--tb=line",
    "--assert=plain",  # rewriting assertions costs two seconds
    "--hypothesis-seed=0",
    "-pno:cacheprovider",
)
_LEFT_OUT = shutil.ignore_patterns(".*", "runs", "demo", "carry", "dist", "build", "*.egg-info")
_OUTPUT = "pytest-output.txt"
_PATIENCE = 20
"""Seconds of the clock for one of the processor: other work on the machine must not stop a trial."""


class TestsFailError(RuntimeError):
    """Raised where tests fail without any mutant, so that they could notice nothing."""


@dataclass(frozen=True)
class Outcome:
    """The end of one trial.

    Attributes:
        mutant: The change that was tried.
        noticed: Whether a test failed or time ran out.
        how: The first failed test, or why there is none.
        seconds: Wall time of the trial.
    """

    mutant: Mutant
    noticed: bool
    how: str
    seconds: float


def import_slow_libraries() -> None:
    """Imports what all trials need, single-threaded, so that forks are safe and begin at once."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    for name in _SLOW_LIBRARIES:
        importlib.import_module(name)
    gc.freeze()  # pytest collects garbage at its end, and would look through all of the above


@contextmanager
def project_copies(root: Path, n: int) -> Iterator[list[Path]]:
    """Yields `n` copies of the project at `root` in a temporary folder, and removes them at the end.

    Compiled files come along: they stay valid for unchanged sources, and no trial writes any.
    """
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Path(folder) / f"copy-{i}" for i in range(n)]
        for copy in copies:
            shutil.copytree(root, copy, ignore=_LEFT_OUT)
        yield copies


def check_tests_pass(tests: Sequence[str], copy: Path, *, limit: int) -> None:
    """Runs test files on the unchanged project.

    Args:
        tests: Test files, relative to the project's root.
        copy: A copy of the project.
        limit: Seconds of processor time after which the run counts as failed.

    Raises:
        TestsFailError: A test failed.
    """
    status = os.waitpid(_fork_tests(tests, copy, limit), 0)[1]
    if status != 0:
        raise TestsFailError(f"tests fail without any mutant: {_first_failure(copy, status)}. Mend them first.")


def try_mutants(mutants: Sequence[Mutant], copies: Sequence[Path], *, limit: int) -> Iterator[Outcome]:
    """Yields the outcome of each mutant as its trial ends, one trial at a time in each copy.

    Args:
        mutants: The changes to try.
        copies: Copies of the project; each is as it was when its trial has ended.
        limit: Seconds of processor time after which a trial is stopped, which counts as noticed.
    """
    waiting, free = list(reversed(mutants)), list(copies)
    running: dict[int, tuple[Mutant, Path, str, float]] = {}
    while waiting or running:
        while waiting and free:
            mutant, copy = waiting.pop(), free.pop()
            original = mutant.path(copy).read_text(encoding="utf-8")
            mutant.path(copy).write_text(mutated(mutant, copy), encoding="utf-8")
            running[_fork_tests(mutant.tests, copy, limit)] = (mutant, copy, original, time.monotonic())
        pid, status = os.wait()
        mutant, copy, original, began = running.pop(pid)
        mutant.path(copy).write_text(original, encoding="utf-8")
        free.append(copy)
        yield Outcome(mutant, _is_noticed(status), _first_failure(copy, status), time.monotonic() - began)


def _fork_tests(tests: Sequence[str], copy: Path, limit: int) -> int:
    """Starts the tests in a fork that ends with pytest's exit status, and returns its process number."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 3  # pytest's own for an internal error
    try:
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.alarm(_PATIENCE * limit)  # one that waits for ever takes no processor time
        status = _run_tests(tests, copy)
    finally:
        os._exit(status)


def _run_tests(tests: Sequence[str], copy: Path) -> int:
    os.chdir(copy)
    output = os.open(_OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.dont_write_bytecode = True
    import pytest

    status = int(pytest.main([*_OPTIONS, f"--rootdir={copy}", *tests]))
    sys.stdout.flush()
    return status


def _is_noticed(status: int) -> bool:
    """Returns whether a test failed or time ran out; a module that cannot be imported at all proves nothing."""
    return _is_out_of_time(status) or os.waitstatus_to_exitcode(status) == 1


def _is_out_of_time(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)


def _first_failure(copy: Path, status: int) -> str:
    if status == 0:
        return "no test failed"
    if _is_out_of_time(status):
        return "out of time"
    lines = (copy / _OUTPUT).read_text(encoding="utf-8", errors="replace").splitlines()
    failures = [line.split(" ")[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return failures[0] if failures else f"pytest ended with status {os.waitstatus_to_exitcode(status)}: {lines[-1:]}"
