"""Configures runs from hostile overrides (``--set``), names and damaged scenario files.

    python -m torture.overrides --n 20000 --seed 0

Counted are deaths (the process ended, or did not answer for two minutes); foreign (an exception that the command line
would show as a bug); unclear (a message of more than one line or 800 characters, or none); slow (more than 10 seconds
to plan); accepted and refused. Ends with 1 if any of the first four is not zero.
"""

from __future__ import annotations

import argparse
import sys
import time

from torture.attempts import Count, in_workers

__all__ = ["BAD", "main"]

BAD = ("deaths", "foreign", "unclear", "slow")


def main(arguments: list[str] | None = None) -> int:
    """Makes the attempts that the arguments ask for; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m torture.overrides", description="Configure runs from hostile text."
    )
    parser.add_argument("--n", type=int, default=20_000, help="number of attempts")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    began, count = time.perf_counter(), Count(BAD)
    in_workers("torture.override_worker", options.seed, options.n, count)
    print(f"{options.n} hostile configurations, seed {options.seed}: {count}")
    print(f"{time.perf_counter() - began:.0f} s in all, slowest {count.slowest:.3f} s of the processor")
    print("\n".join(count.lines[:100]))
    return 1 if count.n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
