"""A stream without end: time and memory of a step, window after window, once the last expert is there.

    python -m torture.endless                                          # a million batches
    python -m torture.endless --model default --folder build/default   # with the model that rows get by default
    python -m torture.endless --model river --folder build/river       # river's model: ask and learn, row by row

With a folder everything is left there once a minute and at the end, and a part that is started again, after `--seconds`
or a kill, goes on where the last one was. A step is a batch of five rows, or one row of river's.

Rows have four features and six classes, which come and go: two classes for a while, then two others. A line is printed
for every window of steps: experts and rules, the time of a step (of the process; the median over blocks of 500 rows),
the memory of the process and the size of the model when it is pickled.

A machine that has other work to do is now faster, now slower. So every 30 blocks a young model, kept since shortly
after the last expert was founded, learns the same block, and the old model is measured by it. The median of the last
fifth of all blocks since then is compared with that of the first; ends with 1 if the old model's time by the young
one's, or the memory, has grown by more than 5 %. The size goes up and down with what waits in the memory. What a busy
machine cannot change is counted at the end: the calls of functions by which each of the two learns three more blocks.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pickle
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import torch
from figures.facts import add_options, append, facts
from torch import Tensor

from cndpm import CNDPMClassifier

__all__ = ["Block", "Course", "Subject", "block", "growth", "line", "main"]

_BATCH = 5
_ROWS = 500
"""Of a block, which are drawn at once, of two classes."""

_EVERY = 30
"""Blocks between two comparisons with a young model; divisible by three, so that the same classes are learned."""

_LIMIT = 0.05
_STORED_EVERY = 60.0
"""Seconds after which a part leaves what the next one would go on with."""

_N_WARM = 10
"""Blocks after the start of a process, while memory is still being set aside, that do not count."""

Subject: TypeAlias = Any
"""What learns: an estimator, or a model of river."""


class Block(NamedTuple):
    """What was measured of one block.

    Attributes:
        number: Of the block, from 0.
        parts: Experts and rules of the model after it.
        microseconds: Of the process, for each step.
        mib: Memory of the process.
        is_warm: Whether the process had learned some blocks before.
        kib: Size of the pickled model; None where it was not measured.
        by_young: The time that the model took by that of a young one; None where it was not measured.
    """

    number: int
    parts: int
    microseconds: float
    mib: float
    is_warm: bool
    kib: float | None = None
    by_young: float | None = None


def block(number: int) -> tuple[Tensor, Tensor]:
    """Draws the rows (n, 4) and classes (n,) of a block; the three pairs of classes take turns."""
    generator = torch.Generator().manual_seed(number)
    pair = number % 3
    y = 2 * pair + torch.randint(2, (_ROWS,), generator=generator)
    centres = 4 * torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    return centres[y] + torch.randn(_ROWS, 4, generator=generator), y


def resident_mib() -> float:
    """Returns the memory that this process has now, in MiB; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def made(name: str) -> Subject:
    """Returns a new model: "one" representation, the "default", or that of "river"."""
    if name == "river":
        from cndpm.river import CNDPMClassifier as RiverClassifier  # needs the extra

        return RiverClassifier()
    settings: dict[str, Any] = {"features": "identity", "representations": "one"} if name == "one" else {}
    return CNDPMClassifier(memory_size=100, batch_size=_BATCH, settings=settings, device="cpu", random_state=0)


def rows_of_step(model: Subject) -> int:
    """Returns how many rows a model is given at once."""
    return _BATCH if isinstance(model, CNDPMClassifier) else 1


def learn(model: Subject, number: int) -> float:
    """Learns one block; returns the time of a step in microseconds of the process."""
    x, y = block(number)
    began = time.process_time()
    if isinstance(model, CNDPMClassifier):
        model.partial_fit(x.numpy(), y.numpy())
    else:
        for values, label in zip(x.tolist(), y.tolist(), strict=True):
            row = dict(zip("abcd", values, strict=True))
            model.predict_one(row)
            model.learn_one(row, label)
    return 1e6 * (time.process_time() - began) * rows_of_step(model) / _ROWS


@dataclass
class Course:
    """An old model and the young one that it is compared with.

    Attributes:
        model: Learns everything.
        young: The model some blocks after the last change of its parts, pickled; None before.
        young_at: The last block that it learned.
        blocks: What was measured so far.
    """

    model: Subject
    young: bytes | None = None
    young_at: int = 0
    blocks: list[Block] = field(default_factory=list)

    def advance(self, *, is_warm: bool) -> None:
        """Learns the next block.

        Args:
            is_warm: Whether the process has learned some blocks before.
        """
        number = len(self.blocks)
        cost, parts = learn(self.model, number), _n_parts(self.model)
        is_due = is_warm and number > self.young_at and (number - self.young_at) % _EVERY == 0
        ratio = cost / self._cost_of_young(number) if is_due and self.young is not None else None
        kib = len(pickle.dumps(self.model)) / 1024 if is_due else None
        self.blocks.append(Block(number, parts, cost, resident_mib(), is_warm, kib, ratio))
        if any(each.parts != parts for each in self.blocks[-2:]):
            self.young = None
        elif self.young is None and len({each.parts for each in self.blocks[-_EVERY:]}) == 1 and number >= _EVERY:
            self.young, self.young_at = pickle.dumps(self.model), number

    def _cost_of_young(self, number: int) -> float:
        """Returns the time that the young model takes for a batch of a block, after the two blocks before it."""
        assert self.young is not None
        young = pickle.loads(self.young)
        costs = [learn(young, each) for each in range(number - 2, number + 1)]
        del young
        gc.collect()  # its parts know each other, and would be counted as memory of the old one until some later time
        return costs[-1]

    def calls_by_young(self) -> float | None:
        """Returns how many calls of functions the next three blocks take, by those of the young one; None if none."""
        if self.young is None:
            return None
        first, *numbers = range(len(self.blocks), len(self.blocks) + 4)
        counts = []
        for pickled in (pickle.dumps(self.model), self.young):
            model, profile = pickle.loads(pickled), cProfile.Profile()
            learn(model, first)  # what a process does once is no part of it
            with profile:
                for number in numbers:
                    learn(model, number)
            counts.append(sum(entry.callcount for entry in profile.getstats()))
        return counts[0] / counts[1]

    @property
    def n_steps(self) -> int:
        """Batches, or rows of river's, learned so far."""
        return len(self.blocks) * _ROWS // rows_of_step(self.model)

    @classmethod
    def stored(cls, folder: Path, model: Subject) -> Course:
        """Returns what :meth:`store` has left in a folder; a course that begins with `model` if there is nothing."""
        path = folder / "course.pickle"
        if not path.exists():
            return cls(model)
        learner, young, young_at, blocks = pickle.loads(path.read_bytes())
        return cls(learner, young, young_at, [Block(*each) for each in blocks])

    def store(self, folder: Path) -> None:
        """Leaves everything in a folder for the next part; a kill leaves what was there before."""
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / "course.pickle.new"
        new.write_bytes(pickle.dumps((self.model, self.young, self.young_at, list(map(tuple, self.blocks)))))
        new.replace(folder / "course.pickle")


