"""A bounded memory of samples, filled by reservoir sampling.

Every sample of a stream of unknown length is in the memory with the same probability, capacity / n_seen (Vitter 1985,
Algorithm R): the t-th sample takes a place drawn uniformly from 1..t, where that place exists.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.components import LearnerPart, NetworkSettings
from cndpm.baselines.shared.composed import ClassifierLearner
from cndpm.experts.features.views import shift_and_mirror
from cndpm.learner import Footprint
from cndpm.state import State

AugmentationName = Literal["auto", "none", "shift", "crop-flip"]
"""Names of augmentations; "auto" depends on the images, see `Augmentation`."""


class Augmentation:
    """Shifts an image by up to an eighth of its width; "crop-flip" also mirrors every second one.

    "auto" is crop-flip for colour images, shift for grey ones and none for everything else: digits have a handedness,
    objects have not.
    """

    def __init__(self, name: AugmentationName, input_shape: tuple[int, ...], generator: torch.Generator) -> None:
        is_image = len(input_shape) == 3
        if name == "auto":
            name = "none" if not is_image else "crop-flip" if input_shape[0] == 3 else "shift"
        if name != "none" and not is_image:
            raise ValueError(f"{name} takes images (channels, height, width); got {input_shape}. Choose 'none'.")
        self.name = name
        self.generator = generator
        self.reach = max(1, input_shape[-1] // 8)

    def __call__(self, x: Tensor) -> Tensor:
        """Returns changed copies, (batch, channels, height, width); x itself if there is nothing to change."""
        if self.name == "none":
            return x
        shifts = torch.randint(0, 2 * self.reach + 1, (2, len(x)), generator=self.generator)
        mirrored = torch.zeros(len(x), dtype=torch.bool)
        if self.name == "crop-flip":
            mirrored = torch.rand(len(x), generator=self.generator) < 0.5
        return shift_and_mirror(x, shifts.to(x.device), mirrored.to(x.device), reach=self.reach)


class ReplaySettings(NetworkSettings):
    """Settings of every learner with a replay memory."""

    memory_size: int = Field(500, ge=1, description="samples kept for replay")
    replay_batch: int | None = Field(None, ge=1, description="samples replayed per step; null: as many as the batch")
    augmentation: AugmentationName = Field("none", description="random changes of the images, drawn anew at every use")

    def n_replayed(self, batch_size: int) -> int:
        """Returns the number of samples to replay beside a batch of this size."""
        return batch_size if self.replay_batch is None else self.replay_batch


class ReplayMemory(LearnerPart):
    """At most `capacity` samples on a device, each a row of named tensors such as x, y and logits.

    The generator, on the CPU, is the learner's own and the source of all random choices.
    """

    def __init__(self, capacity: int, generator: torch.Generator, *, device: torch.device) -> None:
        self.capacity = capacity
        self.generator = generator
        self.device = device
        self.n_seen = 0
        self._size = 0
        self._columns: dict[str, Tensor] = {}

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> dict[str, Tensor]:
        """All samples: one tensor of len(self) rows for each name."""
        return {name: column[: self._size] for name, column in self._columns.items()}

    def add(self, **rows: Tensor) -> None:
        """Offers a batch, sample by sample in order."""
        n = len(next(iter(rows.values())))
        seen = torch.arange(self.n_seen + 1, self.n_seen + n + 1)
        drawn = (torch.rand(n, generator=self.generator, dtype=torch.float64) * seen).long()
        places = torch.where(seen <= self.capacity, seen - 1, drawn).tolist()
        self.n_seen += n
        # Of two samples of one batch that draw the same place the later one stays, as if they had come one by one.
        winners = {place: row for row, place in enumerate(places) if place < self.capacity}
        if winners:
            self.put(list(winners), **{name: value[list(winners.values())] for name, value in rows.items()})

    def put(self, places: list[int], **rows: Tensor) -> None:
        """Writes one row to each of the (distinct) places; places beyond the last one must follow it without gaps."""
        if not self._columns:
            self._columns = {
                name: torch.empty(self.capacity, *value.shape[1:], dtype=value.dtype, device=self.device)
                for name, value in rows.items()
            }
        index = torch.tensor(places).to(self.device)
        for name, value in rows.items():
            self._columns[name].index_copy_(0, index, value.detach().to(self.device))
        self._size = max(self._size, max(places) + 1)

    def sample(self, n: int) -> dict[str, Tensor]:
        """Draws n different rows uniformly; all of them if there are fewer."""
        return self.take(torch.randperm(self._size, generator=self.generator)[:n])

    def take(self, index: Tensor) -> dict[str, Tensor]:
        """Returns copies of the rows with these numbers."""
        index = index.to(self.device)
        return {name: column.index_select(0, index) for name, column in self._columns.items()}

    def shrink(self, capacity: int) -> None:
        """Keeps a uniform choice of at most `capacity` rows and holds no more from now on; a memory never grows."""
        self.capacity = min(capacity, self.capacity)
        if self._size > self.capacity:
            kept, n_seen = self.sample(self.capacity), self.n_seen
            self.clear()
            self.put(list(range(self.capacity)), **kept)
            self.n_seen = n_seen

    def clear(self) -> None:
        """Forgets every sample and starts counting anew."""
        self.n_seen, self._size, self._columns = 0, 0, {}

    def footprint(self) -> Footprint:
        """Counts the samples held now and their bytes."""
        n_bytes = sum(rows.numel() * rows.element_size() for rows in self.rows.values())
        return Footprint(0, 0, memory_samples=self._size, memory_bytes=n_bytes)

    def state_dict(self) -> State:
        rows = {name: value.clone() for name, value in self.rows.items()}
        return {"capacity": self.capacity, "n_seen": self.n_seen, "rows": rows}

    def load_state_dict(self, state: State) -> None:
        self.clear()
        self.capacity, self.n_seen = state["capacity"], state["n_seen"]
        rows = state["rows"]
        if rows:
            self.put(list(range(len(next(iter(rows.values()))))), **rows)


class ReplayLearner(ClassifierLearner):
    """A classifier, a memory and random changes of images; what is stored and what is replayed is the learner's own.

    Inputs are augmented at every use; the memory holds them unchanged.
    """

    settings: ReplaySettings

    def _make(self) -> None:
        super()._make()
        self.memory = ReplayMemory(self.settings.memory_size, self.random.generator, device=self.device)
        self.augmentation = Augmentation(self.settings.augmentation, self.input_shape, self.random.generator)
        self.parts["memory"] = self.memory

    def replayed(self, n: int) -> dict[str, Tensor]:
        """Draws the rows to replay beside a batch of n."""
        return self.memory.sample(self.settings.n_replayed(n))

    def joined(self, x: Tensor, y: Tensor, rows: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Returns the batch followed by replayed rows (of "x" and "y"), inputs augmented, and their labels."""
        return self.augmentation(torch.cat([x, rows["x"]])), torch.cat([y, rows["y"]])
