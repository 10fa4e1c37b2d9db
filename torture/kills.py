"""Kills small runs at random moments, again and again until each is complete, and compares the ends to the bit.

    python -m torture.kills --n 1000 --seed 0

A run is carried out in a process of its own, which receives SIGKILL after a random time; another one resumes it. A run
that has come to its end must have the learner, log and summary of one that was never stopped, and no other file. Ends
with 1 if any has not.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from torture.crash_points import FILES
from torture.readers import IN_MEMORY
from torture.small_run import be_quick, outcome, run_once

__all__ = ["attack", "main"]

_N_SEEDS = 5


def attack(root: Path, *, n: int, seed: int) -> tuple[int, int, list[str]]:
    """Kills runs.

    Args:
        root: An empty folder.
        n: Kills; the run that the last one stops is carried to its end.
        seed: Determines when, as far as the machine is as fast.

    Returns:
        The number of kills, of runs that were completed after some, and a line for each that went wrong.
    """
    rng, n_kills, n_runs, bad = Random(seed), 0, 0, []
    expected = {}
    begin = time.perf_counter()
    for number in range(_N_SEEDS):
        run_once(root / f"whole-{number}", seed=number)
        expected[number] = outcome(root / f"whole-{number}")
    duration = 1.5 * (time.perf_counter() - begin) / _N_SEEDS
    while n_kills < n:
        folder, number, n_before = root / "killed", n_runs % _N_SEEDS, n_kills
        shutil.rmtree(folder, ignore_errors=True)
        while (
            status := _run_for(folder, number, rng.uniform(0, duration) if n_kills < n else None)
        ) == -signal.SIGKILL:
            n_kills += 1
        n_runs += 1
        left = {file.name for file in folder.iterdir()}
        if status or outcome(folder) != expected[number] or left != FILES:
            bad.append(f"run {n_runs}, after {n_kills - n_before} kills: exit code {status}, files {sorted(left)}")
    return n_kills, n_runs, bad


def _run_for(folder: Path, seed: int, seconds: float | None) -> int:
    """Runs in a forked process, for so long at most; returns its exit code, that of the signal if it was killed."""
    child = os.fork()
    if not child:
        code = 1
        try:
            run_once(folder, seed=seed)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if seconds is not None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(arguments: list[str] | None = None) -> int:
    """Runs the attack; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m torture.kills", description="Kill runs at random moments.")
    parser.add_argument("--n", type=int, default=1000, help="number of kills")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    be_quick()
    begin = time.perf_counter()
    with TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        n_kills, n_runs, bad = attack(Path(folder), n=options.n, seed=options.seed)
    seconds = time.perf_counter() - begin
    print(f"{n_kills} kills, {n_runs} runs completed, {len(bad)} wrong, seed {options.seed}, {seconds:.0f} s")
    print("\n".join(bad[:100]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