def _n_parts(model: Subject) -> int:
    """Returns the number of experts and rules of a model."""
    estimator = model if isinstance(model, CNDPMClassifier) else model.estimator
    if "_learner" not in vars(estimator):
        return 0
    told = estimator.learner_.describe()
    return len(told["expert_counts"]) + int(told.get("n_rules", 0))


def growth(blocks: Sequence[Block]) -> dict[str, float]:
    """Returns by which part each measure has grown from the first fifth to the last, after the last expert.

    Args:
        blocks: All blocks of a stream, in order.
    """
    last_change = max((n for n, each in enumerate(blocks) if each.parts != blocks[-1].parts), default=-1)
    settled = [each for each in blocks[last_change + 1 :] if each.is_warm]
    found = {}
    for name in ("microseconds", "by_young", "mib", "kib"):
        values = [value for each in settled if (value := getattr(each, name)) is not None]
        fifth = max(1, len(values) // 5)
        if len(values) > 1:
            found[name] = median(values[-fifth:]) / median(values[:fifth]) - 1
    return found


def _show(window: Sequence[Block], n_steps: int) -> None:
    last, sizes = window[-1], [each.kib for each in window if each.kib is not None]
    cost, memory = median(each.microseconds for each in window), median(each.mib for each in window)
    size = f", the model {median(sizes):,.0f} KiB" if sizes else ""
    done = f"{n_steps:9,} steps: {last.parts} experts and rules"
    print(f"{done}, {cost:7.1f} us a step, {memory:6.1f} MiB{size}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Learns the stream, or a part of it, and prints a line a window; returns the exit code."""
    options = _options(arguments)
    torch.set_num_threads(1)
    model = made(options.model)
    course = Course(model) if options.folder is None else Course.stored(options.folder, model)
    _advance(course, options)
    if options.folder is not None:
        course.store(options.folder)
    if options.out is not None:
        append(options.out, [facts(commit=options.commit) | line(options.model, course)])
    return _judge(options.model, course)


def _advance(course: Course, options: argparse.Namespace) -> None:
    """Goes on with a course until it has all steps or the time is over."""
    began, n_before = time.monotonic(), len(course.blocks)
    per_window, stored_at = max(1, options.window * rows_of_step(course.model) // _ROWS), began
    while course.n_steps < options.n:
        if options.seconds is not None and time.monotonic() - began > options.seconds:
            break
        course.advance(is_warm=len(course.blocks) >= n_before + _N_WARM)
        if len(course.blocks) % per_window == 0:
            _show(course.blocks[-per_window:], course.n_steps)
        if options.folder is not None and time.monotonic() - stored_at > _STORED_EVERY:
            course.store(options.folder)
            stored_at = time.monotonic()


def line(name: str, course: Course) -> dict[str, Any]:
    """Returns what was measured of a stream as a line of a record.

    Args:
        name: Of the model.
        course: All of it.
    """
    blocks = course.blocks
    grown = {f"{what}_grown_percent": 100 * part for what, part in growth(blocks).items()}
    warm = [each for each in blocks if each.is_warm]
    ends = {"mib_first": warm[0].mib, "mib_last": warm[-1].mib} if warm else {}
    cost = {"microseconds": median(each.microseconds for each in blocks), "parts": blocks[-1].parts}
    ends |= {} if (calls := course.calls_by_young()) is None else {"calls_by_young": calls}
    return {"attack": "endless", "model": name, "seed": 0, "batches": course.n_steps} | grown | ends | cost


def _judge(name: str, course: Course) -> int:
    found = growth(course.blocks)
    told = ", ".join(f"{what} {100 * part:+.1f} %" for what, part in found.items())
    print(f"{name}: {course.n_steps:,} steps; the last fifth against the first after the last expert: {told}")
    return 1 if any(found.get(what, 0.0) > _LIMIT for what in ("by_young", "mib")) else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m torture.endless", description="Learn a stream without end.")
    parser.add_argument("--n", type=int, default=1_000_000, help="number of steps")
    parser.add_argument("--model", choices=("one", "default", "river"), default="one", help="which one learns")
    parser.add_argument("--window", type=int, default=50_000, help="steps of a line")
    parser.add_argument("--seconds", type=float, help="ends the part after so long")
    parser.add_argument("--folder", type=Path, help="where a part leaves what the next one goes on with")
    add_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
