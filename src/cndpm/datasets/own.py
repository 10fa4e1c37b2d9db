"""Datasets that are not in the catalogue: scikit-learn's digits, ``.npz`` files and folders of images.

An ``.npz`` file holds ``x_train``, ``y_train``, ``x_test``, ``y_test``, or ``x`` and ``y``. Images are bytes of shape
(n, H, W), (n, H, W, C) or (n, C, H, W) with one or three channels; rows of features are finite numbers of shape
(n, d), taken as they are. A folder of images holds ``train/CLASS/*`` and ``test/CLASS/*``, or ``CLASS/*``; all images
have one size, or are resized on request. Where no test set is given, every fifth sample of each class becomes it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.datasets.dataset import Dataset, Split
from cndpm.datasets.files import DamagedFileError
from cndpm.datasets.npz import read_npz
from cndpm.extras import require_extra

_HELD_OUT = 5
_PARTS = ("train", "test")
_DIVIDED = ("x_train", "y_train", "x_test", "y_test")


def own_path(name: str, data_dir: Path) -> Path | None:
    """Returns the ``.npz`` file or folder that `name` means, as it is or below `data_dir`; None if there is none."""
    with suppress(OSError, RuntimeError):  # too long, in a folder that may not be read, or of an unknown user
        for path in (Path(name).expanduser(), data_dir / name):
            if path.is_dir() or (path.is_file() and path.suffix == ".npz"):
                return path
    return None


def load_digits() -> Dataset:
    """Returns the 1,797 digits of scikit-learn, 8 x 8, their 17 grey levels spread over the bytes 0 to 255."""
    from sklearn.datasets import load_digits as load_bundle

    bundle = load_bundle()
    x = np.rint(bundle.images * (255 / 16)).astype(np.uint8)[:, None]
    train, test = _hold_out(torch.from_numpy(x), torch.from_numpy(bundle.target.astype(np.int64)))
    return Dataset("digits", train, test, tuple(map(str, range(10))))


def load_npz(path: Path) -> Dataset:
    """Reads an ``.npz`` file; labels are numbered in sorted order, and their values become the classes' names."""
    arrays = read_npz(path, (_DIVIDED, ("x", "y")))
    suffixes = [f"_{part}" for part in _PARTS] if "x_train" in arrays else [""]
    xs = [_as_samples(arrays[f"x{suffix}"], path) for suffix in suffixes]
    ys = [_as_labels(arrays[f"y{suffix}"], len(x), path) for suffix, x in zip(suffixes, xs, strict=True)]
    if len({x.shape[1:] for x in xs}) > 1 or len({y.dtype.kind in "US" for y in ys}) > 1:
        raise DamagedFileError(
            f"{path} should have one kind of samples and labels in x_train, y_train and in x_test, y_test; it has "
            f"{[tuple(x.shape) for x in xs]} with labels of {[str(y.dtype) for y in ys]}. Write them alike."
        )
    values, numbers = np.unique(np.concatenate(ys), return_inverse=True)
    labels = np.split(numbers.reshape(-1).astype(np.int64), [len(ys[0])])
    splits = [Split(x, torch.from_numpy(y)) for x, y in zip(xs, labels, strict=False)]
    train, test = splits if len(splits) == 2 else _hold_out(splits[0].x, splits[0].y)
    return Dataset(path.stem, train, test, _as_names(values, path))


def load_image_folder(path: Path, size: tuple[int, int] | None = None) -> Dataset:
    """Reads a folder of images, one folder per class; classes are numbered in the order of their names."""
    require_extra("PIL", purpose="a folder of images")
    from cndpm.datasets.images import read_images  # here: pillow is not needed by other datasets

    divided = all((path / part).is_dir() for part in _PARTS)
    roots = [path / part for part in _PARTS] if divided else [path]
    try:
        classes = tuple(sorted({folder.name for root in roots for folder in root.iterdir() if folder.is_dir()}))
        found = [_find_images(root, classes) for root in roots]
    except OSError as error:
        raise DamagedFileError(f"{path} cannot be read: {error}. Make it a folder that may be read.") from error
    x = _as_samples(read_images([file for part in found for file, _ in part], size), path)
    y = torch.tensor([label for part in found for _, label in part])
    if divided:
        n = len(found[0])
        return Dataset(path.name, Split(x[:n], y[:n]), Split(x[n:], y[n:]), classes)
    return Dataset(path.name, *_hold_out(x, y), classes)


