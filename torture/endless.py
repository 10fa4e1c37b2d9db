"""A stream without end: memory and time of a batch, window after window, once the last expert is there.

    python -m torture.endless                     # a million batches, about ten minutes on one core
    python -m torture.endless 20000               # fewer

Rows of four features and six classes come and go, two classes for a while, then two others. Time is that of the
process, so that other work on the machine does not count; what is printed at the end is how far windows lie apart after
the last expert was founded.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings

_BATCH = 5
_BLOCK = 500
"""Batches that are drawn at once, two classes each."""

_N_WINDOWS = 20


def block(number: int) -> tuple[Tensor, Tensor]:
    """Draws the rows (n, 4) and classes (n,) of a block; the three pairs of classes take turns."""
    generator = torch.Generator().manual_seed(number)
    n, pair = _BATCH * _BLOCK, number % 3
    y = 2 * pair + torch.randint(2, (n,), generator=generator)
    centres = 4 * torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    return centres[y] + torch.randn(n, 4, generator=generator), y


def resident_mib() -> float:
    """Returns the memory that this process has now, in MiB; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def main(n_batches: int) -> None:
    """Learns the stream and prints a line a window."""
    learner = CNDPM(CNDPMSettings(memory_size=100, features="identity"), input_shape=(4,))
    per_window = max(1, n_batches // _BLOCK // _N_WINDOWS)
    lines: list[tuple[int, float, float]] = []
    for window in range(_N_WINDOWS):
        started = time.process_time()
        for number in range(window * per_window, (window + 1) * per_window):
            learner.learn_block(*block(number), _BATCH)
        cost = 1e6 * (time.process_time() - started) / (per_window * _BLOCK)
        lines.append((learner.n_experts, cost, resident_mib()))
        n_done = (window + 1) * per_window * _BLOCK
        print(
            f"{n_done:9,} batches: {lines[-1][0]} experts, {cost:6.1f} us a batch, {lines[-1][2]:.1f} MiB", flush=True
        )
    settled = [line for line in lines[1:] if line[0] == lines[-1][0]]
    for name, column in (("time", 1), ("memory", 2)):
        values = [line[column] for line in settled]
        spread = 100 * (max(values) / min(values) - 1)
        change = 100 * (sum(values[-3:]) / max(1e-9, sum(values[:3])) - 1)
        print(f"{name}: the last three windows against the first three {change:+.1f} %, all within {spread:.1f} %")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
