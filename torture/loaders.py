"""Damages models, checkpoints and records a great many times and counts how loading and resuming take it.

    python -m torture.loaders --n 100000 --seed 0
    python -m torture.loaders --n 10000 --seed 0 --what flips     # a single bit, anywhere in a model or a checkpoint

What is loaded lies in a process of its own. The table counts as that of `torture.readers` does; here

- silent: a damaged model or checkpoint was loaded, or a run with a damaged file came to another end and no word of it
  was said;
- changed: a file whose checksum was made to fit gave another model, which could be used;
- refused: an error of the package names the file, or the report does while the rest is shown;
- equal: a run came to the same end, by an undamaged copy where need be.

numpy's warnings of values that overflow or are not numbers do not count: they were made up.

Ends with 1 if there was any death, foreign exception, unnamed error or silent change.
"""

from __future__ import annotations

import argparse
import sys
import time

from torture.readers import Tally, attack_in_turns, start_worker, table

__all__ = ["attack", "main"]


def attack(seed: int, n: int, what: str = "files") -> Tally:
    """Makes `n` attempts; the victims take turns.

    Args:
        seed: Attempts are functions of the seed and their number.
        n: Number of attempts.
        what: "files", or "flips" for single bits.
    """
    from torture.loader_worker import names

    def start(seed: int, first: int, end: int, folder: str):  # noqa: ANN202
        return start_worker("torture.loader_worker", seed, first, end, folder, what)

    return attack_in_turns(names(what), seed, n, start)


def main(arguments: list[str] | None = None) -> int:
    """Runs the attack that the arguments ask for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m torture.loaders", description="Attack models and records.")
    parser.add_argument("--n", type=int, default=100_000, help="number of attempts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--what", choices=("files", "flips"), default="files")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    tally = attack(options.seed, options.n, options.what)
    seconds = time.perf_counter() - begin
    print(table(tally))
    print(f"\nseed {options.seed}, {seconds:.0f} s in all, slowest attempt {tally.slowest:.3f} s of the processor")
    print("\n".join(tally.bad[:100]))
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
