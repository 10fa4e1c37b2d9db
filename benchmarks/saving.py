"""Costs of saving and loading a state, beside writing the same bytes without a checksum.

    python -m benchmarks.saving [--megabytes 64]

The ratios are taken in one run, on files in memory where the system has a place for them, so that they tell of the
computation and not of a disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from cndpm.state import load_state, save_state

_ROUNDS = 5
_IN_MEMORY = Path("/dev/shm")


def main() -> None:
    parser = argparse.ArgumentParser(description="Ratios of saving and loading.")
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args()
    state = {"parts": [torch.randn(1 << 18) for _ in range(options.megabytes)]}
    with TemporaryDirectory(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None) as folder:
        path, plain = Path(folder, "state"), Path(folder, "plain")
        saving = _seconds(lambda: save_state(path, state, kind="benchmark"))
        loading = _seconds(lambda: load_state(path, kind="benchmark"))
        writing = _seconds(lambda: _write(plain, state["parts"]))
        reading = _seconds(plain.read_bytes)
    print(f"{options.megabytes} MB: saving takes {saving / writing:.2f} times as long as writing,")
    print(f"loading {loading / reading:.2f} times as long as reading")
    print(f"saving {options.megabytes / saving:.0f} MB/s, loading {options.megabytes / loading:.0f} MB/s")


def _seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _write(path: Path, parts: list[torch.Tensor]) -> None:
    with path.open("wb") as file:
        for part in parts:
            file.write(part.numpy().tobytes())
        os.fsync(file.fileno())


if __name__ == "__main__":
    main()
