"""Images from files, by pillow, all of one size and one number of channels.

Files are looked at twice. First their headers: size, mode, one frame, checksums where the format has them (PNG), and
the memory that all of them together will take. Only then are pixels decoded. Formats are limited to common ones by
content, whatever a file's name says: pillow knows formats that start other programs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cndpm.datasets.files import DamagedFileError, MixedSizesError, check_memory

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".webp")
"""Endings of the files that are looked for in folders of images."""

_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "WEBP")
_GREY = ("1", "L", "LA", "La")
_DEEP_GREY = ("I", "I;16", "I;16B", "I;16L", "I;16N")
_COLOUR = ("P", "PA", "RGB", "RGBA", "RGBX", "RGBa", "CMYK", "YCbCr")
_MOST_PIXELS = 1 << 26  # below the number at which pillow warns of bombs


class _Header(NamedTuple):
    height: int
    width: int
    is_grey: bool


def read_images(files: Sequence[Path], size: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    """Reads images of one size, in the order of `files`: grey (n, H, W) if all of them are, else colour (n, H, W, 3).

    Sixteen bits become eight, palettes become colours, and transparency is dropped. DamagedFileError is raised for what
    is no image of a known format, damaged, animated or too large.
    """
    headers = [_inspect(file) for file in files]
    height, width = size or _common_size(files, headers)
    is_grey = all(header.is_grey for header in headers)
    shape = (len(files), height, width) if is_grey else (len(files), height, width, 3)
    check_memory(files[0].parent, int(np.prod(shape, dtype=object)))
    images = np.empty(shape, np.uint8)
    for i, file in enumerate(files):
        images[i] = _decode(file, is_grey, (width, height))
    return images


def _common_size(files: Sequence[Path], headers: Sequence[_Header]) -> tuple[int, int]:
    """Returns the height and width that all images have."""
    first = headers[0]
    for file, header in zip(files, headers, strict=True):
        if header[:2] != first[:2]:
            raise MixedSizesError(
                f"images need one size (height x width): {files[0]} is {first.height} x {first.width}, {file} is "
                f"{header.height} x {header.width}. Give a size, as in load_dataset(..., size={first[:2]}), in a "
                f"scenario's file `transform = {{ size = {first.height} }}`; or resize the files."
            )
    return first.height, first.width


def _inspect(file: Path) -> _Header:
    """Checks everything about an image that can be known without decoding it."""
    with _opened(file) as image:
        width, height = image.size
        if not 1 <= width * height <= _MOST_PIXELS:
            raise ValueError(f"it has {height} x {width} pixels, 1 to {_MOST_PIXELS} are allowed")
        if image.mode not in (*_GREY, *_DEEP_GREY, *_COLOUR):
            raise ValueError(f"its mode is {image.mode}, allowed are grey and colour of 8 or 16 bits")
        if getattr(image, "is_animated", False):
            raise ValueError("it is animated, one frame per file is allowed")
        header = _Header(height, width, image.mode in (*_GREY, *_DEEP_GREY))
        image.verify()  # compares a PNG's checksums, which decoding does not
    return header


def _decode(file: Path, is_grey: bool, size: tuple[int, int]) -> NDArray[np.uint8]:
    """Returns the pixels of one image, (H, W) or (H, W, 3)."""
    with _opened(file) as image:
        if image.mode in _DEEP_GREY:  # pillow would cut values above 255 off
            deep = np.clip(np.asarray(image, np.int64), 0, 65535)
            eight: Image.Image = Image.fromarray(((deep + 128) // 257).astype(np.uint8))
        else:
            eight = image
        converted = eight.convert("L" if is_grey else "RGB")
        return np.asarray(converted if converted.size == size else converted.resize(size, Image.Resampling.BILINEAR))


@contextmanager
def _opened(file: Path) -> Iterator[Image.Image]:
    """Opens an image; whatever pillow raises, or would warn of, becomes `DamagedFileError`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=_FORMATS) as image:
                yield image
    except Exception as error:  # pillow raises many kinds for a damaged image
        raise DamagedFileError(
            f"{file} is not an image that can be read: {error}. Allowed are {', '.join(_FORMATS)}; "
            "replace or remove the file."
        ) from error
