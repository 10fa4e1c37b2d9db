"""Configures runs from hostile overrides (``--set``), names and damaged scenario files.

    python -m torture.overrides --n 20000 --seed 0

Counted are deaths (the process ended, or did not answer for five minutes); foreign (an exception that the command line
would show as a bug); unclear (a message of more than one line or 800 characters, or none); slow (more than 10 seconds
to plan); accepted and refused. Ends with 1 if any of the first four is not zero.
"""

from __future__ import annotations

import sys

from torture.attempts import Attack, main

__all__ = ["ATTACK"]

ATTACK = Attack(
    "hostile configurations", "torture.override_worker", 20_000, ("foreign", "unclear", "slow"), ("accepted", "refused")
)

if __name__ == "__main__":
    sys.exit(main(ATTACK))
