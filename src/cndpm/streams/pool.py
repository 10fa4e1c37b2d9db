"""Holds all samples that a scenario draws from in one tensor, and finds the rows of it that each subset means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cndpm.datasets.dataset import Dataset, Split
from cndpm.datasets.files import MixedSizesError, memory_limit
from cndpm.datasets.loading import load_dataset
from cndpm.names import UnknownNameError
from cndpm.streams.ordering import Purpose, Rows, host_generator
from cndpm.streams.transforms import permute_pixels, resize, rotate, set_channels
from cndpm.validation import ConfigError

if TYPE_CHECKING:
    from cndpm.streams.scenario import Scenario, Subset, Transform

_SHARE = 10
"""One sample in so many is held out."""


def hold_out(dataset: Dataset, *, seed: int, number: int) -> Dataset:
    """Returns a dataset that is trained and tested on parts of the training set; the test set is left out.

    A tenth of every class, rounded, is held out: at least one sample of a class that has two. Both parts keep the order
    of the training set.
    """
    labels = dataset.train.y.numpy()
    is_held_out = np.zeros(len(labels), dtype=bool)
    for label in range(len(dataset.classes)):
        rows = np.flatnonzero(labels == label)
        n = max(round(len(rows) / _SHARE), int(len(rows) > 1))
        is_held_out[host_generator(seed, Purpose.HELD_OUT, number, label).permutation(rows)[:n]] = True
    chosen = torch.from_numpy(is_held_out)
    train, test = (Split(dataset.train.x[part], dataset.train.y[part]) for part in (~chosen, chosen))
    return replace(dataset, train=train, test=test)


class _DatasetView(NamedTuple):
    """A dataset as seen through one transformation; subsets that agree on it share its samples."""

    dataset: str
    rotation: float
    permutation: int | None


def _source(subset: Subset) -> _DatasetView:
    return _DatasetView(subset.dataset, subset.rotation, subset.permutation)


class Pool:
    """The training samples of every source of a scenario, one after the other, on a device.

    `x` are samples (n, *input_shape), uint8 images or float32 features, `y` labels as a learner receives them (n,),
    int64, noisy where the scenario says so; the seed determines which are drawn.
    """

    def __init__(self, scenario: Scenario, *, data_dir: str | Path | None, seed: int, device: torch.device) -> None:
        self._scenario, self._seed = scenario, seed
        subsets = [subset for stage in scenario.stages for subset in stage.subsets]
        names = dict.fromkeys(subset.dataset for subset in subsets)
        self._datasets = {name: _load(name, data_dir, scenario.transform.size) for name in names}
        if scenario.validation:
            read = enumerate(self._datasets.items())
            self._datasets = {name: hold_out(data, seed=seed, number=number) for number, (name, data) in read}
        self._sources = list(dict.fromkeys(map(_source, subsets)))
        counts = [len(data.classes) for data in self._datasets.values()]
        starts = np.cumsum([0, *counts[:-1]]).tolist() if scenario.labels == "disjoint" else [0] * len(counts)
        self._offsets: dict[str, int] = dict(zip(self._datasets, starts, strict=True))
        lengths = [len(self._datasets[source.dataset].train) for source in self._sources]
        self._starts = dict(zip(self._sources, np.cumsum([0, *lengths]).tolist(), strict=False))
        self.n_classes = max(self._offsets[name] + len(data.classes) for name, data in self._datasets.items())
        for subset in dict.fromkeys(subsets):
            self._check_classes(subset)
        self.x = self._join([self._datasets[s.dataset].train.x for s in self._sources]).to(device)
        self.y = torch.from_numpy(self._labels()).to(device)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return tuple(self.x.shape[1:])

    def rows(self, subset: Subset) -> Rows:
        """Returns the rows of `x` that a subset means, its fraction and the scenario's applied, (n,)."""
        source = _source(subset)
        labels = self._datasets[subset.dataset].train.y.numpy()
        kept = [self._kept(np.flatnonzero(labels == c), subset, c) for c in self._classes(subset)]
        rows = np.concatenate(kept)
        if len(rows) == 0:
            raise ConfigError(f"subset {subset.task_name!r} is empty: no training sample of {subset.dataset} is in it")
        found: Rows = self._starts[source] + rows
        return found

    def test_set(self, subsets: Iterable[Subset]) -> tuple[Tensor, Tensor, tuple[int, ...]]:
        """Returns test samples of some subsets (bytes or features), their labels and classes; none comes twice."""
        wanted: dict[_DatasetView, set[int]] = {}
        for subset in subsets:
            wanted.setdefault(_source(subset), set()).update(self._classes(subset))
        xs, ys, classes = [], [], set[int]()
        for source, labels in wanted.items():
            test, offset = self._datasets[source.dataset].test, self._offsets[source.dataset]
            chosen = torch.isin(test.y, torch.tensor(sorted(labels)))
            xs.append(_see(test.x[chosen], source, self._scenario.transform))
            ys.append(test.y[chosen] + offset)
            classes.update(label + offset for label in labels)
        return torch.cat(xs), torch.cat(ys), tuple(sorted(classes))

    def _classes(self, subset: Subset) -> tuple[int, ...]:
        """Returns the labels of a subset; those that are named are looked up in the dataset."""
        names = self._datasets[subset.dataset].classes
        if subset.classes is None:
            return tuple(range(len(names)))
        return tuple(c if isinstance(c, int) else self._label(subset.dataset, c) for c in subset.classes)

    def _label(self, dataset: str, name: str) -> int:
        names = self._datasets[dataset].classes
        if name not in names:
            raise UnknownNameError(f"class in {dataset} called", name, names)
        return names.index(name)

    def _check_classes(self, subset: Subset) -> None:
        n, labels = len(self._datasets[subset.dataset].classes), self._classes(subset)
        beyond = [label for label in labels if label >= n]
        if beyond:
            raise ConfigError(f"{subset.dataset} has classes 0 to {n - 1}; the scenario asks for {beyond}")
        if len(set(labels)) < len(labels):
            raise ConfigError(f"{subset.classes} name a class of {subset.dataset} twice, by name and by label")

    def _kept(self, rows: Rows, subset: Subset, label: int) -> Rows:
        """Chooses a fixed random part of one class, at least one sample; smaller fractions are parts of larger ones."""
        fraction = self._scenario.fraction * subset.fraction
        if fraction == 1.0 or len(rows) == 0:
            return rows
        rng = host_generator(self._seed, Purpose.FRACTION, list(self._datasets).index(subset.dataset), label)
        return np.sort(rng.permutation(rows)[: max(1, round(fraction * len(rows)))])

    def _labels(self) -> Rows:
        parts = []
        for i, source in enumerate(self._sources):
            data, noise = self._datasets[source.dataset], self._scenario.label_noise
            rng = host_generator(self._seed, Purpose.LABEL_NOISE, i)
            parts.append(_with_noise(data, noise, rng) + self._offsets[source.dataset])
        return np.concatenate(parts)

    def _join(self, parts: list[Tensor]) -> Tensor:
        seen = [_see(x, source, self._scenario.transform) for x, source in zip(parts, self._sources, strict=True)]
        kinds = {f"{s.dataset}: {tuple(x.shape[1:])} {x.dtype}" for s, x in zip(self._sources, seen, strict=True)}
        if len({(x.shape[1:], x.dtype) for x in seen}) > 1:
            raise ConfigError(
                f"the inputs of one stream have one shape; got {', '.join(sorted(kinds))}. "
                "Set the scenario's transform: size and channels bring images to one shape."
            )
        return seen[0] if len(seen) == 1 else torch.cat(seen)


