"""Kills small runs at random moments, again and again until each is complete, and compares the ends to the bit.

    python -m torture.kills --n 1200 --seed 0 --jobs 2     # 1,200 runs, each killed about once

Options are those of :mod:`torture.attempts`. A run is carried out in a process of its own, which the system ends
without a word after a random time of the processor; another one resumes it. A run that has come to its end must have
the learner, log and summary of one that was never stopped, and no other file. Counted are wrong, kills, and the runs
that came to the same end. Ends with 1 if any was wrong.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from random import Random

from torture.attempts import Attack, Outcome, main
from torture.crash_points import FILES
from torture.small_run import be_quick, outcome, run_once

__all__ = ["ATTACK", "attempts"]

ATTACK = Attack("killed runs", "torture.kills", 1200, ("wrong",), ("kills", "same"))
_N_SEEDS = 5


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:
    """Kills the runs from `first` to `end`.

    Args:
        seed: Determines when, as far as the processor is as fast.
        first: The first run.
        end: The one behind the last.
        folder: Where records go.
    """
    be_quick()
    expected, times = [], []
    for number in range(_N_SEEDS):
        began = time.process_time()
        run_once(folder / f"whole-{number}", seed=number)
        times.append(time.process_time() - began)
        expected.append(outcome(folder / f"whole-{number}"))
    duration = 1.5 * min(times)
    for number in range(first, end):
        killed, rng, n_kills = folder / "killed", Random(f"{seed} {number}"), 0
        shutil.rmtree(killed, ignore_errors=True)
        while (status := _run_for(killed, number % _N_SEEDS, rng.uniform(0, duration))) == -signal.SIGPROF:
            n_kills += 1
        left = {file.name for file in killed.iterdir()}
        is_wrong = status or left != FILES or outcome(killed) != expected[number % _N_SEEDS]
        said = f"after {n_kills} kills: exit code {status}, files {sorted(left)}"
        yield Outcome(number, "kills", times=n_kills)
        yield Outcome(number, "wrong" if is_wrong else "same", said)


def _run_for(folder: Path, seed: int, seconds: float) -> int:
    """Runs in a forked process, for so long of the processor at most; returns its exit code, or that of the signal."""
    child = os.fork()
    if not child:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends a process as SIGKILL does, wherever it is
        signal.setitimer(signal.ITIMER_PROF, max(seconds, 1e-6))
        code = 1
        try:
            run_once(folder, seed=seed)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main(ATTACK))
