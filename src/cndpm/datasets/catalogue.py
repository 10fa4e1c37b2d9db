"""The datasets that are known by name, read from ``catalogue.toml`` beside this file."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from cndpm.names import UnknownNameError

__all__ = ["dataset_names"]

Format = Literal["idx", "idx-transposed", "cifar", "mat"]
"""Formats of published files, each with a reader of its own."""


class _Fact(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Layout(_Fact):
    """One form in which a dataset is published."""

    format: Format  # which reader takes the files
    folders: tuple[str, ...]  # where they may lie, below the data folder (or absolute)
    train: tuple[str, ...]  # files of the training set, in the order the reader takes them; each may be gzipped
    test: tuple[str, ...]  # files of the test set

    def find(self, data_dir: Path) -> dict[str, Path] | None:
        """Returns where each file lies, by its name; None unless one folder holds them all."""
        for folder in self.folders:
            names = {*self.train, *self.test}
            found = {name: path for name in names if (path := _plain_or_gzipped(data_dir / folder / name))}
            if len(found) == len(names):
                return found
        return None


class Download(_Fact):
    """One file that mirrors serve."""

    file: str  # its name, which is appended to a mirror's address
    folder: str  # where it goes, below the data folder
    sha256: str  # checksum of its bytes
    size: int = Field(ge=1)  # its number of bytes; a mirror that sends more is refused
    unpack: bool = False  # whether it is an archive


class Entry(_Fact):
    """The facts about one dataset; one without layouts comes with scikit-learn."""

    name: str  # its name
    summary: str  # one line that says what it is
    n_train: int  # number of training samples as published
    n_test: int  # number of test samples as published
    classes: tuple[str, ...]  # the name of each label, in order
    label_offset: int = 0  # subtracted from the published labels
    # Sha256 of all samples of "train" and of "test" after reading, where known; see `inventory.sha256_of`
    samples: dict[Literal["train", "test"], str] = Field(default_factory=dict)
    # Addresses that serve the downloads, each ending in a slash, in the order in which they are asked
    mirrors: tuple[str, ...] = ()
    layouts: tuple[Layout, ...] = ()  # the forms in which the files may lie on disk
    downloads: tuple[Download, ...] = ()  # the files to fetch

    def find(self, data_dir: Path) -> tuple[Layout, dict[str, Path]] | None:
        """Returns the first layout whose files are all on disk, and where they are."""
        for layout in self.layouts:
            if found := layout.find(data_dir):
                return layout, found
        return None


def _plain_or_gzipped(path: Path) -> Path | None:
    gzipped = path.with_name(path.name + ".gz")
    try:
        return path if path.is_file() else gzipped if gzipped.is_file() else None
    except OSError:  # in a folder that may not be looked into
        return None


@cache
def catalogue() -> dict[str, Entry]:
    """Returns every known dataset by its name."""
    content = tomllib.loads(files("cndpm.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8"))
    return {name: Entry(name=name, **facts) for name, facts in content.items()}


def catalogue_entry(name: str) -> Entry:
    """Returns the facts about one dataset; UnknownNameError suggests the nearest names."""
    try:
        return catalogue()[name]
    except KeyError:
        raise UnknownNameError("dataset", name, catalogue()) from None


def dataset_names() -> tuple[str, ...]:
    """Returns the names that :func:`cndpm.datasets.load_dataset` knows."""
    return tuple(catalogue())
