"""Small valid datasets in every format that the package reads, and which of their files to damage."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["Format", "formats", "write_files"]

Files = dict[str, bytes]


@dataclass(frozen=True)
class Format:
    """A dataset of a few files, one of which is damaged.

    Attributes:
        name: Its name in reports.
        dataset: The name under which :func:`cndpm.datasets.load_dataset` reads it.
        target: The file that is damaged.
        files: The files of a valid dataset by their paths.
        other: The same files of another valid dataset.
        is_checksummed: Whether the format carries a checksum of its samples, so that no change may pass unseen.
        seal: Makes a file of what lies below a checksum, with that checksum right; the second attack on such formats.
        inner: Below the checksum: content of the target and of its other version.
        is_sealed: Tells of a damaged file whether all checksums fit nevertheless, as after a splice between two parts
            that have a checksum each.
    """

    name: str
    dataset: str
    target: str
    files: Files
    other: Files
    is_checksummed: bool = False
    seal: Callable[[bytes], bytes] | None = None
    inner: tuple[bytes, bytes] = (b"", b"")
    is_sealed: Callable[[bytes], bool] = lambda _: False


@cache
def formats() -> tuple[Format, ...]:
    """Returns every format, always in the same order and with the same bytes."""
    return (*_idx(), *_cifar(), *_svhn(), *_npz(), *_images())


def _pixels(seed: int, *shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(256, size=shape, dtype=np.uint8)


def _idx() -> list[Format]:
    plain, other = (_mnist(seed) for seed in (0, 1))
    first, second = [{f"{name}.gz": _gzip(c) for name, c in files.items()} for files in (plain, other)]
    images, labels = "mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte"
    return [
        Format("idx images", "mnist", images, plain, other),
        Format("idx labels", "mnist", labels, plain, other),
        *(
            Format(f"idx.gz {kind}", "mnist", f"{name}.gz", first, second, True, _gzip, (plain[name], other[name]))
            for kind, name in (("images", images), ("labels", labels))
        ),
    ]


def _mnist(seed: int) -> Files:
    files = {}
    for part, n in (("train", 6), ("t10k", 2)):
        for kind, array in (
            ("images-idx3", _pixels(seed, n, 7, 5)),
            ("labels-idx1", (np.arange(n) + seed).astype(np.uint8)),
        ):
            header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            files[f"mnist/{part}-{kind}-ubyte"] = header + array.tobytes()
    return files


def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _cifar() -> list[Format]:
    ten, hundred = [_cifar10_python(s) for s in (0, 1)], [_cifar100_python(s) for s in (0, 1)]
    return [
        Format("CIFAR10 pickle", "cifar10", "cifar-10-batches-py/data_batch_2", ten[0], ten[1]),
        Format("CIFAR100 pickle", "cifar100", "cifar-100-python/train", hundred[0], hundred[1]),
    ]


def _batch(seed: int, **labels: list[int]) -> dict[bytes, Any]:
    n = len(next(iter(labels.values())))
    names = [f"{i}.png".encode() for i in range(n)]
    return {b"data": _pixels(seed, n, 3072), b"filenames": names} | {k.encode(): v for k, v in labels.items()}


def _cifar10_python(seed: int) -> Files:
    names = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
    return {
        f"cifar-10-batches-py/{name}": pickle.dumps(_batch(seed + i, labels=[i, (i + seed) % 10]), protocol=2)
        for i, name in enumerate(names)
    }


def _cifar100_python(seed: int) -> Files:
    batch = _batch(seed, fine_labels=[7 + seed, 99], coarse_labels=[1, 19])
    return {f"cifar-100-python/{part}": pickle.dumps(batch, protocol=3 + seed) for part in ("train", "test")}


def _svhn() -> list[Format]:
    plain, deflated = [_svhn_files(s, False) for s in (0, 1)], [_svhn_files(s, True) for s in (0, 1)]
    target = "svhn/train_32x32.mat"
    header, end = plain[0][target][:128], 136 + int.from_bytes(plain[0][target][132:136], "little")
    images = (plain[0][target][128:end], plain[1][target][128:end])

    def seal(matrix: bytes) -> bytes:
        packed = zlib.compress(matrix)
        return header + struct.pack("<II", 15, len(packed)) + packed + plain[0][target][end:]

    return [
        Format("MATLAB plain", "svhn", target, plain[0], plain[1]),
        Format("MATLAB deflated", "svhn", target, deflated[0], deflated[1], True, seal, images),
    ]


def _svhn_files(seed: int, deflated: bool) -> Files:
    from scipy.io import savemat

    files = {}
    for part, n in (("train", 5), ("test", 3)):
        buffer = io.BytesIO()
        arrays = {"X": _pixels(seed, 6, 6, 3, n), "y": (np.arange(n) % 10 + 1 + seed).astype(np.uint8)[:, None]}
        savemat(buffer, arrays, do_compression=deflated)
        created = buffer.getvalue()
        files[f"svhn/{part}_32x32.mat"] = created[:20].ljust(116) + created[116:]  # without the time of writing
    return files


def _npz() -> list[Format]:
    images: list[dict[str, NDArray[Any]]]
    images = [{"x": _pixels(s, 10, 4, 4), "y": np.arange(10) % 2 + s} for s in (0, 1)]
    rows: list[dict[str, NDArray[Any]]] = [
        {
            "x_train": np.random.default_rng(s).normal(size=(6, 3)),
            "y_train": np.array(["cat", "dog"] * 3),
            "x_test": np.random.default_rng(s).normal(size=(2, 3)),
            "y_test": np.array(["dog", "cat"]),
        }
        for s in (0, 1)
    ]
    return [
        _npz_format("npz images", images, "x", zipfile.ZIP_STORED),
        _npz_format("npz labels", images, "y", zipfile.ZIP_DEFLATED),
        _npz_format("npz features", rows, "x_train", zipfile.ZIP_DEFLATED),
        _npz_format("npz text labels", rows, "y_train", zipfile.ZIP_STORED),
    ]


def _npz_format(name: str, arrays: list[dict[str, NDArray[Any]]], damaged: str, method: int) -> Format:
    members, other = ({key: _npy(value) for key, value in one.items()} for one in arrays)

    def seal(content: bytes) -> bytes:
        return _zip(members | {damaged: content}, method)

    files, other_files = ({"own.npz": _zip(m, method)} for m in (members, other))
    return Format(name, "own.npz", "own.npz", files, other_files, True, seal, (members[damaged], other[damaged]))


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _zip(members: Files, method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content, compress_type=method)
    return buffer.getvalue()


def _images() -> list[Format]:
    kinds = (
        ("PNG grey", "png", "L"),
        ("PNG colour", "png", "RGB"),
        ("PNG palette", "png", "P"),
        ("PNG alpha", "png", "RGBA"),
        ("PNG 16 bit", "png", "I;16"),
        ("JPEG", "jpg", "RGB"),
        ("JPEG grey", "jpg", "L"),
        ("GIF", "gif", "P"),
        ("BMP", "bmp", "RGB"),
        ("PGM", "pgm", "L"),
        ("PPM", "ppm", "RGB"),
        ("WebP", "webp", "RGB"),
    )
    return [_image_format(*kind) for kind in kinds]


def _image_format(name: str, suffix: str, mode: str) -> Format:
    target = f"pets/cat/0.{suffix}"
    both = [{target: _image(seed, suffix, mode)} for seed in (0, 1)]  # alone: beside others, its size could not change
    if suffix != "png":
        return Format(name, "pets", target, both[0], both[1])
    inner = (both[0][target], both[1][target])
    return Format(name, "pets", target, both[0], both[1], True, _seal_png, inner, is_sealed=_is_sealed_png)


def _image(seed: int, suffix: str, mode: str) -> bytes:
    bands = {"RGB": (3,), "RGBA": (4,)}.get(mode, ())
    pixels = _pixels(seed, 9, 8, *bands)
    image = Image.fromarray(pixels.astype(np.uint16) * 257 if mode == "I;16" else pixels)
    if mode == "P":
        image = image.convert("RGB").quantize(16)
    buffer = io.BytesIO()
    image.save(buffer, {"jpg": "JPEG", "pgm": "PPM"}.get(suffix, suffix.upper()))
    return buffer.getvalue()


def _seal_png(content: bytes) -> bytes:
    """Makes the checksum of every chunk right, as far as the chunks can be followed."""
    sealed = bytearray(content)
    at = 8
    while at + 12 <= len(sealed):
        n = int.from_bytes(sealed[at : at + 4], "big")
        end = at + 8 + n
        if end + 4 > len(sealed):
            break
        sealed[end : end + 4] = struct.pack(">I", zlib.crc32(sealed[at + 4 : end]))
        at = end + 4
    return bytes(sealed)


def _is_sealed_png(content: bytes) -> bool:
    return _seal_png(content) == content


def write_files(files: Files, folder: Path) -> None:
    """Writes a dataset's files below `folder`."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
