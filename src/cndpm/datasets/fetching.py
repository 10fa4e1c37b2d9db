"""Downloading datasets: from several mirrors, checked by sha256, resumed where the server allows it."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cndpm.datasets.catalogue import Download, Entry, catalogue_entry
from cndpm.datasets.loading import resolve_data_dir
from cndpm.extras import require_extra

with suppress(ModuleNotFoundError):  # an extra brings them, which `fetch_entry` names
    import pooch
    import requests

__all__ = ["FetchError", "ProgressReport", "fetch_dataset"]

ProgressReport = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes that are there and the bytes in all (None: not known)."""

_TIMEOUT = 30  # seconds without an answer
_PIECE = 1 << 16


class FetchError(RuntimeError):
    """A file could not be had from any mirror; the message names each one and what went wrong."""


def fetch_dataset(
    name: str,
    data_dir: str | Path | None = None,
    *,
    mirrors: tuple[str, ...] | None = None,
    progress: ProgressReport | None = None,
) -> Path:
    """Downloads what is missing of a dataset and puts it where :func:`~cndpm.streams.load_dataset` finds it.

    Args:
        name: A name of :func:`~cndpm.datasets.dataset_names`.
        data_dir: Where datasets lie; see :func:`~cndpm.datasets.resolve_data_dir`.
        mirrors: Addresses (ending in a slash) to use instead of the catalogue's.
        progress: Told how far each file is.

    Returns:
        The data folder.

    Raises:
        FetchError: No mirror served a file with the right checksum.
    """
    entry = catalogue_entry(name)
    return fetch_entry(entry, resolve_data_dir(data_dir), mirrors=mirrors or entry.mirrors, progress=progress)


def fetch_entry(entry: Entry, data_dir: Path, *, mirrors: tuple[str, ...], progress: ProgressReport | None) -> Path:
    """As :func:`fetch_dataset`, for an entry that need not be of the catalogue."""
    if entry.find(data_dir):
        return data_dir
    require_extra("pooch", "requests", purpose="fetching datasets")
    pooch.get_logger().setLevel("WARNING")  # progress is told to whoever asks for it
    for download in entry.downloads:
        folder = data_dir / download.folder
        folder.mkdir(parents=True, exist_ok=True)
        archive = _fetch_file(download, folder, mirrors, progress)
        if download.unpack:
            _unpack(archive, folder)
            archive.unlink()
    return data_dir


def _fetch_file(download: Download, folder: Path, mirrors: tuple[str, ...], progress: ProgressReport | None) -> Path:
    failures = []
    part = folder / f"{download.file}.part"
    # What an earlier attempt left may be no beginning of this file: then the first mirror is asked once more.
    for mirror in (mirrors[:1] if part.is_file() else ()) + mirrors:
        url = mirror + download.file
        try:
            return Path(
                pooch.retrieve(
                    url,
                    known_hash=f"sha256:{download.sha256}",
                    fname=download.file,
                    path=folder,
                    downloader=_ResumingDownloader(part, download.size, progress),
                )
            )
        except (requests.RequestException, ValueError, OSError) as error:
            failures.append(f"{url}: {error}")
    raise FetchError(f"{download.file} could not be fetched. " + " | ".join(failures or ["no mirror is known"]))


class _ResumingDownloader:
    """A downloader for pooch that keeps what has arrived beside the target, and asks for the rest next time."""

    def __init__(self, part: Path, size: int | None, progress: ProgressReport | None) -> None:
        self._part, self._size, self._progress = part, size, progress

    def __call__(self, url: str, output_file: str, _pooch: Any, check_only: bool = False) -> None:
        """Fetches `url` to `output_file`; pooch then compares the checksum."""
        if check_only:
            raise NotImplementedError("only downloading is supported")
        have = self._part.stat().st_size if self._part.is_file() else 0
        if have != self._size:
            self._fetch(url, have)
        shutil.move(self._part, output_file)

    def _fetch(self, url: str, have: int) -> None:
        headers = {"Range": f"bytes={have}-"} if have else {}
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
            if answer.status_code == requests.codes.requested_range_not_satisfiable:
                self._part.unlink()  # what is there is no beginning of this file
                return self._fetch(url, 0)
            answer.raise_for_status()
            resumed = answer.status_code == requests.codes.partial_content
            have = have if resumed else 0
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length is not None else self._size
            self._write(answer, have, total, mode="ab" if resumed else "wb")
        return None

    def _write(self, answer: requests.Response, have: int, total: int | None, *, mode: str) -> None:
        with self._part.open(mode) as file:
            for piece in answer.iter_content(_PIECE):
                file.write(piece)
                have += len(piece)
                if self._progress is not None:
                    self._progress(self._part.stem, have, total)
        if total is not None and have != total:
            raise requests.ConnectionError(f"the transfer broke off after {have} of {total} bytes; run again to resume")


def _unpack(archive: Path, folder: Path) -> None:
    """Unpacks a tar or zip archive; members that would leave the folder are refused."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder)
    else:
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
