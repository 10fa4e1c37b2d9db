"""Reading datasets from the files their authors publish.

:func:`load_dataset` takes a name of the catalogue ("mnist"), an ``.npz`` file or a folder of images. Files are found
where torchvision leaves them, and in plain folders; nothing is downloaded unless
:func:`~cndpm.datasets.fetch_dataset` is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.datasets.catalogue import Entry, Format, Layout, catalogue, catalogue_entry
from cndpm.datasets.dataset import Dataset, Split
from cndpm.datasets.files import DamagedFileError, RefusedPickleError
from cndpm.datasets.idx import read_idx_pair, read_transposed_idx_pair
from cndpm.datasets.matlab import read_svhn
from cndpm.datasets.own import load_digits, load_image_folder, load_npz, own_path
from cndpm.datasets.pickles import read_cifar
from cndpm.errors import CNDPMError
from cndpm.extras import require_extra

__all__ = ["MissingDataError", "load_dataset", "resolve_data_dir"]

Arrays = tuple[NDArray[np.uint8], NDArray[np.int64]]

_READERS: dict[Format, Callable[[Sequence[Path]], Arrays]] = {
    "idx": read_idx_pair,
    "idx-transposed": read_transposed_idx_pair,
    "cifar": read_cifar,
    "mat": read_svhn,
}


class MissingDataError(CNDPMError, FileNotFoundError):
    """Reports a dataset that is not on disk: what is missing, where it was looked for and how to get it."""


def resolve_data_dir(data_dir: str | Path | None = None) -> Path:
    """Returns the folder of the datasets: `data_dir`, else ``CNDPM_DATA`` of the environment, else the user's cache."""
    chosen = data_dir or os.environ.get("CNDPM_DATA")
    if not chosen:
        require_extra("pooch", purpose="the cache folder of datasets, in place of data_dir or CNDPM_DATA,")
        import pooch

        chosen = pooch.os_cache("cndpm")
    return Path(chosen).expanduser()


def load_dataset(
    name: str, data_dir: str | Path | None = None, *, size: int | tuple[int, int] | None = None
) -> Dataset:
    """Reads a dataset from disk.

    Args:
        name: A name of `dataset_names()`; or the path, absolute or below `data_dir`, of an ``.npz`` file or of a
            folder of images (see :mod:`cndpm.datasets.own`).
        data_dir: Where datasets lie; see :func:`resolve_data_dir`.
        size: Height and width (or one number for both) to which the images of a folder are resized; None leaves them
            as they are, and then all must have one size.

    Raises:
        MissingDataError: The files are not there.
        UnknownNameError: There is no such dataset.
        DamagedFileError: A file does not hold what its format promises.
        RefusedPickleError: A pickle asks for more than arrays, or is damaged.
    """
    if name == "digits" and size is None:
        return load_digits()
    folder = resolve_data_dir(data_dir)
    height_and_width = (size, size) if isinstance(size, int) else size
    if height_and_width is not None and (len(height_and_width) != 2 or min(height_and_width) < 1):
        raise ValueError(f"size must be a height and a width of at least 1, or one number for both; got {size!r}")
    path = None if name in catalogue() else own_path(name, folder)
    if size is not None and (path is None or not path.is_dir()):
        raise ValueError(f"size resizes a folder of images; {name!r} is none. Leave size out, or name a folder.")
    if path is not None:
        return load_image_folder(path, height_and_width) if path.is_dir() else load_npz(path)
    if name not in catalogue() and (name.endswith(".npz") or Path(name).name != name):
        raise MissingDataError(
            f"there is no .npz file or folder of images at {Path(name)} or {folder / name}. Correct the path."
        )
    return read_entry(catalogue_entry(name), folder)


def read_entry(entry: Entry, data_dir: Path) -> Dataset:
    """Reads the files of a catalogue's entry."""
    found = entry.find(data_dir)
    if found is None:
        raise MissingDataError(_missing_message(entry, data_dir))
    layout, files = found
    try:
        train, test = (_read_split(layout, [files[n] for n in names], entry) for names in (layout.train, layout.test))
        if train.x.shape[1:] != test.x.shape[1:]:
            raise DamagedFileError(
                f"{files[layout.train[0]]} and {files[layout.test[0]]} should have samples of one shape; "
                f"they have {tuple(train.x.shape[1:])} and {tuple(test.x.shape[1:])}."
            )
    except (DamagedFileError, RefusedPickleError) as error:
        raise type(error)(f"{error} `cndpm data fetch {entry.name} --force` fetches this dataset anew.") from error
    return Dataset(entry.name, train, test, entry.classes)


def _read_split(layout: Layout, paths: list[Path], entry: Entry) -> Split:
    images, published = _READERS[layout.format](paths)
    x, y = torch.from_numpy(images), torch.from_numpy(published) - entry.label_offset
    if not 0 <= int(y.min()) <= int(y.max()) < len(entry.classes):
        raise DamagedFileError(
            f"{', '.join(map(str, paths))}: labels of {entry.name} should lie between {entry.label_offset} and "
            f"{entry.label_offset + len(entry.classes) - 1}; they run from {published.min()} to {published.max()}."
        )
    return Split(x, y)


def _missing_message(entry: Entry, data_dir: Path) -> str:
    layout = entry.layouts[0]
    places = dict.fromkeys(str(data_dir / folder) for layout in entry.layouts for folder in layout.folders)
    return (
        f"the dataset {entry.name} is not on disk. Missing: {', '.join((*layout.train, *layout.test))} "
        f"(or another published form of them). Looked in: {', '.join(places)}. "
        f"Run `cndpm data fetch {entry.name}`, or name the folder that has them with --data-dir or CNDPM_DATA."
    )
