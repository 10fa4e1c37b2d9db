"""Ways to vary a scenario: functions from recipe to recipe.

Some are also prefixes of a preset's name: ``iid-split-mnist``, ``gradual-split-cifar10``, ``noisy-split-digits``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from cndpm.streams.scenario import Blur, ClassName, Scenario, Stage, Subset
from cndpm.validation import ConfigError, validate

__all__ = ["VARIATIONS"]


def iid(scenario: Scenario) -> Scenario:
    """Puts the same samples into one random order: no tasks to forget. The test sets stay those of the tasks."""
    return scenario.model_copy(update={"iid": True})


def gradual(scenario: Scenario, kind: Literal["linear", "gaussian"] = "linear") -> Scenario:
    """Lets boundaries fade over half a mean stage (linear), or with a deviation of an eighth."""
    return scenario.model_copy(update={"blur": Blur(kind=kind, width=0.5 if kind == "linear" else 0.125)})


def recurring(scenario: Scenario, visits: int = 3) -> Scenario:
    """Repeats the stages in `visits` rounds, each a part of its length: every task leaves and comes back.

    Every visit draws for itself, so a sample may come again in a later one.
    """
    if visits < 1:
        raise ConfigError(f"visits must be at least 1; got {visits}")
    return scenario.model_copy(update={"stages": tuple(_shorten(stage, visits) for stage in scenario.stages) * visits})


def _shorten(stage: Stage, by: int) -> Stage:
    return stage.model_copy(
        update={
            "epochs": None if stage.epochs is None else stage.epochs / by,
            "samples": None if stage.samples is None else max(1, stage.samples // by),
            "steps": None if stage.steps is None else max(1, stage.steps // by),
        }
    )


def imbalanced(scenario: Scenario, ratio: float = 10.0) -> Scenario:
    """Makes a long tail: the first class keeps all training samples, the last one in `ratio`, geometrically between."""
    if ratio < 1:
        raise ConfigError(f"ratio must be at least 1; got {ratio}")
    labels = _named_classes(scenario, "imbalanced")
    share = {label: ratio ** (-i / max(1, len(labels) - 1)) for i, label in enumerate(labels)}
    stages = tuple(
        stage.model_copy(update={"subsets": tuple(part for subset in stage.subsets for part in _thin(subset, share))})
        for stage in scenario.stages
    )
    return scenario.model_copy(update={"stages": stages})


def _thin(subset: Subset, share: dict[ClassName, float]) -> list[Subset]:
    """Makes one subset per class with its share of the samples (and of the weight), still one task."""
    classes = subset.classes or ()
    total = sum(share[label] for label in classes)
    return [
        subset.model_copy(
            update={
                "classes": (label,),
                "fraction": subset.fraction * share[label],
                "weight": None if subset.weight is None else subset.weight * share[label] / total,
                "task": subset.task_name,
            }
        )
        for label in classes
    ]


def noisy(scenario: Scenario, share: float = 0.2) -> Scenario:
    """Makes a share of the training labels wrong, always the same ones; test labels are right."""
    return validate(Scenario, {**scenario.model_dump(), "label_noise": share}, "scenario")


def unlabelled(scenario: Scenario) -> Scenario:
    """Leaves out the labels: learners are asked for densities and for responsible experts."""
    return validate(Scenario, {**scenario.model_dump(), "labelled": False}, "scenario")


def endless(scenario: Scenario) -> Scenario:
    """Repeats the stages with new draws, without an end."""
    return scenario.model_copy(update={"endless": True})


def repeat(scenario: Scenario, repeats: int) -> Scenario:
    """Repeats the whole scenario `repeats` times."""
    if repeats < 1:
        raise ConfigError(f"repeats must be at least 1; got {repeats}")
    return scenario.model_copy(update={"stages": scenario.stages * repeats})


def set_epochs(scenario: Scenario, epochs: float) -> Scenario:
    """Sets the length of every stage to `epochs` epochs; a stage of several is drawn with replacement."""
    others = [i for i, stage in enumerate(scenario.stages) if stage.epochs is None]
    if others:
        raise ConfigError(
            f"{scenario.name} measures stages {others} in samples or steps, so epochs does not apply; leave it out"
        )
    stages = [{**stage.model_dump(), "epochs": epochs} for stage in scenario.stages]
    return validate(Scenario, {**scenario.model_dump(), "stages": stages}, "scenario")


def reorder_classes(scenario: Scenario, order: Sequence[ClassName]) -> Scenario:
    """Puts class ``order[i]`` where the scenario has its i-th lowest class; labels keep their meaning.

    A task that gets other classes loses the name it was given, which was that of its old ones.
    """
    labels = _named_classes(scenario, "class_order")
    if sorted(order) != labels:
        raise ConfigError(f"class_order must name each of the classes {labels} once; got {list(order)}")
    replaced = dict(zip(labels, order, strict=True))

    def reordered(subset: Subset) -> Subset:
        classes = tuple(replaced[label] for label in subset.classes or ())
        same = set(classes) == set(subset.classes or ())
        return subset.model_copy(update={"classes": classes, "task": subset.task if same else None})

    stages = [stage.model_copy(update={"subsets": tuple(map(reordered, stage.subsets))}) for stage in scenario.stages]
    return scenario.model_copy(update={"stages": tuple(stages)})


def _named_classes(scenario: Scenario, purpose: str) -> list[ClassName]:
    subsets = [subset for stage in scenario.stages for subset in stage.subsets]
    if any(subset.classes is None for subset in subsets):
        raise ConfigError(
            f"{purpose} needs a scenario whose subsets name their classes; {scenario.name} has some without"
        )
    labels = {label for subset in subsets for label in subset.classes or ()}
    return sorted(labels, key=lambda label: (isinstance(label, str), label))  # numbers before names


VARIATIONS: dict[str, tuple[Callable[[Scenario], Scenario], str]] = {
    "iid": (iid, "all samples in one random order"),
    "gradual": (gradual, "each task fades linearly into the next over half a stage"),
    "blurred": (lambda scenario: gradual(scenario, "gaussian"), "boundaries blurred by a normal distribution"),
    "recurring": (recurring, "every task comes three times, for a third of its length"),
    "imbalanced": (imbalanced, "class sizes fall geometrically to a tenth"),
    "noisy": (noisy, "a fifth of the training labels is wrong"),
    "unlabelled": (unlabelled, "no labels"),
    "endless": (endless, "begins again with new draws, without an end"),
}
"""Variations by the prefix that stands before a preset's name, each with one line of help."""
