"""Calls estimators with hostile arguments a great many times; no call may do harm.

    python -m torture.calls --n 100000 --seed 0

Rows, targets and parameters are drawn from :mod:`torture.hostile_inputs`. A model lives through 25 calls and is
compared to the bit, parameters included, before and after each. Counted are

- deaths: the process ended, or did not answer for two minutes;
- foreign: an exception other than ValueError and TypeError left the estimator (OSError may leave `save`);
- unclear: an exception without a message;
- changed: a call that raised, or that only asks, changed the model;
- silent: a call was accepted after which the model cannot answer, or answers with numbers that are not finite;
- accepted, refused: everything else.

Ends with 1 if any of the first five is not zero.
"""

from __future__ import annotations

import argparse
import sys
import time

from torture.attempts import Count, in_workers

__all__ = ["BAD", "main"]

BAD = ("deaths", "foreign", "unclear", "changed", "silent")


def main(arguments: list[str] | None = None) -> int:
    """Makes the calls that the arguments ask for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m torture.calls", description="Call estimators with hostile input.")
    parser.add_argument("--n", type=int, default=100_000, help="number of calls")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    began, count = time.perf_counter(), Count(BAD)
    in_workers("torture.call_worker", options.seed, options.n, count)
    print(f"{options.n} hostile calls, seed {options.seed}: {count}")
    print(f"{time.perf_counter() - began:.0f} s in all, slowest call {count.slowest:.3f} s of the processor")
    print("\n".join(count.lines[:100]))
    return 1 if count.n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
