"""Datasets that are not in the catalogue: scikit-learn's digits, ``.npz`` files and folders of images.

An ``.npz`` file holds ``x_train``, ``y_train``, ``x_test``, ``y_test``, or ``x`` and ``y``. Images are bytes of shape
(n, H, W), (n, H, W, C) or (n, C, H, W) with one or three channels; rows of features are numbers of shape (n, d), taken
as they are. A folder of images holds ``train/CLASS/*`` and ``test/CLASS/*``, or ``CLASS/*``; all images have one size.
Where no test set is given, every fifth sample of each class becomes it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.datasets.dataset import Dataset, Split
from cndpm.datasets.idx import DamagedFileError
from cndpm.extras import require_extra

__all__ = ["load_digits", "load_image_folder", "load_npz", "load_own", "own_path"]

_IMAGES = {".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".webp"}
_HELD_OUT = 5
_PARTS = ("train", "test")


def own_path(name: str, data_dir: Path) -> Path | None:
    """The ``.npz`` file or folder that `name` means, if there is one: as it is, or below `data_dir`."""
    for path in (Path(name).expanduser(), data_dir / name):
        if path.is_dir() or (path.is_file() and path.suffix == ".npz"):
            return path
    return None


def load_own(path: Path) -> Dataset:
    """Reads an ``.npz`` file or a folder of images."""
    return load_image_folder(path) if path.is_dir() else load_npz(path)


def load_digits() -> Dataset:
    """The 1,797 digits of scikit-learn, 8 x 8, their 17 grey levels spread over the bytes 0 to 255."""
    from sklearn.datasets import load_digits as load_bundle

    bundle = load_bundle()
    x = np.rint(bundle.images * (255 / 16)).astype(np.uint8)[:, None]
    train, test = _hold_out(torch.from_numpy(x), torch.from_numpy(bundle.target.astype(np.int64)))
    return Dataset("digits", train, test, tuple(map(str, range(10))))


def load_npz(path: Path) -> Dataset:
    """Reads an ``.npz`` file; labels are numbered in sorted order, and their values become the classes' names."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except Exception as error:  # numpy raises many kinds for a damaged or pickled file
        raise DamagedFileError(f"{path} is not an .npz file of plain arrays: {error}") from error
    if {"x_train", "y_train", "x_test", "y_test"} <= arrays.keys():
        values, y = np.unique(np.concatenate([arrays["y_train"], arrays["y_test"]]), return_inverse=True)
        labels = np.split(y.reshape(-1).astype(np.int64), [len(arrays["y_train"])])
        train, test = (
            Split(_as_samples(arrays[f"x_{part}"], path), torch.from_numpy(y))
            for part, y in zip(_PARTS, labels, strict=True)
        )
    elif {"x", "y"} <= arrays.keys():
        values, y = np.unique(arrays["y"], return_inverse=True)
        train, test = _hold_out(_as_samples(arrays["x"], path), torch.from_numpy(y.reshape(-1).astype(np.int64)))
    else:
        raise DamagedFileError(f"{path} should hold x and y, or x_train, y_train, x_test, y_test; has {sorted(arrays)}")
    return Dataset(path.stem, train, test, tuple(map(str, values.tolist())))


def load_image_folder(path: Path) -> Dataset:
    """Reads a folder of images, one folder per class; classes are numbered in the order of their names."""
    divided = all((path / part).is_dir() for part in _PARTS)
    roots = [path / part for part in _PARTS] if divided else [path]
    classes = tuple(sorted({folder.name for root in roots for folder in root.iterdir() if folder.is_dir()}))
    if not classes:
        raise DamagedFileError(f"{path} should hold a folder of images per class, or train and test with such folders")
    parts = [_read_images(root, classes) for root in roots]
    if divided:
        return Dataset(path.name, Split(*parts[0]), Split(*parts[1]), classes)
    return Dataset(path.name, *_hold_out(*parts[0]), classes)


def _read_images(root: Path, classes: tuple[str, ...]) -> tuple[Tensor, Tensor]:
    require_extra("PIL", purpose="a folder of images")
    from PIL import Image

    arrays: list[NDArray[np.uint8]] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        for file in sorted(f for f in (root / name).glob("*") if f.suffix.lower() in _IMAGES):
            with Image.open(file) as image:
                array = np.asarray(image.convert("L" if image.mode in ("1", "L", "I;16") else "RGB"))
            if arrays and array.shape != arrays[0].shape:
                raise DamagedFileError(f"{file} is {array.shape}, others are {arrays[0].shape}; images need one size")
            arrays.append(array)
            labels.append(label)
    if not arrays:
        raise DamagedFileError(f"{root} holds no images; looked for {' '.join(sorted(_IMAGES))} in a folder per class")
    return _as_samples(np.stack(arrays), root), torch.tensor(labels)


def _as_samples(x: NDArray[np.generic], path: Path) -> Tensor:
    """Brings images to (n, C, H, W) uint8 and rows of features to (n, d) float32."""
    if x.ndim == 2:
        return torch.from_numpy(x.astype(np.float32))
    if x.dtype == np.uint8 and x.ndim == 3:
        return torch.from_numpy(x[:, None].copy())
    if x.dtype == np.uint8 and x.ndim == 4 and x.shape[3] in (1, 3):
        return torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    if x.dtype == np.uint8 and x.ndim == 4 and x.shape[1] in (1, 3):
        return torch.from_numpy(x.copy())
    raise DamagedFileError(f"{path} should hold features (n, d), or images of bytes; it holds {x.shape} of {x.dtype}")


def _hold_out(x: Tensor, y: Tensor) -> tuple[Split, Split]:
    """Divides samples into a training and a test set: every fifth sample of each class is the latter's."""
    test = torch.zeros(len(y), dtype=torch.bool)
    for label in set(y.tolist()):
        test[torch.nonzero(y == label).flatten()[_HELD_OUT - 1 :: _HELD_OUT]] = True
    return Split(x[~test], y[~test]), Split(x[test], y[test])