def _find_images(root: Path, classes: tuple[str, ...]) -> list[tuple[Path, int]]:
    """Returns every image below `root` with the number of its class, class by class in the order of names."""
    from cndpm.datasets.images import SUFFIXES

    found = [
        (file, label)
        for label, name in enumerate(classes)
        for file in sorted(f for f in (root / name).glob("*") if f.suffix.lower() in SUFFIXES)
    ]
    if not found:
        raise DamagedFileError(
            f"{root} holds no images; looked for {' '.join(SUFFIXES)} in a folder per class. "
            "Put the images into folders named after their classes, perhaps below train and test."
        )
    return found


def _as_samples(x: NDArray[Any], path: Path) -> Tensor:
    """Brings images to (n, C, H, W) uint8 and rows of features to (n, d) float32."""
    if x.size and x.ndim == 2 and x.dtype.kind in "biuf":
        return _as_features(x, path)
    if x.size and x.dtype == np.uint8 and x.ndim == 3:
        return torch.from_numpy(x[:, None].copy())
    if x.size and x.dtype == np.uint8 and x.ndim == 4 and x.shape[3] in (1, 3):
        return torch.from_numpy(x.transpose(0, 3, 1, 2).copy(order="C"))
    if x.size and x.dtype == np.uint8 and x.ndim == 4 and x.shape[1] in (1, 3):
        return torch.from_numpy(x.copy(order="C"))
    raise DamagedFileError(
        f"{path} should hold features (n, d), or images of bytes (n, H, W), (n, H, W, C) or (n, C, H, W), C 1 or 3, "
        f"at least one; it holds {x.shape} of {x.dtype}. Change shape or type before saving."
    )


def _as_features(x: NDArray[Any], path: Path) -> Tensor:
    with np.errstate(over="ignore", invalid="ignore"):  # infinite and NaN are refused below
        rows = x.astype(np.float32, order="C")
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise DamagedFileError(
            f"{path} should hold finite features within 32-bit floats; row {row} has {x[row, column]} in column "
            f"{column}. Fill or drop missing values, and scale large ones."
        )
    return torch.from_numpy(rows)


def _as_labels(y: NDArray[Any], n: int, path: Path) -> NDArray[Any]:
    """Checks labels, (n,) or (n, 1); returns them as (n,)."""
    is_known = y.dtype.kind in "biuUS" or (y.dtype.kind == "f" and bool(np.isfinite(y).all()))
    if y.shape not in ((n,), (n, 1)) or not is_known:
        raise DamagedFileError(
            f"{path} should hold one label per sample, ({n},), as finite numbers or text; it holds {y.shape} of "
            f"{y.dtype}. Write one label for each of the samples."
        )
    return y.reshape(-1)


def _as_names(values: NDArray[Any], path: Path) -> tuple[str, ...]:
    """Returns the names of classes; text must consist of characters that exist."""
    try:
        if values.dtype.kind == "U" and values.astype("=U").view(np.uint32).max() > sys.maxunicode:
            raise ValueError("a character is beyond the last one of Unicode")  # numpy would end in a SystemError
        names = tuple(str(value) for value in (np.char.decode(values, "utf8") if values.dtype.kind == "S" else values))
        "".join(names).encode()
    except ValueError as error:
        raise DamagedFileError(f"{path} has labels that are no text: {error}. Write numbers, or Unicode.") from error
    return names


def _hold_out(x: Tensor, y: Tensor) -> tuple[Split, Split]:
    """Divides samples into a training and a test set: every fifth sample of each class is the latter's."""
    order = torch.argsort(y, stable=True)
    n_before = torch.bincount(y).cumsum(0) - torch.bincount(y)  # samples of smaller labels, (n_classes,)
    rank = torch.empty_like(y)
    rank[order] = torch.arange(len(y)) - n_before[y[order]]  # which of its class a sample is
    test = rank % _HELD_OUT == _HELD_OUT - 1
    return Split(x[~test], y[~test]), Split(x[test], y[test])
