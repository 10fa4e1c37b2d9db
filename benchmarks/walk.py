"""How far a reader walks with one known batch: calls, functions, files, changes of file and of room, depth.

    python -m benchmarks.walk

A batch of ten rows that an expert knows is learned by the mixture (the shipped default without the models of the
present that stand beside it for rows), in the middle of a block; every call of a
function of the package is counted by the interpreter's profiler. A room is a folder of the package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import cndpm
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings

_ROOT = Path(cndpm.__file__).parent
_LIMITS = {"calls": 80, "files": 9, "changes of room": 8}


class Walk:
    """Notes the calls of the package's functions while it is entered."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.deepest = self._depth = 0

    def __enter__(self) -> Walk:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event not in ("call", "return") or not path.is_relative_to(_ROOT):
            return
        self._depth += 1 if event == "call" else -1
        self.deepest = max(self.deepest, self._depth)
        if event == "call":
            self.calls.append((str(path.relative_to(_ROOT)), frame.f_code.co_qualname))

    def counts(self) -> dict[str, int]:
        """Returns what the walk amounts to."""
        files = [file for file, _ in self.calls]
        rooms = [file.split("/")[0] for file in files]
        return {
            "calls": len(self.calls),
            "functions": len(set(self.calls)),
            "files": len(set(files)),
            "changes of file": _changes(files),
            "changes of room": _changes(rooms),
            "depth": self.deepest,
        }


def _changes(names: list[str]) -> int:
    return sum(a != b for a, b in pairwise(names))


def known_batch(learn: Callable[[CNDPM, torch.Tensor, torch.Tensor], Walk]) -> Walk:
    """Makes a default model that knows two classes of rows, and has it learn one batch more."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(2000) % 2
    x = torch.randn(2000, 30, generator=generator) + 3 * y[:, None]
    learner = CNDPM(CNDPMSettings(representations="one"), input_shape=(30,))
    learner.learn_block(x[:1500], y[:1500], 10)
    return learn(learner, x[1500:], y[1500:])


def within_a_block(learner: CNDPM, x: torch.Tensor, y: torch.Tensor) -> Walk:
    """Walks with the fourth batch of a block."""
    walk = Walk()

    def after_batch(n_learned: int) -> None:
        if n_learned == 30:
            walk.__enter__()
        elif n_learned == 40:
            walk.__exit__()

    learner.learn_block(x, y, 10, after_batch=after_batch)
    return walk


def on_its_own(learner: CNDPM, x: torch.Tensor, y: torch.Tensor) -> Walk:
    """Walks with a batch that comes alone: its features are computed, and a window is opened for it."""
    learner.learn(x[:10], y[:10])
    with Walk() as walk:
        learner.learn(x[10:20], y[10:20])
    return walk


if __name__ == "__main__":
    within, alone = known_batch(within_a_block), known_batch(on_its_own)
    if "--calls" in sys.argv:
        print("\n".join(f"{file}: {name}" for file, name in within.calls))
    for title, walk in (("within a block", within), ("on its own", alone)):
        print(f"a known batch of ten {title}: " + ", ".join(f"{n} {name}" for name, n in walk.counts().items()))
    exceeded = [name for name, most in _LIMITS.items() if within.counts()[name] > most]
    print("limits within a block: " + ", ".join(f"{most} {name}" for name, most in _LIMITS.items()))
    raise SystemExit(f"exceeded: {', '.join(exceeded)}" if exceeded else 0)
