"""SVHN's cropped digits, published as MATLAB files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.files import DamagedFileError
from cndpm.datasets.matlab import read_matlab


def read_svhn(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads ``X`` (H, W, 3, n) and ``y`` (n, 1) from one file; returns images (n, 3, H, W) and labels (n,).

    The digit zero is published as label 10; it becomes 0, as in MNIST.
    """
    (path,) = paths
    content = read_matlab(path, ("X", "y"))
    if content.keys() != {"X", "y"}:
        raise DamagedFileError(f"{path} should hold X and y; of these it has {sorted(content)}. Get the file anew.")
    images, labels = content["X"], content["y"]
    if images.ndim != 4 or images.shape[2] != 3 or images.dtype != np.uint8 or labels.shape != (images.shape[3], 1):
        raise DamagedFileError(
            f"{path} should hold X (H, W, 3, n) of bytes and y (n, 1); "
            f"it holds X {images.shape} of {images.dtype} and y {labels.shape}. Get the file anew."
        )
    digits = labels.ravel()
    if not np.isin(digits, np.arange(1, 11)).all():  # also before % 10 would make digits of 11 or 2.5
        raise DamagedFileError(f"{path} should have labels 1 to 10 alone, 10 for the digit zero. Get the file anew.")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)).astype(np.uint8), digits.astype(np.int64) % 10