def _load(name: str, data_dir: str | Path | None, size: int | None) -> Dataset:
    """Reads a dataset; a folder of images that differ in size is read at the scenario's."""
    try:
        return load_dataset(name, data_dir)
    except MixedSizesError:
        if size is None:
            raise
        return load_dataset(name, data_dir, size=size)


def _see(x: Tensor, source: _DatasetView, transform: Transform) -> Tensor:
    """Transforms samples of a dataset as the scenario says; they stay bytes (or features)."""
    if x.ndim != 4:
        if transform.size or transform.channels or transform.binarise or source.rotation:
            raise ConfigError(f"{source.dataset} holds features, not images: it cannot be resized, turned or binarised")
    else:
        if transform.size and (n_bytes := 8 * len(x) * x.shape[1] * transform.size**2) > memory_limit():  # on the way
            raise ConfigError(f"transform.size={transform.size} makes {n_bytes} bytes of {len(x)} images, too many")
        x = resize(x, transform.size) if transform.size else x
        x = set_channels(x, transform.channels) if transform.channels else x
        x = rotate(x, source.rotation)
    return x if source.permutation is None else permute_pixels(x, source.permutation)


def _with_noise(data: Dataset, noise: float, rng: np.random.Generator) -> Rows:
    """Returns training labels, a share `noise` of them replaced by another class, each other class as likely."""
    labels = data.train.y.numpy()
    n_classes = len(data.classes)
    if noise == 0 or n_classes < 2:
        return labels
    wrong = (labels + rng.integers(1, n_classes, size=len(labels))) % n_classes
    return np.where(rng.random(len(labels)) < noise, wrong, labels)
