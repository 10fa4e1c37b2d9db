"""Downloading datasets: from several mirrors, checked by size and sha256, resumed where the server allows it.

Bytes arrive in a file ``NAME.part`` beside the target, which takes its name only when its checksum is right; archives
are unpacked in a folder of their own, whose files are then moved. So a file that has its name is whole.
"""

from __future__ import annotations

import hashlib
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from cndpm.datasets.catalogue import Download, Entry, catalogue_entry
from cndpm.datasets.files import DamagedFileError, RefusedPickleError
from cndpm.datasets.loading import MissingDataError, read_entry, resolve_data_dir
from cndpm.errors import CNDPMError
from cndpm.extras import require_extra

with suppress(ModuleNotFoundError):  # an extra brings it, which `fetch_entry` names
    import requests

__all__ = ["FetchError", "fetch_dataset"]

ProgressReport = Callable[[str, int, int], None]
"""Called with a file's name, the bytes that are there and the bytes in all."""

_TIMEOUT = 30.0  # seconds without an answer
_SLOWEST = 2048  # bytes a second, on average, below which a mirror is given up
_PIECE = 1 << 16


class FetchError(CNDPMError, RuntimeError):
    """Reports a file that no mirror served; the message names each mirror and what went wrong."""


class _TransferError(Exception):
    """Says what went wrong with one mirror."""


def fetch_dataset(
    name: str,
    data_dir: str | Path | None = None,
    *,
    mirrors: tuple[str, ...] | None = None,
    progress: ProgressReport | None = None,
    force: bool = False,
) -> Path:
    """Downloads a dataset that is missing or damaged to where :func:`~cndpm.datasets.load_dataset` finds it.

    Args:
        name: A name of :func:`~cndpm.datasets.dataset_names`.
        data_dir: Where datasets lie, which is returned; see :func:`~cndpm.datasets.resolve_data_dir`.
        mirrors: Addresses to use instead of the catalogue's.
        progress: Told how far each file is.
        force: Also replaces files that can be read but are not what was published.

    Raises:
        FetchError: No mirror served a file with the right size and checksum, or it could not be written.
    """
    entry = catalogue_entry(name)
    folder = resolve_data_dir(data_dir)
    return fetch_entry(entry, folder, mirrors=mirrors or entry.mirrors, progress=progress, force=force)


def fetch_entry(
    entry: Entry, data_dir: Path, *, mirrors: tuple[str, ...], progress: ProgressReport | None, force: bool = False
) -> Path:
    """Fetches an entry that need not be of the catalogue; see :func:`fetch_dataset`."""
    if not entry.downloads or (not force and _is_readable(entry, data_dir)):
        return data_dir
    require_extra("requests", purpose="fetching datasets")
    try:
        for download in entry.downloads:
            folder = data_dir / download.folder
            folder.mkdir(parents=True, exist_ok=True)
            file = _fetch_file(download, folder, mirrors, progress)
            if download.unpack:
                _unpack(file, folder)
                file.unlink()
    except OSError as error:
        raise FetchError(
            f"{entry.name} could not be written under {data_dir}: {error}. Free or choose a folder that can be written."
        ) from error
    return data_dir


def _is_readable(entry: Entry, data_dir: Path) -> bool:
    try:
        read_entry(entry, data_dir)
    except (MissingDataError, DamagedFileError, RefusedPickleError):
        return False
    return True


def _fetch_file(download: Download, folder: Path, mirrors: tuple[str, ...], progress: ProgressReport | None) -> Path:
    """Returns the file with the right checksum: the one on disk, or one from the first mirror that has it."""
    target, part = folder / download.file, folder / f"{download.file}.part"
    if target.is_file() and target.stat().st_size == download.size and _sha256(target) == download.sha256:
        return target
    failures = []
    # What an earlier attempt left may be no beginning of this file: then the first mirror is asked once more.
    for mirror in (mirrors[:1] if part.is_file() else ()) + mirrors:
        url = f"{mirror.rstrip('/')}/{download.file}"
        try:
            _fetch_part(url, part, download, progress)
            return part.replace(target)
        except (requests.RequestException, _TransferError, ValueError) as error:
            failures.append(f"{url}: {error}")
            if type(error) in (requests.ConnectionError, requests.ConnectTimeout):
                failures[-1] = f"no connection to {urlsplit(url).hostname}"
    raise FetchError(
        f"{download.file} could not be fetched: {'; '.join(failures or ['no mirror is known'])}. "
        f"Run again to go on where a transfer broke off, or put the file into {folder} yourself."
    )


def _fetch_part(url: str, part: Path, download: Download, progress: ProgressReport | None) -> None:
    """Completes the file `part` from one mirror; a part that turns out to be wrong is removed."""
    have = part.stat().st_size if part.is_file() else 0
    if have > download.size:
        part.unlink()
        have = 0
    if have < download.size:
        _transfer(url, part, have, download.size, progress)
    actual = _sha256(part)
    if actual != download.sha256:
        part.unlink()
        raise _TransferError(f"its sha256 is {actual}, it should be {download.sha256}")


def _transfer(url: str, part: Path, have: int, size: int, progress: ProgressReport | None) -> None:
    """Asks for the bytes of `url` from number `have` on and appends them to `part`, up to `size` in all."""
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
        if have and answer.status_code == requests.codes.requested_range_not_satisfiable:
            part.unlink()
            raise _TransferError("what had arrived is no beginning of this file; it was removed")
        answer.raise_for_status()
        have = have if answer.status_code == requests.codes.partial_content else 0
        announced = answer.headers.get("Content-Length")
        if announced is not None and int(announced) != size - have:
            raise _TransferError(f"it announces {announced} bytes where {size - have} should come")
        _receive(answer, part, have, size, progress)


def _receive(answer: requests.Response, part: Path, have: int, size: int, progress: ProgressReport | None) -> None:
    deadline = time.monotonic() + _TIMEOUT + (size - have) / _SLOWEST
    with part.open("ab" if have else "wb") as file:
        for piece in answer.iter_content(_PIECE):
            have += len(piece)
            if have > size:
                file.truncate(0)
                raise _TransferError(f"it sends more than the {size} bytes that the file has")
            file.write(piece)
            if progress is not None:
                progress(part.stem, have, size)
            if time.monotonic() > deadline:
                raise _TransferError(f"it is too slow: {have} of {size} bytes; at least {_SLOWEST} a second are needed")
    if have != size:
        raise _TransferError(f"the transfer broke off after {have} of {size} bytes; run again to resume")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unpack(archive: Path, folder: Path) -> None:
    """Unpacks a tar or zip archive into `folder`; members that would leave it are refused."""
    with TemporaryDirectory(prefix=".unpacking-", dir=folder) as fresh:
        try:
            if zipfile.is_zipfile(archive):
                with zipfile.ZipFile(archive) as zipped:
                    zipped.extractall(fresh)
            else:
                with tarfile.open(archive) as tarred:
                    tarred.extractall(fresh, filter="data")
        except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise FetchError(f"{archive} cannot be unpacked: {error}. Remove it and fetch it anew.") from error
        for file in Path(fresh).rglob("*"):
            if file.is_file():
                target = folder / file.relative_to(fresh)
                target.parent.mkdir(parents=True, exist_ok=True)
                file.replace(target)
