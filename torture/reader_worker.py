"""Reads damaged files of datasets, one after the other; see :mod:`torture.readers`."""

from __future__ import annotations

import hashlib
import resource
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

from cndpm.datasets import DamagedFileError, MissingDataError, RefusedPickleError, load_dataset
from cndpm.datasets.dataset import Dataset
from torture.attempts import Outcome
from torture.formats import Format, formats, write_files
from torture.mutations import mutate

__all__ = ["attempts", "damage", "limit_memory", "read_one"]

_MEMORY = 2 << 30  # bytes above what is in use at the start
_OWN = (DamagedFileError, MissingDataError, RefusedPickleError)


def damage(seed: int, number: int) -> tuple[Format, bytes, bool, str]:
    """Returns which format attempt `number` is on, the damaged file, whether it was sealed, and what was done."""
    rng = Random(f"{seed} {number}")
    chosen = formats()[number % len(formats())]
    if chosen.seal is not None and rng.randrange(2):
        done, inner = mutate(*chosen.inner, rng)
        return chosen, chosen.seal(inner), True, f"{done}, below the checksum"
    done, content = mutate(chosen.files[chosen.target], chosen.other[chosen.target], rng)
    return chosen, content, False, done


def read_one(folder: Path, chosen: Format, content: bytes, sealed: bool) -> tuple[str, str]:
    """Reads a dataset with one damaged file.

    Args:
        folder: Holds the dataset's valid files.
        chosen: The format.
        content: The damaged file.
        sealed: Whether the damage lies below a checksum that is right.

    Returns:
        The outcome (refused, equal, changed, silent, unnamed or foreign) and what there is to say.
    """
    target = folder / chosen.target
    target.write_bytes(content)
    try:
        read = _digest(load_dataset(chosen.dataset, folder))
    except _OWN as error:
        return ("refused" if target.name in str(error) else "unnamed"), str(error)
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"
    finally:
        target.write_bytes(chosen.files[chosen.target])
    if read in _originals(folder, chosen):
        return "equal", ""
    is_legal = not chosen.is_checksummed or sealed or chosen.is_sealed(content)
    return ("changed" if is_legal else "silent"), ""


_ORIGINALS: dict[str, set[str]] = {}


def _originals(folder: Path, chosen: Format) -> set[str]:
    """Returns digests of the dataset as it was, and with the other valid file, which a splice may amount to."""
    if chosen.name not in _ORIGINALS:
        found = set()
        for files in (chosen.other, chosen.files):
            (folder / chosen.target).write_bytes(files[chosen.target])
            found.add(_digest(load_dataset(chosen.dataset, folder)))
        _ORIGINALS[chosen.name] = found
    return _ORIGINALS[chosen.name]


def _digest(dataset: Dataset) -> str:
    digest = hashlib.sha256(repr(dataset.classes).encode())
    for split in (dataset.train, dataset.test):
        for tensor in (split.x, split.y):
            digest.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def limit_memory(n_bytes: int = _MEMORY) -> None:
    """Lets this process have no more memory than a file of the attack may need, above what is in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + n_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:
    """Yields the outcomes of the attempts from `first` to `end`, with files below `folder`."""
    warnings.simplefilter("error")
    limit_memory()
    for chosen in formats():
        write_files(chosen.files, folder / chosen.name)
    for number in range(first, end):
        chosen, content, sealed, done = damage(seed, number)
        outcome, detail = read_one(folder / chosen.name, chosen, content, sealed)
        yield Outcome(number, outcome, f"{done}: {detail!r}")
