"""Reading datasets from the files their authors publish.

:func:`load_dataset` takes a name of the catalogue ("mnist"), an ``.npz`` file or a folder of images. Files are found
where torchvision leaves them, and in plain folders; nothing is downloaded unless
:func:`~cndpm.streams.fetch_dataset` is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.datasets.catalogue import Entry, Format, catalogue, catalogue_entry
from cndpm.datasets.cifar import read_cifar10_binary, read_cifar100_binary, read_cifar_python
from cndpm.datasets.dataset import Dataset, Split
from cndpm.datasets.idx import DamagedFileError, read_idx_pair, read_transposed_idx_pair
from cndpm.datasets.own import load_digits, load_own, own_path
from cndpm.datasets.svhn import read_svhn
from cndpm.extras import require_extra

__all__ = ["MissingDataError", "dataset_names", "load_dataset", "resolve_data_dir"]

Arrays = tuple[NDArray[np.uint8], NDArray[np.int64]]

_READERS: dict[Format, Callable[[Sequence[Path]], Arrays]] = {
    "idx": read_idx_pair,
    "idx-transposed": read_transposed_idx_pair,
    "cifar-python": read_cifar_python,
    "cifar10-binary": read_cifar10_binary,
    "cifar100-binary": read_cifar100_binary,
    "mat": read_svhn,
}


class MissingDataError(FileNotFoundError):
    """A dataset is not on disk; the message says what is missing, where it was looked for and how to get it."""


def resolve_data_dir(data_dir: str | Path | None = None) -> Path:
    """The folder of the datasets: `data_dir`, else the environment's ``CNDPM_DATA``, else the user's cache folder."""
    chosen = data_dir or os.environ.get("CNDPM_DATA")
    if not chosen:
        require_extra("pooch", purpose="the cache folder of datasets, in place of data_dir or CNDPM_DATA,")
        import pooch

        chosen = pooch.os_cache("cndpm")
    return Path(chosen).expanduser()


def dataset_names() -> tuple[str, ...]:
    """The names that :func:`load_dataset` knows."""
    return tuple(catalogue())


def load_dataset(name: str, data_dir: str | Path | None = None) -> Dataset:
    """Reads a dataset from disk.

    Args:
        name: A name of :func:`dataset_names`; or the path, absolute or below `data_dir`, of an ``.npz`` file or of a
            folder of images (see :mod:`cndpm.datasets.own`).
        data_dir: Where datasets lie; see :func:`resolve_data_dir`.

    Raises:
        MissingDataError: The files are not there.
        UnknownNameError: There is no such dataset.
        DamagedFileError: A file does not hold what its format promises.
    """
    if name == "digits":
        return load_digits()
    folder = resolve_data_dir(data_dir)
    if name not in catalogue() and (path := own_path(name, folder)):
        return load_own(path)
    if name not in catalogue() and (name.endswith(".npz") or Path(name).name != name):
        raise MissingDataError(f"there is no .npz file or folder of images at {Path(name)} or {folder / name}")
    entry = catalogue_entry(name)
    found = entry.find(folder)
    if found is None:
        raise MissingDataError(_missing_message(entry, folder))
    layout, files = found
    read = _READERS[layout.format]
    train, test = (_to_split(read([files[n] for n in names]), entry) for names in (layout.train, layout.test))
    return Dataset(name, train, test, entry.classes)


def _to_split(arrays: Arrays, entry: Entry) -> Split:
    x, y = torch.from_numpy(arrays[0]), torch.from_numpy(arrays[1]) - entry.label_offset
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < len(entry.classes):
        raise DamagedFileError(
            f"{entry.name}: labels should lie between {entry.label_offset} and "
            f"{entry.label_offset + len(entry.classes) - 1}; the file holds {arrays[1].min()} to {arrays[1].max()}"
        )
    return Split(x, y)


def _missing_message(entry: Entry, data_dir: Path) -> str:
    layout = entry.layouts[0]
    places = dict.fromkeys(str(place) for layout in entry.layouts for place in layout.places(data_dir))
    return (
        f"the dataset {entry.name} is not on disk. Missing: {', '.join((*layout.train, *layout.test))} "
        f"(or another published form of them). Looked in: {', '.join(places)}. "
        f"Run `cndpm data fetch {entry.name}`, or name the folder that has them with --data-dir or CNDPM_DATA."
    )
