"""Scenarios known by name: those of the paper, and a few of the same kind.

Numbers of samples are those of the published datasets; "one epoch" is one pass over a task's training samples, drawn
without replacement. Each name can be varied by a prefix; see :mod:`cndpm.streams.variations`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from cndpm.streams.scenario import Scenario, Stage, Subset, Transform

_DIGITS = tuple(range(10))
_PAIRS = tuple((k, k + 1) for k in range(0, 10, 2))

# CIFAR100's superclasses in their published order, with the fine labels in each.
_SUPERCLASSES = {
    "aquatic_mammals": (4, 30, 55, 72, 95),
    "fish": (1, 32, 67, 73, 91),
    "flowers": (54, 62, 70, 82, 92),
    "food_containers": (9, 10, 16, 28, 61),
    "fruit_and_vegetables": (0, 51, 53, 57, 83),
    "household_electrical_devices": (22, 39, 40, 86, 87),
    "household_furniture": (5, 20, 25, 84, 94),
    "insects": (6, 7, 14, 18, 24),
    "large_carnivores": (3, 42, 43, 88, 97),
    "large_man-made_outdoor_things": (12, 17, 37, 68, 76),
    "large_natural_outdoor_scenes": (23, 33, 49, 60, 71),
    "large_omnivores_and_herbivores": (15, 19, 21, 31, 38),
    "medium_mammals": (34, 63, 64, 66, 75),
    "non-insect_invertebrates": (26, 45, 77, 79, 99),
    "people": (2, 11, 35, 46, 98),
    "reptiles": (27, 29, 44, 78, 93),
    "small_mammals": (36, 50, 65, 74, 80),
    "trees": (47, 52, 56, 59, 96),
    "vehicles_1": (8, 13, 48, 58, 90),
    "vehicles_2": (41, 69, 81, 85, 89),
}


def _split(dataset: str, groups: Sequence[tuple[int, ...]], names: Sequence[str | None] | None = None) -> list[Stage]:
    """Makes one stage of one epoch for each group of classes."""
    tasks = names or [None] * len(groups)
    return [
        Stage(subsets=(Subset(dataset=dataset, classes=group, task=task),), epochs=1)
        for group, task in zip(groups, tasks, strict=True)
    ]


def _pairs(dataset: str, summary: str) -> Scenario:
    """Makes five tasks of two classes each."""
    return Scenario(
        name=f"split-{dataset.removesuffix('-mnist')}", summary=summary, stages=tuple(_split(dataset, _PAIRS))
    )


def _split_mnist_gen() -> Scenario:
    summary = "Split-MNIST without labels, every pixel drawn as black or white: for generation"
    stages = tuple(_split("mnist", _PAIRS))
    transform = Transform(binarise=True)
    return Scenario(name="split-mnist-gen", summary=summary, stages=stages, transform=transform, labelled=False)


def _split_cifar100() -> Scenario:
    summary = "Twenty tasks, the superclasses of CIFAR100, of five kinds of photographs each, 32 x 32 colour"
    stages = _split("cifar100", tuple(_SUPERCLASSES.values()), tuple(_SUPERCLASSES))
    return Scenario(name="split-cifar100", summary=summary, stages=tuple(stages))


def _mnist_svhn() -> Scenario:
    summary = "Handwritten digits, then house numbers: the same ten classes, 32 x 32 colour"
    stages = _split("mnist", [_DIGITS], ["mnist"]) + _split("svhn", [_DIGITS], ["svhn"])
    return Scenario(name="mnist-svhn", summary=summary, stages=tuple(stages), transform=Transform(size=32, channels=3))


def _fuzzy_split_mnist() -> Scenario:
    """Takes 6,000 samples of the first and last task; between neighbours five mixed stages of 2,400 samples."""
    pairs = [Subset(dataset="mnist", classes=pair) for pair in _PAIRS]
    stages = [Stage(subsets=(pairs[0],), samples=6000)]
    for old, new in pairwise(pairs):
        for percent in (10, 30, 50, 70, 90):
            mixed = (
                old.model_copy(update={"weight": 100.0 - percent}),
                new.model_copy(update={"weight": float(percent)}),
            )
            stages.append(Stage(subsets=mixed, samples=2400))
    stages.append(Stage(subsets=(pairs[-1],), samples=6000))
    summary = "Split-MNIST whose tasks fade into each other, drawn with replacement"
    return Scenario(name="fuzzy-split-mnist", summary=summary, stages=tuple(stages))


def _rotated_mnist() -> Scenario:
    summary = "MNIST turned further in each of five stages: 0, 20, 40, 60 and 80 degrees"
    stages = tuple(
        Stage(subsets=(Subset(dataset="mnist", classes=_DIGITS, rotation=angle, task=f"{angle} degrees"),), epochs=1)
        for angle in range(0, 81, 20)
    )
    return Scenario(name="rotated-mnist", summary=summary, stages=stages)


def _permuted_mnist() -> Scenario:
    summary = "MNIST with its pixels in five orders, one per stage, the first as published"
    stages = tuple(
        Stage(subsets=(Subset(dataset="mnist", classes=_DIGITS, permutation=k or None, task=f"order {k}"),), epochs=1)
        for k in range(5)
    )
    return Scenario(name="permuted-mnist", summary=summary, stages=stages)


PRESETS: dict[str, Callable[[], Scenario]] = {
    "split-digits": lambda: _pairs(
        "digits", "Five tasks of two digits each, 8 x 8 grey, from scikit-learn: needs no download"
    ),
    "split-mnist": lambda: _pairs("mnist", "Five tasks of two handwritten digits each, 28 x 28 grey"),
    "split-mnist-gen": _split_mnist_gen,
    "fuzzy-split-mnist": _fuzzy_split_mnist,
    "mnist-svhn": _mnist_svhn,
    "split-cifar10": lambda: _pairs("cifar10", "Five tasks of two kinds of photographs each, 32 x 32 colour"),
    "split-cifar100": _split_cifar100,
    "split-fashion": lambda: _pairs("fashion-mnist", "Five tasks of two kinds of clothing each, 28 x 28 grey"),
    "rotated-mnist": _rotated_mnist,
    "permuted-mnist": _permuted_mnist,
}
"""Every preset by its name."""
