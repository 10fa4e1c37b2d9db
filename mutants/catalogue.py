"""Mutants as data: which fragment of which module is replaced by what, and which claim that breaks.

A file `mutants/ROOM.toml` holds the mutants of one room of the package:

    [[mutant]]
    module = "baselines/ewc.py"
    claim = "the Fisher information is made of squared gradients"
    find = "of=Tensor.square"
    replace = "of=Tensor.abs"
    tests = ["tests/baselines/test_ewc.py"]

`module` is relative to `src/cndpm/`; `find` occurs exactly once in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant", "MutantError", "follow", "load_mutants", "mutated"]

_FIELDS = ("module", "claim", "find", "replace", "tests")


class MutantError(ValueError):
    """Raised for a mutant that cannot be applied; the message names it, its file and the mistake."""


@dataclass(frozen=True)
class Mutant:
    """One change of meaning.

    Attributes:
        name: The room and the number within its file, e.g. ``baselines-12``.
        module: The changed file, relative to ``src/cndpm``.
        claim: What no longer holds.
        find: The source fragment that is replaced.
        replace: Its replacement.
        tests: Test files that should notice, relative to the project's root.
    """

    name: str
    module: str
    claim: str
    find: str
    replace: str
    tests: tuple[str, ...]

    def path(self, root: Path) -> Path:
        """Returns the changed file in the project at `root`."""
        return root / "src" / "cndpm" / self.module


def load_mutants(files: Sequence[Path]) -> list[Mutant]:
    """Reads mutants from TOML files, in order.

    Raises:
        MutantError: An entry lacks a field or has one that is not known.
    """
    return [
        _read(f"{file.stem}-{number}", entry, file)
        for file in files
        for number, entry in enumerate(tomllib.loads(file.read_text(encoding="utf-8"))["mutant"], start=1)
    ]


def _read(name: str, entry: dict[str, object], file: Path) -> Mutant:
    if set(entry) != set(_FIELDS):
        raise MutantError(f"{name} in {file} needs the fields {', '.join(_FIELDS)}; got {', '.join(entry)}")
    tests = entry["tests"]
    if not isinstance(tests, list) or not tests:
        raise MutantError(f"{name} in {file} needs a list of test files under 'tests'; got {tests!r}")
    texts = {field: str(entry[field]) for field in _FIELDS[:-1]}
    return Mutant(name=name, tests=tuple(map(str, tests)), **texts)


def mutated(mutant: Mutant, root: Path) -> str:
    """Returns the source of the mutant's module with its fragment replaced.

    Args:
        mutant: The change.
        root: Root of the project whose source is read; it is left unchanged.

    Raises:
        MutantError: The module or a test file does not exist, or the fragment does not occur exactly once.
    """
    path = mutant.path(root)
    for file in (path, *(root / test for test in mutant.tests)):
        if not file.is_file():
            raise MutantError(f"{mutant.name} ({mutant.claim}): there is no file {file.relative_to(root)}")
    source = path.read_text(encoding="utf-8")
    n_found = source.count(mutant.find)
    if n_found != 1:
        raise MutantError(
            f"{mutant.name} ({mutant.claim}): its fragment should occur once in {mutant.module} and occurs "
            f"{n_found} times: {mutant.find!r}. Follow the source, or drop the mutant."
        )
    if mutant.find == mutant.replace:
        raise MutantError(f"{mutant.name} ({mutant.claim}) changes nothing in {mutant.module}")
    changed = source.replace(mutant.find, mutant.replace)
    try:
        tomllib.loads(changed) if mutant.module.endswith(".toml") else compile(changed, mutant.module, "exec")
    except (SyntaxError, tomllib.TOMLDecodeError) as error:
        raise MutantError(
            f"{mutant.name} ({mutant.claim}) leaves no valid Python in {mutant.module}: {error}"
        ) from None
    return changed


def follow(files: Sequence[Path], root: Path) -> tuple[int, list[Mutant]]:
    """Rewrites the module of every mutant whose fragment has moved to another file as it was.

    Args:
        files: Lists of mutants, which are written anew where something has moved.
        root: Root of the project.

    Returns:
        How many have moved, and those whose fragment is in no file, or in several.
    """
    kinds = ("*.py", "*.toml")
    paths = sorted(path for kind in kinds for path in (root / "src" / "cndpm").rglob(kind))
    sources = {path: path.read_text(encoding="utf-8") for path in paths}
    n_moved, lost = 0, []
    for file in files:
        head, *entries = file.read_text(encoding="utf-8").split("[[mutant]]\n")
        for i, mutant in enumerate(load_mutants([file])):
            if sources.get(mutant.path(root), "").count(mutant.find) == 1:
                continue
            found = [path for path, source in sources.items() if source.count(mutant.find) == 1]
            if len(found) != 1:
                lost.append(mutant)
                continue
            module = found[0].relative_to(root / "src" / "cndpm").as_posix()
            entries[i] = entries[i].replace(f"module = '{mutant.module}'", f"module = '{module}'", 1)
            n_moved += 1
        file.write_text("[[mutant]]\n".join([head, *entries]), encoding="utf-8")
    return n_moved, lost
