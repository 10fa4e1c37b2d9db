"""One file of results and costs, and the comparison of two such files: of a change with the state before it.

python -m benchmarks.compare write FILE           # measures, about half a minute on an idle core
python -m benchmarks.compare show BEFORE AFTER    # prints what differs; ends with 1 if something got worse
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import cndpm
from cndpm.model.cndpm import CNDPM
from cndpm.streams import load_scenario

__all__ = ["compare", "measure"]

Values = dict[str, float]

TIMES = ("rows_learn", "rows_live", "import_seconds")
"""Values that are ratios of times; smaller is better. All others are results, which do not change by chance."""

WORSE = 4 / 3
"""A ratio of times that is larger by this factor is reported: less is what a busy machine does by itself."""

N_TURNS = 5


def measure() -> Values:
    """Returns all values of this version."""
    torch.set_num_threads(1)
    return {**_digits(), **_rows(), "import_seconds": _import_ratio()}


def compare(before: Values, after: Values) -> tuple[list[str], bool]:
    """Returns one line for every value, and whether any got worse.

    Args:
        before: From an earlier version.
        after: From a later one.

    Example:
        >>> lines, is_worse = compare({"rows_learn": 1.0, "n": 5}, {"rows_learn": 1.2, "n": 5})
        >>> lines[0], is_worse
        ('rows_learn: 1 -> 1.2 (1.20 times)', False)
        >>> compare({"n": 5}, {"n": 6})
        (['n: 5 -> 6 CHANGED'], True)
    """
    lines, is_worse = [], False
    for name in [*before, *(name for name in after if name not in before)]:
        a, b = before.get(name), after.get(name)
        if a is None or b is None:
            lines.append(f"{name}: only {'after' if a is None else 'before'}")
        elif name in TIMES:
            bad = b > WORSE * a
            lines.append(f"{name}: {a:g} -> {b:g} ({b / a:.2f} times){' WORSE' if bad else ''}")
            is_worse |= bad
        else:
            lines.append(f"{name}: {a:g} -> {b:g}{'' if a == b else ' CHANGED'}")
            is_worse |= a != b
    return lines, is_worse


def _digits() -> Values:
    """Learns scikit-learn's digits with the default."""
    stream = load_scenario("split-digits").build(seed=0)
    learner = CNDPM(CNDPM.Settings(), input_shape=stream.input_shape, n_classes=10, seed=0)
    for block in stream.blocks():
        learner.learn_block(block.x, block.y, block.batch_size)
    learner.finish()
    right = torch.cat([learner.predict_log_proba(task.x).argmax(dim=1) == task.y for task in stream.tasks])
    return {
        "digits_accuracy": round(100 * float(right.double().mean()), 3),
        "digits_experts": learner.n_experts,
        "digits_numbers_kept": learner.footprint().n_numbers_kept,
    }


def _rows() -> Values:
    """Learns 2,000 rows of ten features, four classes two by two, with and without predicting before every batch."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(2, (2000,), generator=generator) + 2 * (torch.arange(2000) >= 1000)
    x = 1.5 * torch.randn(4, 10, generator=generator)[y] + torch.randn(2000, 10, generator=generator)
    models: list[CNDPM] = []

    def learn() -> None:
        models.append(CNDPM(CNDPM.Settings(memory_size=100), input_shape=(10,), seed=0))
        models[-1].learn_block(x, y, 10)

    def live() -> None:
        model = CNDPM(CNDPM.Settings(memory_size=100), input_shape=(10,), seed=0)
        for start in range(0, 2000, 10):
            model.predict_log_proba(x[start : start + 10])
            model.learn(x[start : start + 10], y[start : start + 10])

    learned, lived, yardstick = _medians(learn, live, _products)
    models[-1].finish()
    right = models[-1].predict_log_proba(x).argmax(dim=1) == y
    accuracy = round(100 * float(right.double().mean()), 3)
    return {"rows_accuracy": accuracy, "rows_learn": learned / yardstick, "rows_live": lived / yardstick}


def _products() -> None:
    """Does small products, the yardstick of this machine: a fifth of a second or so."""
    a = torch.full((64, 64), 0.01)
    for _ in range(8000):
        a = (a @ a).clamp(max=0.01) + 0.001


def _medians(*works: Callable[[], object]) -> list[float]:
    """Returns the median seconds of each, all taking turns."""
    turns = [[_seconds(work) for work in works] for _ in range(N_TURNS)]
    return [statistics.median(times) for times in zip(*turns, strict=True)]


def _seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _import_ratio() -> float:
    """Returns how much longer `import cndpm` takes than `import numpy`, each in a process of its own."""

    def start(module: str) -> float:
        code = f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)

    turns = [(start("cndpm"), start("numpy")) for _ in range(N_TURNS)]
    return statistics.median(ours for ours, _ in turns) / statistics.median(theirs for _, theirs in turns)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("command", choices=("write", "show"))
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args()
    if len(given.files) != {"write": 1, "show": 2}[given.command]:
        parser.error("write takes one file, show takes two")
    if given.command == "write":
        values = measure()
        head = {"version": cndpm.__version__, "torch": torch.__version__}
        given.files[0].write_text(json.dumps({**head, "values": values}, indent=2) + "\n")
        return
    before, after = (json.loads(file.read_text())["values"] for file in given.files)
    lines, is_worse = compare(before, after)
    print("\n".join(lines))
    sys.exit(int(is_worse))


if __name__ == "__main__":
    main()
