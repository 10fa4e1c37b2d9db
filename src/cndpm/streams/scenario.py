"""Scenarios: recipes for streams.

A scenario is data. It lists stages; a stage is a mixture of subsets (some classes of some dataset, perhaps turned or
with its pixels permuted) with a length in epochs, samples or steps. It holds no samples, is saved with a run as it is,
and becomes a stream when it is given data and a seed. Tasks exist here only, for evaluation: every subset is a task of
its own, and subsets with the same `task` are one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, model_validator

if TYPE_CHECKING:
    import torch

    from cndpm.streams.stream import Stream

__all__ = ["Blur", "Scenario", "Stage", "Subset", "Transform"]

Share = Annotated[float, Field(gt=0, le=1)]
Label = Annotated[int, Field(ge=0)]


def _class_name(value: object) -> int | str:
    if (isinstance(value, str) and value) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ValueError(f"a class is a label (0, 1, ...) or the name that its dataset gives it; got {value!r}")


ClassName = Annotated[int | str, PlainValidator(_class_name)]
"""A class by its label, or by the name that its dataset gives it."""


class _Recipe(BaseModel):
    # A name in a file may look like a number.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, coerce_numbers_to_str=True)


class Subset(_Recipe):
    """Some classes of a dataset, perhaps seen through a transformation.

    Attributes:
        dataset: A name of the catalogue, an ``.npz`` file or a folder of images.
        classes: The classes taken, by label or by name (that of their folder, where images lie in folders); all where
            None.
        fraction: Share of every class's training samples that is kept.
        weight: Share of the stage, relative to the weights of its other subsets. Without weights a stage draws
            uniformly from all samples of its subsets.
        rotation: Degrees, counter-clockwise, by which images are turned, in training and at test.
        permutation: Seed of the permutation of pixels (or features); None leaves them in place.
        task: Name of the task this belongs to; without one the subset is a task of its own.

    Example:
        >>> Subset(dataset="digits", classes=(0, 1), rotation=30).task_name
        'digits 0/1 turned 30'
    """

    dataset: Annotated[str, Field(min_length=1)]
    classes: Annotated[tuple[ClassName, ...], Field(min_length=1)] | None = None
    fraction: Share = 1.0
    weight: Annotated[float, Field(gt=0)] | None = None
    rotation: float = 0.0
    permutation: Label | None = None
    task: str | None = None

    @model_validator(mode="after")
    def _classes_differ(self) -> Subset:
        twice = [label for label, n in Counter(self.classes or ()).items() if n > 1]
        if twice:
            raise ValueError(f"classes of {self.dataset} are named once each; {twice} appear more often")
        return self

    @property
    def task_name(self) -> str:
        """The task that the subset belongs to."""
        if self.task is not None:
            return self.task
        words = [Path(self.dataset).name.removesuffix(".npz")]  # of a path, only what it leads to
        words += ["/".join(map(str, self.classes))] if self.classes is not None else []
        words += [f"turned {self.rotation:g}"] if self.rotation else []
        words += [f"permuted {self.permutation}"] if self.permutation is not None else []
        return " ".join(words)


class Stage(_Recipe):
    """A stretch of the stream with one distribution; its length is given by exactly one of three fields.

    Attributes:
        subsets: What is drawn from.
        epochs: Length in passes over all samples of the subsets.
        samples: Length in samples.
        steps: Length in batches.
        replacement: Whether a sample may come twice. None: not within a stage of at most one epoch; in longer ones,
            weighted ones, and those measured in samples or steps, yes.

    Example:
        >>> Stage(subsets=[{"dataset": "digits"}], epochs=1).with_replacement
        False
        >>> Stage(subsets=[{"dataset": "digits"}], steps=50).with_replacement
        True
    """

    subsets: Annotated[tuple[Subset, ...], Field(min_length=1)]
    epochs: Annotated[float, Field(gt=0)] | None = None
    samples: Annotated[int, Field(gt=0)] | None = None
    steps: Annotated[int, Field(gt=0)] | None = None
    replacement: bool | None = None

    @model_validator(mode="after")
    def _check(self) -> Stage:
        given = [name for name in ("epochs", "samples", "steps") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a stage's length is one of epochs, samples or steps; got {given or 'none of them'}")
        n_weighted = sum(subset.weight is not None for subset in self.subsets)
        if n_weighted not in (0, len(self.subsets)):
            raise ValueError(
                f"all subsets of a stage have a weight or none has; {n_weighted} of {len(self.subsets)} do"
            )
        if n_weighted and self.replacement is False:
            raise ValueError("a weighted stage is drawn with replacement; leave out replacement = false or the weights")
        return self

    @property
    def weighted(self) -> bool:
        """Whether the subsets' shares are given."""
        return self.subsets[0].weight is not None

    @property
    def with_replacement(self) -> bool:
        """Whether a sample may come twice, the default resolved."""
        if self.replacement is not None:
            return self.replacement
        return self.weighted or self.epochs is None or self.epochs > 1


