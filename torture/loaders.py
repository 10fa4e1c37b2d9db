"""Damages models, checkpoints and records a great many times and counts how loading and resuming take it.

    python -m torture.loaders --n 100000 --seed 0
    python -m torture.loaders --n 10000 --seed 0 --what flips     # a single bit, anywhere in a model or a checkpoint

Options are those of :mod:`torture.attempts`. The table counts as that of `torture.readers` does; here

- greedy: a file was refused only because the memory that it asked for, far more than it has, was not there;
- silent: a damaged model or checkpoint was loaded, or a run with a damaged file came to another end and no word of it
  was said;
- changed: a file whose checksum was made to fit gave another model, which could be used;
- refused: an error of the package names the file, or the report does while the rest is shown;
- equal: a run came to the same end, by an undamaged copy where need be.

numpy's warnings of values that overflow or are not numbers do not count: they were made up.

Ends with 1 if there was any death, foreign exception, unnamed error, greedy file or silent change.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from torture.attempts import Attack
from torture.attempts import main as carry_out
from torture.readers import BAD, GOOD
from torture.victims import FLIPPED, VICTIMS

__all__ = ["ATTACKS", "main"]

ATTACKS = {
    what: Attack(
        f"damaged models and records ({what})", "torture.loader_worker", n, (*BAD, "greedy"), GOOD, names, (what,)
    )
    for what, n, names in (
        ("files", 100_000, [victim.name for victim in VICTIMS]),
        ("flips", 10_000, [victim.name for victim in FLIPPED]),
    )
}
"""The attacks by what is done."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the attack that the arguments ask for; returns the exit code."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--what", choices=sorted(ATTACKS), default="files")
    options, others = parser.parse_known_args(arguments)
    return carry_out(ATTACKS[options.what], others)


if __name__ == "__main__":
    sys.exit(main())
