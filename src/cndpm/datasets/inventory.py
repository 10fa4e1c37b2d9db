"""What is on disk, and whether it is what was published."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cndpm.datasets.catalogue import catalogue, catalogue_entry
from cndpm.datasets.idx import DamagedFileError, read_bytes
from cndpm.datasets.loading import load_dataset, resolve_data_dir
from cndpm.datasets.pickles import RefusedPickleError

__all__ = ["Check", "DatasetStatus", "dataset_status", "verify_dataset"]


@dataclass(frozen=True)
class DatasetStatus:
    """One dataset's presence.

    Attributes:
        name: Its name.
        summary: One line that says what it is.
        present: Whether all its files are on disk.
        location: The folder that has them; None where absent, or where no files are needed.
        n_bytes: Their size on disk.
        checksums: Whether the content of its files can be checked by sha256.
    """

    name: str
    summary: str
    present: bool
    location: Path | None
    n_bytes: int
    checksums: bool


@dataclass(frozen=True)
class Check:
    """One thing that was verified: what, whether it holds, and what was found."""

    what: str
    ok: bool
    found: str


def dataset_status(data_dir: str | Path | None = None) -> tuple[DatasetStatus, ...]:
    """The presence of every known dataset."""
    folder = resolve_data_dir(data_dir)
    return tuple(_status(name, folder) for name in catalogue())


def _status(name: str, data_dir: Path) -> DatasetStatus:
    entry = catalogue_entry(name)
    if not entry.layouts:
        return DatasetStatus(name, entry.summary, True, None, 0, False)
    found = entry.find(data_dir)
    if found is None:
        return DatasetStatus(name, entry.summary, False, None, 0, any(layout.content for layout in entry.layouts))
    layout, files = found
    paths = list(files.values())
    n_bytes = sum(path.stat().st_size for path in paths)
    return DatasetStatus(name, entry.summary, True, paths[0].parent, n_bytes, bool(layout.content))


def verify_dataset(name: str, data_dir: str | Path | None = None) -> tuple[Check, ...]:
    """Reads a dataset and compares it with what was published: checksums where known, else numbers of samples.

    Raises:
        MissingDataError: The dataset is not on disk.
    """
    folder = resolve_data_dir(data_dir)
    checks = []
    if found := catalogue_entry(name).find(folder):
        layout, files = found
        checks = [_check_content(files[file], sha256) for file, sha256 in layout.content.items()]
    return (*checks, *_check_numbers(name, folder))


def _check_content(path: Path, expected: str) -> Check:
    what = f"sha256 of the content of {path.name}"
    try:
        actual = hashlib.sha256(read_bytes(path)).hexdigest()
    except DamagedFileError as error:
        return Check(what, False, str(error))
    return Check(what, actual == expected, actual if actual == expected else f"{actual}, published is {expected}")


def _check_numbers(name: str, data_dir: Path) -> list[Check]:
    entry = catalogue_entry(name)
    try:
        dataset = load_dataset(name, data_dir)
    except (DamagedFileError, RefusedPickleError) as error:
        return [Check("readable", False, str(error))]
    parts = (("training", dataset.train, entry.n_train), ("test", dataset.test, entry.n_test))
    checks = [Check(f"{part} samples", len(s) == n, f"{len(s)} of {n} published") for part, s, n in parts]
    n_present = len(set(dataset.train.y.tolist()))
    found = f"{n_present} of {len(entry.classes)}"
    return [*checks, Check("classes in the training set", n_present == len(entry.classes), found)]
