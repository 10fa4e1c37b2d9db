"""The datasets that are known by name, read from ``catalogue.toml`` beside this file."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from cndpm.names import UnknownNameError

__all__ = ["Download", "Entry", "Format", "Layout", "catalogue", "catalogue_entry"]

Format = Literal["idx", "idx-transposed", "cifar-python", "cifar10-binary", "cifar100-binary", "mat"]


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Layout(_Fact):
    """One form in which a dataset is published.

    Attributes:
        format: Which reader takes the files.
        folders: Where they may lie, below the data folder (or absolute).
        train: Files of the training set, in the order the reader takes them; each may be gzipped.
        test: Files of the test set.
        content: sha256 of a file's decompressed content, where known.
    """

    format: Format
    folders: tuple[str, ...]
    train: tuple[str, ...]
    test: tuple[str, ...]
    content: dict[str, str] = Field(default_factory=dict)

    def find(self, data_dir: Path) -> dict[str, Path] | None:
        """Where each file lies, if some folder holds them all."""
        for folder in self.places(data_dir):
            found = {name: path for name in (*self.train, *self.test) if (path := _plain_or_gzipped(folder / name))}
            if len(found) == len(self.train) + len(self.test):
                return found
        return None

    def places(self, data_dir: Path) -> tuple[Path, ...]:
        """The folders that are looked through, in order."""
        return tuple(data_dir / folder for folder in self.folders)


class Download(_Fact):
    """One file that mirrors serve; `unpack` says that it is an archive."""

    file: str
    folder: str
    sha256: str
    size: int | None = None
    unpack: bool = False


class Entry(_Fact):
    """What is known of one dataset: its published size, classes, layouts, mirrors and files to fetch.

    `label_offset` is subtracted from the published labels. A dataset without layouts comes with scikit-learn.
    """

    name: str
    summary: str
    n_train: int
    n_test: int
    classes: tuple[str, ...]
    label_offset: int = 0
    mirrors: tuple[str, ...] = ()
    layouts: tuple[Layout, ...] = ()
    downloads: tuple[Download, ...] = ()

    def find(self, data_dir: Path) -> tuple[Layout, dict[str, Path]] | None:
        """The first layout whose files are all on disk, and where they are."""
        for layout in self.layouts:
            if found := layout.find(data_dir):
                return layout, found
        return None


def _plain_or_gzipped(path: Path) -> Path | None:
    gzipped = path.with_name(path.name + ".gz")
    return path if path.is_file() else gzipped if gzipped.is_file() else None


@cache
def catalogue() -> dict[str, Entry]:
    """Every known dataset by its name."""
    content = tomllib.loads(files("cndpm.streams").joinpath("catalogue.toml").read_text(encoding="utf-8"))
    return {name: Entry(name=name, **facts) for name, facts in content.items()}


def catalogue_entry(name: str) -> Entry:
    """The facts about one dataset.

    Raises:
        UnknownNameError: There is no dataset of this name; the nearest are suggested.
    """
    try:
        return catalogue()[name]
    except KeyError:
        raise UnknownNameError("dataset", name, catalogue()) from None
