"""Makes attempts in a process that may die and prints a line for each outcome, as :mod:`torture.attempts` reads it.

    python -m torture.worker MODULE SEED FIRST END FOLDER [ARGUMENTS...]

A line holds, between tabs, the number of the attempt, its outcome, how often it came, the seconds of the processor
since the last line, and what there is to say.
"""

from __future__ import annotations

import faulthandler
import sys
import time
from importlib import import_module
from pathlib import Path

__all__ = ["main"]

_LONGEST = 600


def main(module: str, seed: str, first: str, end: str, folder: str, *arguments: str) -> None:
    """Makes the attempts that the arguments ask for."""
    faulthandler.enable()
    attempts = import_module(module).attempts(int(seed), int(first), int(end), Path(folder), *arguments)
    began = time.process_time()
    for outcome in attempts:
        detail = " ".join(outcome.detail.split())[:_LONGEST].encode("ascii", "backslashreplace").decode()
        seconds = f"{time.process_time() - began:.4f}"
        print(outcome.number, outcome.name, outcome.times, seconds, detail, sep="\t", flush=True)
        began = time.process_time()


if __name__ == "__main__":
    main(*sys.argv[1:])
