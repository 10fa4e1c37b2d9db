"""The form of a dataset: labelled samples for training and for testing."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Dataset", "Split"]


@dataclass(frozen=True)
class Split:
    """Samples and their labels.

    Attributes:
        x: Images (n, C, H, W) as uint8, or rows of features (n, d) as float32.
        y: Class indices (n,), int64.
    """

    x: Tensor
    y: Tensor

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"a split has one label per sample; got {len(self.x)} samples and {len(self.y)} labels")

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Dataset:
    """A training and a test set over the same classes.

    Attributes:
        name: Its name.
        train: The training set.
        test: The test set; its samples have the shape of those of `train`.
        classes: The name of each label, in order.
    """

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        for part, split in (("training", self.train), ("test", self.test)):
            if len(split) and not 0 <= int(split.y.min()) <= int(split.y.max()) < len(self.classes):
                raise ValueError(
                    f"{self.name}: labels of the {part} set run from {int(split.y.min())} to {int(split.y.max())}; "
                    f"there are {len(self.classes)} classes, numbered from 0"
                )