class Blur(_Recipe):
    """Boundaries between stages made gradual: every sample arrives earlier or later by a random distance.

    Attributes:
        kind: ``linear``: distances are uniform, so that the next stage's share rises linearly from 0 to 1 over `width`
            stage lengths; ``gaussian``: they are normal, so that it rises like the normal distribution function.
        width: Length of the linear rise, or standard deviation of the normal distances, as a share of the mean length
            of a stage.

    Example:
        >>> Blur(width=0.5)
        Blur(kind='linear', width=0.5)
    """

    kind: Literal["linear", "gaussian"] = "linear"
    width: Annotated[float, Field(gt=0)]


class Transform(_Recipe):
    """Transformations applied to every image before a learner receives it.

    Attributes:
        size: Height and width to which images are resized (bilinear); None leaves them. Folders of images of several
            sizes need it.
        channels: 3 repeats grey images; 1 averages colours; None leaves them.
        binarise: Each pixel is drawn as 0 or 1 with its intensity as the probability, anew at every access.

    Example:
        >>> stage = {"subsets": [{"dataset": "digits"}], "epochs": 1}
        >>> Scenario(name="large", stages=[stage], transform=Transform(size=16, channels=3)).build().input_shape
        (3, 16, 16)
    """

    size: Annotated[int, Field(gt=0)] | None = None
    channels: Literal[1, 3] | None = None
    binarise: bool = False


class Scenario(_Recipe):
    """A whole stream's recipe.

    Attributes:
        name: What it is called.
        summary: One line that says what it is.
        stages: Its stages, in order.
        batch_size: Samples in a batch; the last batch of a stage may have fewer.
        labelled: Whether learners receive labels.
        labels: ``shared``: equal labels of different datasets mean the same; ``disjoint``: each dataset has its own.
        transform: What is done to every image.
        fraction: Share of every class's training samples that exists at all; stages measured in epochs shorten with it.
        label_noise: Share of the training samples whose label is replaced by another one.
        blur: How boundaries between stages are made gradual.
        iid: All samples of all stages in one random order.
        endless: After the last stage the first begins again, with new draws, for ever.
        validation: A tenth of every class's training samples takes the place of the test set, for choices.

    Example:
        >>> stages = [{"subsets": [{"dataset": "digits", "classes": pair}], "epochs": 1} for pair in ([0, 1], [2, 3])]
        >>> stream = Scenario(name="two", stages=stages, batch_size=20).build(seed=0)
        >>> stream.n_batches, [task.name for task in stream.tasks]
        (30, ['digits 0/1', 'digits 2/3'])
    """

    name: Annotated[str, Field(min_length=1)]
    summary: str = ""
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    batch_size: Annotated[int, Field(gt=0)] = 10
    labelled: bool = True
    labels: Literal["shared", "disjoint"] = "shared"
    transform: Transform = Transform()
    fraction: Share = 1.0
    label_noise: Annotated[float, Field(ge=0, le=1)] = 0.0
    blur: Blur | None = None
    iid: bool = False
    endless: bool = False
    validation: bool = False
    has_tests: ClassVar[bool] = True  # every task has its test set

    @property
    def target(self) -> Literal["classes", "none"]:
        """Whether learners receive classes, or nothing beside x."""
        return "classes" if self.labelled else "none"

    @model_validator(mode="after")
    def _tasks_differ(self) -> Scenario:
        datasets: dict[str, str] = {}
        for subset in (subset for stage in self.stages for subset in stage.subsets if subset.task is None):
            known = datasets.setdefault(subset.task_name, subset.dataset)
            if known != subset.dataset:
                raise ValueError(
                    f"subsets of {known} and {subset.dataset} would both be the task {subset.task_name!r}; name one "
                    'of them, as in { dataset = "...", task = "..." }'
                )
        return self

    def build(self, *, data_dir: str | Path | None = None, seed: int = 0, device: torch.device | str = "cpu") -> Stream:
        """Reads the data and makes the stream.

        Args:
            data_dir: Where datasets lie; see :func:`~cndpm.datasets.resolve_data_dir`.
            seed: Determines every draw.
            device: Where the data are kept and batches arrive.
        """
        from cndpm.streams.scenario_stream import ScenarioStream

        return ScenarioStream(self, data_dir=data_dir, seed=seed, device=device)
