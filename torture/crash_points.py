"""Cuts the power at every operation on files of a small run, resumes it, and compares the end to the bit.

    python -m torture.crash_points --seed 0 --jobs 2

Options are those of :mod:`torture.attempts`. After each operation, five fates of what was not synced are tried
(`torture.disk.FATES`). What is left is written to an empty folder, and the run is resumed there: it must end with the
same learner, log and summary, and leave no other file. The same is done with saving a model over another: one of the
two must be there, whole; and with the folder of a server, which must come back with every record that was acknowledged,
to the bit. Counted are states that are wrong, right, or equal to one that the process has tried. Ends
with 1 if any was wrong.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from cndpm import CNDPMClassifier
from cndpm.checks.case import same
from cndpm.serving.store import Store, learn_rows
from torture.attempts import Attack, Outcome, scratch
from torture.attempts import main as carry_out
from torture.disk import FATES, Operation, recording, survivors
from torture.small_run import be_quick, outcome, run_once

__all__ = ["FILES", "Victim", "attempts", "crash", "main"]

FILES = {"checkpoint.cndpm", "config.json", "lock", "log.jsonl", "portrait.npz", "summary.json"}
_SMALL = {"features": "identity", "representations": "one"}


@dataclass(frozen=True)
class Victim:
    """Something that was done to files.

    Attributes:
        operations: Everything that was asked of the file system, in order.
        first: Operations before the first crash point.
        folder: Where it was done.
        check: Goes on from what is left in a folder after so many operations; returns what is wrong, an empty text if
            nothing is.
    """

    operations: list[Operation]
    first: int
    folder: Path
    check: Callable[[Path, int], str]

    @property
    def n_points(self) -> int:
        """Crash points: after each operation, and before the first one."""
        return len(self.operations) - self.first + 1


def recorded_run(root: Path, seed: int) -> Victim:
    """Carries out a run and records it.

    Args:
        root: An empty folder.
        seed: Of the run.
    """
    whole = root / "whole"
    with recording() as recorded:
        run_once(whole, seed=seed)
    expected = outcome(whole)

    def resume(folder: Path, _: int) -> str:
        run_once(folder, seed=seed)
        left = {file.name for file in folder.iterdir()}
        return "" if outcome(folder) == expected and left == FILES else f"another end, or other files: {sorted(left)}"

    return Victim(recorded.operations, 0, whole, resume)


def recorded_save(root: Path, seed: int) -> Victim:
    """Saves a model over another one and records it.

    Args:
        root: An empty folder.
        seed: Of the rows.
    """
    x = np.random.default_rng(seed).normal(size=(60, 2))
    model = CNDPMClassifier(memory_size=20, settings=_SMALL, random_state=0).fit(x, x[:, 0] > 0)
    folder = root / "models"
    folder.mkdir()
    with recording() as recorded:
        model.save(folder / "a.cndpm")
        n = len(recorded.operations)
        states = [(folder / "a.cndpm").read_bytes()]
        model.partial_fit(x + 9, x[:, 0] > 0).save(folder / "a.cndpm")
        states.append((folder / "a.cndpm").read_bytes())

    def load(crashed: Path, _: int) -> str:
        CNDPMClassifier.load(crashed / "a.cndpm")
        return "" if (crashed / "a.cndpm").read_bytes() in states else "neither the old nor the new model"

    return Victim(recorded.operations, n, folder, load)


def recorded_server(root: Path, seed: int) -> Victim:
    """Teaches the model of a server, with checkpoints and a restart, and records it.

    Args:
        root: An empty folder.
        seed: Of the rows.
    """
    x = np.random.default_rng(seed).normal(size=(90, 2)).astype(np.float32)
    y = (x[:, 0] > 0).tolist()
    model, folder = root / "model", root / "served"
    CNDPMClassifier(memory_size=20, n_exemplars=0, settings=_SMALL, random_state=0).fit(x, y).save(model)
    states, acknowledged = [CNDPMClassifier.load(model).learner_.state_dict()], []
    with recording() as recorded:
        for checkpoints in ((1, 2, 4, 5), (7,)):
            store = Store(model, folder)
            for k in range(store.n_records, max(checkpoints) + 2):
                learn_rows(store.model, x[k : k + 5], y[k : k + 5])
                store.append(x[k : k + 5], y[k : k + 5], [(f"request {k}", 5)])
                acknowledged.append(len(recorded.operations))
                states.append(store.model.learner_.state_dict())
                if k in checkpoints:
                    store.checkpoint()
            store.close()

    def start(crashed: Path, n_operations: int) -> str:
        n_least = sum(at <= n_operations for at in acknowledged)
        for _ in range(2):  # what the first start does must not harm the second
            store = Store(model, crashed)
            store.close()
            if store.n_records < n_least or set(store.known) != {f"request {k}" for k in range(store.n_records)}:
                return f"{store.n_records} records came back, {n_least} were acknowledged; ids {sorted(store.known)}"
            if not same(store.model.learner_.state_dict(), states[store.n_records]):
                return f"another model came back, after {store.n_records} records"
        return ""

    return Victim(recorded.operations, 0, folder, start)


_RECORDED = {"run": recorded_run, "save": recorded_save, "server": recorded_server}


def crash(victim: Victim, seed: int, points: Iterable[int], target: Path) -> Iterator[Outcome]:
    """Cuts the power at some crash points, once for every state that is left.

    Args:
        victim: What was done.
        seed: Of what survives by chance.
        points: Numbers of crash points, from 0.
        target: A folder that is emptied each time.
    """
    tried = set()
    for number in points:
        operations, rng = victim.operations[: victim.first + number], Random(f"{seed} {number}")
        for fate in FATES:
            files = survivors(operations, fate, rng)
            state = hashlib.sha256(repr(sorted(files.items())).encode()).digest()
            if state in tried:
                yield Outcome(number, "equal")
                continue
            tried.add(state)
            problem = _problem(victim, files, len(operations), target)
            said = f"{operations[-1][0] if operations else 'none'}, {fate}: {problem[:300]}"
            yield Outcome(number, "wrong" if problem else "right", said)


def _problem(victim: Victim, files: dict[Path, bytes], n_operations: int, target: Path) -> str:
    """Returns what is wrong after going on from some files, an empty text if nothing is."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for path, content in files.items():
        (target / path.relative_to(victim.folder)).write_bytes(content)
    try:
        return victim.check(target, n_operations)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def attempts(seed: int, first: int, end: int, folder: Path, what: str) -> Iterator[Outcome]:
    """Yields the outcomes of the crash points from `first` to `end`.

    Args:
        seed: Of the victim, and of what survives by chance.
        first: The first crash point.
        end: The one behind the last.
        folder: An empty folder.
        what: "run", "save" or "server".
    """
    be_quick()
    yield from crash(_RECORDED[what](folder, seed), seed, range(first, end), folder / "crashed")


def _n_points(what: str) -> int:
    be_quick()
    with scratch() as folder:
        return _RECORDED[what](Path(folder), 0).n_points


def main(arguments: Sequence[str] | None = None) -> int:
    """Carries out all attacks; returns the exit code."""
    codes, titles = [], {"run": "a run", "save": "saving", "server": "a server"}
    for what, title in titles.items():
        n_points = partial(_n_points, what)
        attack = Attack(
            f"crash points of {title}",
            "torture.crash_points",
            n_points,
            ("wrong",),
            ("right", "equal"),
            arguments=(what,),
        )
        codes.append(carry_out(attack, arguments))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
