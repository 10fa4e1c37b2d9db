"""Damages small files of every format a great many times and counts how the readers of datasets take it.

    python -m torture.readers --n 100000 --seed 0
    python -m torture.readers --seed 0 --show 4711 --keep damaged   # writes one attempt's files, to look at

Options are those of :mod:`torture.attempts`. For each format the table counts

- deaths: the process ended, or did not answer for five minutes;
- foreign: an exception or a warning that is not the package's own left it;
- unnamed: an error of the package does not name the damaged file;
- silent: a changed file was read as other samples than before although its format has checksums of them (gzip,
  deflated MATLAB, npz, PNG) which do not fit any more;
- changed: other samples were read where nothing can tell: the format has no checksums, or they fit: they were made to,
  or the file was put together from parts that have one each;
- equal: the same samples as before were read; the damage was to something that does not matter;
- refused: everything else, with an error of the package that names the file.

Ends with 1 if any of the first four is not zero.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from torture.attempts import Attack
from torture.attempts import main as carry_out
from torture.formats import formats, write_files
from torture.reader_worker import damage

__all__ = ["ATTACK", "BAD", "GOOD", "main"]

BAD = ("foreign", "unnamed", "silent")
GOOD = ("changed", "equal", "refused")
ATTACK = Attack("damaged files of datasets", "torture.reader_worker", 100_000, BAD, GOOD, [f.name for f in formats()])


def _show(seed: int, number: int, keep: Path) -> None:
    """Writes the files of one attempt below `keep` and says how to read them."""
    chosen, content, _, done = damage(seed, number)
    write_files(chosen.files | {chosen.target: content}, keep)
    print(f"{chosen.name}, {done}: load_dataset({chosen.dataset!r}, {str(keep)!r}); damaged is {chosen.target}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the attack that the arguments ask for; returns the exit code."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--show", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("damaged"))
    options, _ = parser.parse_known_args(arguments)
    if options.show is None:
        return carry_out(ATTACK, arguments)
    _show(options.seed, options.show, options.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
