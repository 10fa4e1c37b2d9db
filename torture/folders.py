"""Damages the folder of a server a great many times and starts it again; nothing acknowledged may be lost unseen.

    python -m torture.folders --n 10000 --seed 0

Options are those of :mod:`torture.attempts`. Two attempts of three flip one bit of a log, a witness, a checkpoint or
the mark of the served model; the others cut, empty, splice or remove one of these files, put a whole one of another
moment in its place, exchange the two, or change what a line of a log says and make its hash fit. Counted are

- foreign: an exception that is not the package's own left the store;
- silent: another model came back, or other ids were known, and no word of it was said;
- removed: a folder was refused, and one of its files is not as it was;
- changed: a log whose hashes fit gave another model, as it may;
- refused, equal: everything else.

Ends with 1 if any of the first three is not zero.
"""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from cndpm import CNDPMClassifier
from cndpm.checks.case import same
from cndpm.errors import CNDPMError
from cndpm.serving.row_log import _linked, witness_of
from cndpm.serving.store import Store, learn_rows
from torture.attempts import Attack, Outcome, main
from torture.mutations import mutate
from torture.state_mutations import VALUES

__all__ = ["ATTACK", "attempt", "attempts", "prepare"]

ATTACK = Attack(
    "damaged folders of servers",
    "torture.folders",
    10_000,
    ("foreign", "silent", "removed"),
    ("refused", "changed", "equal"),
)

_N_RECORDS = 8
_CHECKPOINTS = (2, 5)


def prepare(root: Path) -> tuple[Any, dict[str, Any]]:
    """Makes a model and the folder of a server that taught it; returns the state and the ids that must come back.

    Args:
        root: An empty folder.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)).astype(np.float32), [f"class {i % 3}" for i in range(90)]
    settings = {"features": "identity", "representations": "one"}
    CNDPMClassifier(memory_size=20, n_exemplars=0, settings=settings, random_state=0).fit(X, y).save(root / "model")
    store = Store(root / "model", root / "served")
    for k in range(_N_RECORDS):
        learn_rows(store.model, X[k : k + 3], y[k : k + 3])
        store.append(X[k : k + 3], y[k : k + 3], [(f"request {k}", 2), (None, 1)])
        if store.n_records in _CHECKPOINTS:
            store.checkpoint()
    store.close()
    return store.model.learner_.state_dict(), dict(store.known)


def attempt(root: Path, expected: Any, known: dict[str, Any], rng: Random) -> tuple[str, str]:
    """Damages one file of a copy of the folder and opens it.

    Args:
        root: Where :func:`prepare` was.
        expected: The state that must come back.
        known: The ids that must come back.
        rng: The only source of chance.

    Returns:
        The outcome and what there is to say.
    """
    folder = root / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "served", folder)
    files = sorted(path for path in folder.iterdir() if path.name != "lock")
    path = rng.choice(files)
    done = f"{path.name}: {_damage(path, rng.choice(files), rng)}"
    before = _contents(folder)
    try:
        store = Store(root / "model", folder)
    except CNDPMError as error:
        named = "refused" if folder.name in str(error) else "foreign"
        return ("removed" if _contents(folder) != before else named), f"{done}: {error}"
    except Exception as error:
        return "foreign", f"{done}: {type(error).__name__}: {error}"
    came_back = same(store.model.learner_.state_dict(), expected) and store.known == known
    store.close()
    other = "changed" if done.endswith("the hash fits") else "silent"
    return ("equal" if came_back else other), done


def _damage(path: Path, other: Path, rng: Random) -> str:
    content = path.read_bytes()
    how = rng.choice(("flip",) * 10 + ("cut", "mutate", "remove", "replace", "exchange", "seal"))
    alike = [each for each in path.parent.glob(f"{path.stem.partition('-')[0]}-*{path.suffix}") if each != path]
    if how in ("replace", "exchange") and alike:
        twin = rng.choice(sorted(alike))
        path.write_bytes(twin.read_bytes())
        if how == "exchange":
            twin.write_bytes(content)
        return f"{how} by {twin.name}"
    if how == "seal" and path.suffix == ".jsonl":
        return f"{_seal(path, rng)}, the hash fits"
    if how == "flip" and content:
        at = rng.randrange(8 * len(content))
        path.write_bytes(content[: at // 8] + bytes([content[at // 8] ^ 1 << at % 8]) + content[at // 8 + 1 :])
        return f"bit {at}"
    if how == "remove":
        path.unlink()
    elif how == "mutate":
        how, changed = mutate(content, other.read_bytes(), rng)
        path.write_bytes(changed)
    else:
        lines = content.splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: rng.randrange(len(lines) + 1)]))
    return how


def _seal(path: Path, rng: Random) -> str:
    """Has a line of a log say something else, and makes all hashes fit; returns what was done."""
    lines = [json.loads(line.partition(b" ")[2]) for line in path.read_bytes().splitlines()]
    line = rng.choice(lines)
    name = rng.choice(sorted(line))
    inner = line[name] if isinstance(line[name], list) and line[name] and rng.random() < 0.5 else None
    value = rng.choice(VALUES)
    if inner is None:
        line[name] = value
    else:
        inner[rng.randrange(len(inner))] = value
    link, sealed = "", b""
    for text in (json.dumps(each).encode() for each in lines):
        link = _linked(link, text)
        sealed += b"%s %s\n" % (link.encode(), text)
    witness_of(path).unlink()
    path.write_bytes(sealed)
    return f"{name} replaced by {str(value)[:40]!r}"


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:
    """Yields the outcomes of the attempts from `first` to `end`.

    Args:
        seed: Attempts are functions of the seed and their number.
        first: The first attempt.
        end: The one behind the last.
        folder: Where all of it happens.
    """
    warnings.simplefilter("ignore")  # of damage, where another copy was used
    expected, known = prepare(folder)
    for number in range(first, end):
        yield Outcome(number, *attempt(folder, expected, known, Random(f"{seed} {number}")))


if __name__ == "__main__":
    sys.exit(main(ATTACK))
