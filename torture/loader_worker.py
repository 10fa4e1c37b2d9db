"""Loads damaged models, checkpoints and records, one after the other; see :mod:`torture.loaders`."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from cndpm import CNDPMDensity
from cndpm.errors import CNDPMError, DamageWarning
from cndpm.experiments.record import read_record
from cndpm.reports.html import page_values, shown
from cndpm.state import load_state
from torture.attempts import Outcome
from torture.mutations import mutate
from torture.reader_worker import limit_memory
from torture.small_run import be_quick, outcome, run_once
from torture.state_mutations import mutate_state
from torture.victims import FLIPPED, MODELS, VICTIMS, Victim, prepare, rows_for, samples

__all__ = ["attempt", "attempts"]

_WANTED = ("MemoryError", "t allocate memory", "Unable to allocate")  # as Python, torch and numpy say it


def attempt(root: Path, victim: Victim, rng: Random, *, flips: bool = False) -> tuple[str, str, str]:
    """Damages a victim and loads it.

    Args:
        root: Where :func:`prepare` was.
        victim: Is copied first.
        rng: The only source of chance.
        flips: Whether a single bit is flipped.

    Returns:
        What was done, the outcome (as of `torture.readers`) and what there is to say.
    """
    if "model" in victim.kind:
        return _attack_model(root, victim, rng, flips)
    return _attack_run(root, victim, rng, flips)


@cache
def _content(path: Path) -> bytes:
    """Returns a victim, which nobody changes and which is damaged thousands of times."""
    return path.read_bytes()


def _damaged(path: Path, other: Path, rng: Random, *, sealed: bool, flips: bool) -> tuple[str, bytes]:
    content = _content(path)
    if flips:
        at = rng.randrange(8 * len(content))
        return f"bit {at}", content[: at // 8] + bytes([content[at // 8] ^ 1 << at % 8]) + content[at // 8 + 1 :]
    return mutate_state(path, rng) if sealed else mutate(content, _content(other), rng)


def _attack_model(root: Path, victim: Victim, rng: Random, flips: bool) -> tuple[str, str, str]:
    path, other, copy = (root / f"{victim.file}.{side}" for side in ("a", "b", "damaged"))
    sealed = victim.kind.startswith("sealed")
    done, content = _damaged(path, other, rng, sealed=sealed, flips=flips)
    if content in (_content(path), _content(other)):
        return done, "equal", ""
    copy.write_bytes(content)
    kind = type(MODELS[victim.file]())
    try:
        model = kind.load(copy)
    except CNDPMError as error:
        return done, _refusal(copy.name, str(error)), str(error)
    except Exception as error:
        return done, "foreign", f"load: {type(error).__name__}: {error}"
    if not sealed:
        return done, "silent", "a damaged file was loaded"
    return (done, *_use(victim.file, model))


def _refusal(file: str, said: str) -> str:
    """Returns the outcome of a refusal: what was refused for want of memory would have taken it elsewhere."""
    if any(words in said for words in _WANTED):
        return "greedy"
    return "refused" if file in said else "unnamed"


def _use(name: str, model: Any) -> tuple[str, str]:
    """Uses a model of a file that was made up: it may answer anything, and may refuse."""
    x, y = samples(1)
    x = rows_for(name, x)
    try:
        if isinstance(model, CNDPMDensity):
            model.score_samples(x[:5])
            model.partial_fit(x[:40])
        else:
            model.predict(x[:5])
            model.partial_fit(x[:40], y[:40])
    except CNDPMError as error:
        return _refusal("", str(error)), f"in use: {error}"
    except Exception as error:
        return "foreign", f"in use: {type(error).__name__}: {error}"
    return "changed", ""


def _attack_run(root: Path, victim: Victim, rng: Random, flips: bool) -> tuple[str, str, str]:
    source = victim.file if "checkpoint" in victim.kind else victim.kind
    file = "checkpoint.cndpm" if "checkpoint" in victim.kind else victim.file
    before, other = root / f"{source}.a", root / f"{source}.b"
    sealed = victim.kind.startswith("sealed")
    done, content = _damaged(before / file, other / file, rng, sealed=sealed, flips=flips)
    if content == _content(before / file):
        return done, "equal", ""
    copy = root / "run"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(before, copy)
    (copy / file).write_bytes(content)
    if flips:
        try:
            load_state(copy / file, kind="checkpoint")
        except CNDPMError as error:
            return done, "refused", str(error)
        return done, "silent", "a damaged checkpoint was loaded"
    return (done, *_resume(root, copy, file, sealed))


def _resume(root: Path, copy: Path, file: str, sealed: bool) -> tuple[str, str]:
    """Reports and resumes a run with a damaged file, and compares its end with that of one which was never stopped."""
    try:
        content = shown([copy], page_values)[0]
        told = " ".join(problem.reason for problem in content.collection.problems)
        run_once(copy)
        record = read_record(copy)
        told += " ".join(record.problems)
        ended = outcome(copy)
    except CNDPMError as error:
        return ("refused" if file in str(error) or copy.name in str(error) else "unnamed"), str(error)
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"
    if ended == (root / "expected").read_text():
        return "equal", ""
    if file in told:
        return "refused", told
    return ("changed" if sealed else "silent"), "another end"


def attempts(seed: int, first: int, end: int, folder: Path, what: str) -> Iterator[Outcome]:
    """Yields the outcomes of the attempts from `first` to `end`.

    Args:
        seed: Attempts are functions of the seed and their number.
        first: The first attempt.
        end: The one behind the last.
        folder: Where victims are made and damaged.
        what: "files", or "flips" for single bits.
    """
    be_quick()
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", DamageWarning)
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="numpy|cndpm")
    prepare(folder)
    limit_memory(1 << 30)
    victims, flips = (FLIPPED, True) if what == "flips" else (VICTIMS, False)
    for number in range(first, end):
        done, outcome, detail = attempt(folder, victims[number % len(victims)], Random(f"{seed} {number}"), flips=flips)
        yield Outcome(number, outcome, f"{done}: {detail!r}")
