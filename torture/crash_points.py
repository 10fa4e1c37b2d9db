"""Cuts the power at every operation on files of a small run, resumes it, and compares the end to the bit.

    python -m torture.crash_points --seed 0

After each operation, five fates of what was not synced are tried (`torture.disk.FATES`). What is left is written to an
empty folder, and the run is resumed there: it must end with the same learner, log and summary, and leave no other file.
States that are equal are tried once. The same is done with saving a model over another: one of the two must be there,
whole. Ends with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from cndpm import CNDPMClassifier
from torture.disk import FATES, Operation, recording, survivors
from torture.readers import IN_MEMORY
from torture.small_run import be_quick, outcome, run_once

__all__ = ["attack_run", "attack_save", "main"]

FILES = {"checkpoint.cndpm", "config.json", "lock", "log.jsonl", "portrait.npz", "summary.json"}


def attack_run(root: Path, *, seed: int, every: int = 1) -> tuple[int, int, list[str]]:
    """Crashes a run everywhere.

    Args:
        root: An empty folder.
        seed: Of the run, and of what survives by chance.
        every: Tries each crash point whose number is divisible by this.

    Returns:
        The number of crash points, of different states that were resumed, and a line for each that went wrong.
    """
    whole = root / "whole"
    with recording() as recorded:
        run_once(whole, seed=seed)
    expected = outcome(whole)

    def resume(folder: Path) -> str:
        run_once(folder, seed=seed)
        left = {file.name for file in folder.iterdir()}
        return "" if outcome(folder) == expected and left == FILES else f"another end, or other files: {sorted(left)}"

    return _crash(recorded.operations, whole, root / "crashed", resume, seed, every)


def attack_save(root: Path, *, seed: int) -> tuple[int, int, list[str]]:
    """Crashes everywhere while a model is saved over another one.

    Args:
        root: An empty folder.
        seed: Of what survives by chance.
    """
    x = np.random.default_rng(seed).normal(size=(60, 2))
    model = CNDPMClassifier(memory_size=20, random_state=0).fit(x, x[:, 0] > 0)
    folder = root / "models"
    folder.mkdir()
    with recording() as recorded:
        model.save(folder / "a.cndpm")
        n = len(recorded.operations)
        states = [(folder / "a.cndpm").read_bytes()]
        model.partial_fit(x + 9, x[:, 0] > 0).save(folder / "a.cndpm")
        states.append((folder / "a.cndpm").read_bytes())

    def load(crashed: Path) -> str:
        CNDPMClassifier.load(crashed / "a.cndpm")
        return "" if (crashed / "a.cndpm").read_bytes() in states else "neither the old nor the new model"

    return _crash(recorded.operations, folder, root / "crashed", load, seed, first=n)


def _crash(
    operations: list[Operation],
    source: Path,
    target: Path,
    check: Callable[[Path], str],
    seed: int,
    every: int = 1,
    *,
    first: int = 0,
) -> tuple[int, int, list[str]]:
    rng, tried, bad = Random(seed), set(), []
    points = range(first, len(operations) + 1, every)
    for n in points:
        for fate in FATES:
            files = survivors(operations[:n], fate, rng)
            state = hashlib.sha256(repr(sorted(files.items())).encode()).digest()
            if state in tried:
                continue
            tried.add(state)
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir()
            for path, content in files.items():
                (target / path.relative_to(source)).write_bytes(content)
            try:
                problem = check(target)
            except Exception as error:
                problem = f"{type(error).__name__}: {error}"
            if problem:
                bad.append(f"operation {n} ({operations[n - 1][0] if n else 'none'}), {fate}: {problem[:300]}")
    return len(points), len(tried), bad


def main(arguments: list[str] | None = None) -> int:
    """Runs both attacks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m torture.crash_points", description="Cut the power everywhere.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="try each crash point divisible by this")
    options = parser.parse_args(arguments)
    be_quick()
    failed = []
    for name, attack in (("run", attack_run), ("save", attack_save)):
        begin = time.perf_counter()
        with TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
            every = {"every": options.every} if name == "run" else {}
            n_points, n_states, bad = attack(Path(folder), seed=options.seed, **every)
        seconds = time.perf_counter() - begin
        print(f"{name}: {n_points} crash points, {n_states} states, {len(bad)} wrong, {seconds:.0f} s", flush=True)
        failed += bad
    print(f"seed {options.seed}")
    print("\n".join(failed[:100]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
