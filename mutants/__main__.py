"""Tries mutants and prints which of them no test noticed: ``python -m mutants [FILE.toml ...]``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mutants.catalogue import Mutant, MutantError, follow, load_mutants, mutated
from mutants.trials import (
    Outcome,
    TestsFailError,
    check_tests_pass,
    import_slow_libraries,
    project_copies,
    try_mutants,
)

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if every mutant was noticed, 1 if some survived, 2 if something cannot be tried."""
    chosen = _parser().parse_args(arguments)
    lists = chosen.files or sorted((ROOT / "mutants").glob("*.toml"))
    if chosen.follow:
        return _follow(lists)
    try:
        mutants = _selected(load_mutants(lists), chosen.only)
        for mutant in mutants:
            mutated(mutant, ROOT)
        outcomes = [] if chosen.check else _try_all(mutants, jobs=chosen.jobs, limit=chosen.limit)
    except (MutantError, TestsFailError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if chosen.check:
        print(f"{len(mutants)} mutants can be applied")
        return 0
    print(_summary(outcomes))
    return int(any(not outcome.noticed for outcome in outcomes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="files of mutants; default: all in mutants/")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names (baselines-12) or parts of modules (ewc)")
    parser.add_argument("--jobs", type=int, default=2, help="trials at the same time")
    parser.add_argument("--limit", type=int, default=300, help="seconds of processor time for one trial")
    parser.add_argument("--check", action="store_true", help="only check that every mutant can be applied")
    parser.add_argument("--follow", action="store_true", help="only correct the modules of fragments that have moved")
    return parser


def _follow(lists: Sequence[Path]) -> int:
    n_moved, lost = follow(lists, ROOT)
    print(f"{n_moved} mutants have moved with their fragment, {len(lost)} are lost")
    for mutant in lost:
        print(f"- {mutant.name} ({mutant.module}): {mutant.claim}")
    return int(bool(lost))


def _selected(mutants: list[Mutant], only: Sequence[str] | None) -> list[Mutant]:
    if only is None:
        return mutants
    found = [m for m in mutants if any(part == m.name or part in m.module for part in only)]
    if not found:
        raise MutantError(f"no mutant is named {' or '.join(only)}, nor is a module that has mutants")
    return found


def _try_all(mutants: Sequence[Mutant], *, jobs: int, limit: int) -> list[Outcome]:
    import_slow_libraries()
    with project_copies(ROOT, max(1, min(jobs, len(mutants)))) as copies:
        check_tests_pass(sorted({test for mutant in mutants for test in mutant.tests}), copies[0], limit=10 * limit)
        outcomes = []
        for outcome in try_mutants(mutants, copies, limit=limit):
            outcomes.append(outcome)
            print(_line(outcome), flush=True)
    return outcomes


def _line(outcome: Outcome) -> str:
    word = "noticed " if outcome.noticed else "SURVIVED"
    mutant = outcome.mutant
    return f"{word} {mutant.name:<14} {outcome.seconds:5.1f} s  {mutant.module}: {mutant.claim}  [{outcome.how}]"


def _summary(outcomes: Sequence[Outcome]) -> str:
    """Returns a Markdown table of noticed and surviving mutants by room, and the survivors."""
    tried = Counter(_room(outcome) for outcome in outcomes)
    noticed = Counter(_room(outcome) for outcome in outcomes if outcome.noticed)
    rows = [f"| {room} | {tried[room]} | {noticed[room]} | {tried[room] - noticed[room]} |" for room in sorted(tried)]
    total = f"| all | {tried.total()} | {noticed.total()} | {tried.total() - noticed.total()} |"
    survivors = [
        f"- {outcome.mutant.name} ({outcome.mutant.module}): {outcome.mutant.claim}"
        for outcome in sorted(outcomes, key=lambda outcome: outcome.mutant.name)
        if not outcome.noticed
    ]
    return "\n".join(["", "| room | mutants | noticed | survived |", "|---|---|---|---|", *rows, total, "", *survivors])


def _room(outcome: Outcome) -> str:
    """Returns the folder of a mutant; experts have rooms of their own."""
    first, *others = outcome.mutant.module.split("/")[:-1] or ["."]
    return f"{first}/{others[0]}" if first == "experts" and others else first


if __name__ == "__main__":
    sys.exit(main())
