"""The latest samples that experts have learned, for networks to take several steps on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from cndpm.state import State, StateError, expect, integers, tensor, whole


class RecentSamples:
    """The last `capacity` samples with the experts' responsibilities for them.

    Samples stay on their device; labels and responsibilities stay on the host, where the experts to train are chosen.
    """

    def __init__(self, capacity: int, device: torch.device | str) -> None:
        self.capacity, self._device = capacity, torch.device(device)
        self._x, self._y = torch.zeros(0, device=device), torch.zeros(0, dtype=torch.long)
        self._responsibilities = torch.zeros(0, 0, dtype=torch.float64)
        self._size = self._next = 0

    def __len__(self) -> int:
        return self._size

    @property
    def n_bytes(self) -> int:
        """Bytes of samples and labels."""
        return sum(part[: self._size].numel() * part.element_size() for part in (self._x, self._y))

    def begin(self, x: Tensor, y: Tensor, *, n_experts: int) -> None:
        """Starts anew with the samples (M, ...) and labels (M,) that the last of the experts is made of."""
        self._x, self._y = (part.new_zeros(self.capacity, *part.shape[1:]) for part in (x, y))
        self._responsibilities = torch.zeros(self.capacity, n_experts, dtype=torch.float64)
        self._size = self._next = 0
        last = torch.zeros(len(x), n_experts, dtype=torch.float64)
        last[:, -1] = 1.0
        self.add(x, y, last)

    def add(self, x: Tensor, y: Tensor, responsibilities: Tensor) -> None:
        """Adds samples (B, ...), labels (B,) and responsibilities (B, K) in place of the oldest."""
        rows = (x[-self.capacity :], y[-self.capacity :], responsibilities[-self.capacity :])
        n_first = min(len(rows[0]), self.capacity - self._next)
        for ring, new in zip((self._x, self._y, self._responsibilities), rows, strict=True):
            ring[self._next : self._next + n_first] = new[:n_first]
            ring[: len(new) - n_first] = new[n_first:]
        self._next = (self._next + len(rows[0])) % self.capacity
        self._size = min(self.capacity, self._size + len(rows[0]))

    def draw(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Draws samples (n, ...), labels (n,) and responsibilities (n, K) with replacement."""
        rows = torch.randint(self._size, (n,), generator=generator)
        return self._x[rows.to(self._device)], self._y[rows], self._responsibilities[rows]

    def merge(self, k: int, into: int) -> None:
        """Adds the responsibilities of an expert that was removed to those of another one."""
        merged = self._responsibilities
        merged[:, into] += merged[:, k]
        self._responsibilities = torch.cat([merged[:, :k], merged[:, k + 1 :]], dim=1)

    def extend(self, other: RecentSamples, *, n_experts: int) -> None:
        """Adds the samples of another model, whose experts come behind these; both are thinned out evenly."""
        if not len(self) or not len(other):
            if len(other):
                self.load_state_dict(other.state_dict())
            return
        (x, y, mine), (others_x, others_y, theirs) = self.state_dict()["rows"], other.state_dict()["rows"]
        mine = functional.pad(mine, (0, n_experts - mine.shape[1]))
        theirs = functional.pad(theirs, (n_experts - theirs.shape[1], 0))
        n = len(y) + len(others_y)
        kept = torch.linspace(0, n - 1, min(self.capacity, n)).long()
        joined = [torch.cat(pair) for pair in ((x, others_x), (y, others_y), (mine, theirs))]
        rows = [part[kept.to(part.device)] for part in joined]
        self.load_state_dict({"rows": rows, "next": len(kept) % self.capacity})

    def state_dict(self) -> State:
        """Returns the samples and the place of the next ones."""
        rows = (self._x, self._y, self._responsibilities)
        return {"rows": [part[: self._size].clone() for part in rows], "next": self._next}

    def load_state_dict(self, state: State, *, n_classes: int | None = None, **sizes: int) -> None:
        expect(state, {"next": whole(0, self.capacity)})
        x, y, responsibilities = state["rows"]
        forms = {"y": integers("n", low=0, below=n_classes), "responsibilities": tensor("n", "experts")}
        sizes = expect({"y": y, "responsibilities": responsibilities}, forms, **sizes if len(y) else {})
        expect({"x": x}, {"x": tensor("n", *x.shape[1:], dtype=torch.float32)}, n=sizes["n"])
        if sizes["n"] > self.capacity:
            raise StateError(f"at most {self.capacity} samples were expected; got {sizes['n']}")
        self._x, self._y, self._responsibilities = (
            part.new_zeros(self.capacity, *part.shape[1:], device=device)
            for part, device in ((x, self._device), (y, "cpu"), (responsibilities, "cpu"))
        )
        self._size, self._next = len(x), state["next"]
        for ring, part in zip((self._x, self._y, self._responsibilities), state["rows"], strict=True):
            ring[: self._size] = part
