"""Tells which datasets are on disk, and whether they are what was published."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cndpm.datasets.catalogue import catalogue, catalogue_entry
from cndpm.datasets.dataset import Split
from cndpm.datasets.files import DamagedFileError, RefusedPickleError
from cndpm.datasets.loading import load_dataset, resolve_data_dir

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
        checksums: Whether its samples can be checked by sha256.
    """

    name: str
    summary: str
    present: bool
    location: Path | None
    n_bytes: int
    checksums: bool


@dataclass(frozen=True)
class Check:
    """The outcome of one comparison with what was published.

    Attributes:
        what: What was compared.
        ok: Whether it is as published.
        found: What was found.
    """

    what: str
    ok: bool
    found: str


def dataset_status(data_dir: str | Path | None = None) -> tuple[DatasetStatus, ...]:
    """Returns the presence of every known dataset in `data_dir`; see :func:`~cndpm.datasets.resolve_data_dir`."""
    folder = resolve_data_dir(data_dir)
    return tuple(_status(name, folder) for name in catalogue())


def _status(name: str, data_dir: Path) -> DatasetStatus:
    entry = catalogue_entry(name)
    found = entry.find(data_dir)
    paths = [] if found is None else list(found[1].values())
    is_there, n_bytes = bool(paths) or not entry.layouts, sum(path.stat().st_size for path in paths)
    return DatasetStatus(
        name, entry.summary, is_there, paths[0].parent if paths else None, n_bytes, bool(entry.samples)
    )


def verify_dataset(name: str, data_dir: str | Path | None = None) -> tuple[Check, ...]:
    """Reads a dataset and compares it with what was published: checksums of samples where known, and their numbers.

    Args:
        name: A name of :func:`~cndpm.datasets.dataset_names`.
        data_dir: Where datasets lie; see :func:`~cndpm.datasets.resolve_data_dir`.

    Raises:
        MissingDataError: The dataset is not on disk.
    """
    entry = catalogue_entry(name)
    try:
        dataset = load_dataset(name, resolve_data_dir(data_dir))
    except (DamagedFileError, RefusedPickleError) as error:
        return (Check("readable", False, str(error)),)
    parts = (("training", dataset.train, entry.n_train), ("test", dataset.test, entry.n_test))
    checks = [Check(f"{part} samples", len(s) == n, f"{len(s)} of {n} published") for part, s, n in parts]
    n_present, n_classes = len(set(dataset.train.y.tolist())), len(entry.classes)
    checks.append(Check("classes in the training set", n_present == n_classes, f"{n_present} of {n_classes}"))
    for part, published in entry.samples.items():
        found = sha256_of({"train": dataset.train, "test": dataset.test}[part])
        said = found if found == published else f"{found}, published is {published}"
        checks.append(Check(f"sha256 of the {part} set", found == published, said))
    return tuple(checks)


def sha256_of(split: Split) -> str:
    """Returns the sha256 of a split: the bytes of `x` in their order, then of `y` as little-endian int64."""
    digest = hashlib.sha256(np.ascontiguousarray(split.x.numpy()).data)
    digest.update(np.ascontiguousarray(split.y.numpy(), "<i8").data)
    return digest.hexdigest()
