"""SVHN's cropped digits, published as MATLAB files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cndpm.datasets.idx import DamagedFileError

__all__ = ["read_svhn"]


def read_svhn(paths: Sequence[Path]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Reads ``X`` (32, 32, 3, n) and ``y`` (n, 1); returns images (n, 3, 32, 32) and labels (n,).

    The digit zero is published as label 10; it becomes 0, as in MNIST.
    """
    from scipy.io import loadmat  # here: it costs a tenth of a second that most runs need not pay

    (path,) = paths
    try:
        content = loadmat(path, variable_names=("X", "y"))
        images, labels = content["X"], content["y"].ravel().astype(np.int64)
    except Exception as error:  # scipy raises many kinds for a damaged file
        raise DamagedFileError(f"{path} is not a MATLAB file with X and y, or it is damaged: {error}") from error
    if images.ndim != 4 or images.dtype != np.uint8 or images.shape[3] != len(labels):
        raise DamagedFileError(
            f"{path} should hold X (H, W, 3, n) of bytes and y (n, 1); "
            f"it holds X {images.shape} of {images.dtype} and y {content['y'].shape}"
        )
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels % 10
