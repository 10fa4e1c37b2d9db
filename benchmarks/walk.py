"""How far a reader walks with ten samples: calls, functions, files, changes of file and of room, depth.

    python -m benchmarks.walk                            # the shipped defaults, on rows and on images
    python -m benchmarks.walk --calls "rows: predict"    # every call of one walk, in order

Every call of a function of the package is counted by the interpreter's profiler; a room is a folder of the package.
The walks are those of a classifier with default settings that knows two classes: a batch in the middle of a block,
`partial_fit`, `predict`, and the batch of a block with which an expert is founded. :data:`LIMITS` says how far each
may be, and the command fails where one is farther.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import cndpm
from cndpm import CNDPMClassifier

__all__ = ["LIMITS", "REACHED", "WALKS", "Walk", "exceeded"]

_ROOT = Path(cndpm.__file__).parent
_KNOWN = 600
"""Samples that a model has learned before a walk."""

Samples = tuple[NDArray[np.float32], NDArray[np.int64]]

LIMITS: dict[str, dict[str, int]] = {
    "rows: a known batch in a block": {"calls": 90, "files": 12, "changes of room": 10},
    "rows: the batch in ten with experts": {"calls": 90, "files": 12, "changes of room": 10},
    "rows: partial_fit": {"calls": 200, "files": 25, "changes of room": 25},
    "rows: predict": {"calls": 120, "files": 20, "changes of room": 16},
    "rows: founding an expert": {"calls": 800, "files": 25, "changes of room": 60},
    "images: a known batch in a block": {"calls": 90, "files": 12, "changes of room": 10},
    "images: partial_fit": {"calls": 250, "files": 25},
}
"""How far a walk should be at most; one that is not named is only shown."""

REACHED: dict[str, dict[str, int]] = {
    "rows: a known batch in a block": {"calls": 88, "files": 12, "changes of room": 3},
    "rows: the batch in ten with experts": {"calls": 266, "files": 32, "changes of room": 32},
    "rows: partial_fit": {"calls": 150, "files": 22, "changes of room": 11},
    "rows: predict": {"calls": 96, "files": 18, "changes of room": 7},
    "rows: founding an expert": {"calls": 2932, "files": 41, "changes of room": 181},
    "images: a known batch in a block": {"calls": 55, "files": 12, "changes of room": 8},
    "images: partial_fit": {"calls": 217, "files": 25, "changes of room": 28},
}
"""How far they are; who makes one shorter lowers it."""


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


def rows(n: int, *, shift: float = 0.0) -> Samples:
    """Draws rows of two classes, (n, 10).

    Args:
        n: How many.
        shift: Added to all columns: those of another place.
    """
    y = np.arange(n) % 2
    x = np.random.default_rng(n).normal(size=(n, 10)) + 3 * y[:, None] + shift
    return x.astype(np.float32), y


def images(n: int, *, shift: float = 0.0) -> Samples:
    """Draws images of two classes, (n, 1, 16, 16), with values from 0 to 1: the upper half is bright, or the lower.

    Args:
        n: How many.
        shift: Other than 0 the left half is bright, or the right.
    """
    y = np.arange(n) % 2
    bright = (np.arange(16) < 8) == (y[:, None] == 0)  # (n, 16)
    halves = bright[:, None, :] if shift else bright[:, :, None]
    x = 0.4 * np.random.default_rng(n).uniform(size=(n, 16, 16)) + 0.6 * halves
    return x[:, None].astype(np.float32), y


Draw = Callable[..., Samples]


def knowing(draw: Draw) -> CNDPMClassifier:
    """Makes a default model that knows two classes and has answered before."""
    x, y = draw(_KNOWN)
    shape = x.shape[1:] if x.ndim > 2 else None
    model = CNDPMClassifier(input_shape=shape, random_state=0).partial_fit(x, y).consolidate()
    model.predict(x[:10])
    return model.partial_fit(x[:10], y[:10])


def within_a_block(draw: Draw, before: int = 30) -> Walk:
    """Walks with a batch of a block.

    Args:
        draw: Draws samples.
        before: Samples of the block before it; with 80, rows go on to the experts, as every tenth batch of them does.
    """
    walk, learner = Walk(), knowing(draw).learner_
    x, y = (torch.from_numpy(part) for part in draw(100))

    def after_batch(n_learned: int) -> None:
        if n_learned == before:
            walk.__enter__()
        elif n_learned == before + 10:
            walk.__exit__()

    learner.learn_block(x, y, 10, after_batch=after_batch)
    return walk


def by_partial_fit(draw: Draw) -> Walk:
    """Walks with ten samples that come alone, after ten others that did."""
    model, (x, y) = knowing(draw), draw(20)
    model.partial_fit(x[:10], y[:10])
    with Walk() as walk:
        model.partial_fit(x[10:], y[10:])
    return walk


def by_predict(draw: Draw) -> Walk:
    """Walks with ten samples that are asked about after ten others were learned, as a stream has it."""
    model, (x, y) = knowing(draw), draw(20)
    model.partial_fit(x[:10], y[:10])
    with Walk() as walk:
        model.predict(x[10:])
    return walk


def founding(draw: Draw) -> Walk:
    """Walks with the batch of a block of samples from another place with which there is an expert more."""
    learner = knowing(draw).learner_
    x, y = (torch.from_numpy(part) for part in draw(1000, shift=12.0))
    walks, n_experts = [Walk()], [learner.n_experts]

    def after_batch(_: int) -> None:
        walks[-1].__exit__()
        n_experts.append(learner.n_experts)
        walks.append(Walk().__enter__())

    try:
        learner.learn_block(x, y, 10, after_batch=after_batch)
    finally:
        sys.setprofile(None)
    founded = [walk for walk, (before, after) in zip(walks, pairwise(n_experts), strict=False) if after > before]
    if not founded:
        raise RuntimeError(f"no expert was founded: there are {n_experts[-1]}")
    return founded[0]


WALKS: dict[str, Callable[[], Walk]] = {
    "rows: a known batch in a block": lambda: within_a_block(rows),
    "rows: the batch in ten with experts": lambda: within_a_block(rows, before=80),
    "rows: partial_fit": lambda: by_partial_fit(rows),
    "rows: predict": lambda: by_predict(rows),
    "rows: founding an expert": lambda: founding(rows),
    "images: a known batch in a block": lambda: within_a_block(images),
    "images: partial_fit": lambda: by_partial_fit(images),
    "images: predict": lambda: by_predict(images),
    "images: founding an expert": lambda: founding(images),
}
"""Every walk that is measured."""


def exceeded(name: str, counts: Mapping[str, int]) -> list[str]:
    """Says which limits of a walk are exceeded, and by what.

    Args:
        name: Of the walk.
        counts: What it amounts to.
    """
    limits = LIMITS.get(name, {})
    return [f"{counts[what]} {what}, {most} allowed" for what, most in limits.items() if counts[what] > most]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", choices=WALKS, metavar="WALK", help=f"show its calls; one of {', '.join(WALKS)}")
    options = parser.parse_args()
    if options.calls:
        print("\n".join(f"{file}: {name}" for file, name in WALKS[options.calls]().calls))
        return 0
    too_far = 0
    for name, walked in WALKS.items():
        counts = walked().counts()
        over = exceeded(name, counts)
        too_far += bool(over)
        print(f"{name:34} " + ", ".join(f"{n} {what}" for what, n in counts.items()), flush=True)
        print("".join(f"{'':34} too far: {words}\n" for words in over), end="")
    return int(too_far > 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
