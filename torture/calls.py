"""Calls estimators with hostile arguments a great many times; no call may do harm.

    python -m torture.calls --n 100000 --seed 0

Options are those of :mod:`torture.attempts`. Rows, targets and parameters are drawn from
:mod:`torture.hostile_inputs`. A model lives through 25 calls and is compared to the bit, parameters included, before
and after each. Counted are

- deaths: the process ended, or did not answer for five minutes;
- foreign: an exception other than ValueError and TypeError left the estimator (OSError may leave `save`);
- unclear: an exception without a message;
- changed: a call that raised, or that only asks, changed the model;
- silent: a call was accepted after which the model cannot answer, or answers with numbers that are not finite;
- accepted, refused: everything else.

Ends with 1 if any of the first five is not zero.
"""

from __future__ import annotations

import sys

from torture.attempts import Attack, main

__all__ = ["ATTACK"]

ATTACK = Attack(
    "hostile calls",
    "torture.call_worker",
    100_000,
    ("foreign", "unclear", "changed", "silent"),
    ("accepted", "refused"),
)

if __name__ == "__main__":
    sys.exit(main(ATTACK))
