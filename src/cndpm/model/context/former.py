"""Keeps what was the present for rows of another range, until such rows are predicted better without it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.pool.family import FLOOR, Family
from cndpm.model.context.representations import Representations
from cndpm.model.context.rules import Features, Rules
from cndpm.state import State, expect, flag, number, part, tensor

__all__ = ["MOST_FORMERS", "Former", "Formers", "Units"]

MOST_FORMERS = 7
"""Ranges that were left and are kept."""

_MOST_PARTS = 2
"""Those of them that experts know as parts of another."""

Floats = NDArray[np.float64]


class Units(NamedTuple):
    """The units in which rules see values; class indices have none.

    Attributes:
        shift: What is subtracted from every value, (n_outputs,); (0,) for classes.
        scale: What it is divided by, (n_outputs,); (0,) for classes.

    Example:
        >>> Units(np.array([1.0]), np.array([2.0])).targets(torch.tensor([[5.0]])).item()
        2.0
    """

    shift: Floats = np.zeros(0)
    scale: Floats = np.zeros(0)

    @classmethod
    def of(cls, y: Tensor) -> Units:
        """Returns the units in which values (n, n_outputs) have mean 0 and deviation 1."""
        values = y.double().numpy()
        return cls(values.mean(axis=0), np.maximum(values.std(axis=0), 1e-9))

    @classmethod
    def of_state(cls, state: State) -> Units:
        """Returns the units that a state has as its shift and scale."""
        return cls(*(state[name].cpu().numpy().copy() for name in ("shift", "scale")))

    def targets(self, y: Tensor) -> Tensor:
        """Returns values in these units, class indices as they are."""
        return torch.from_numpy((y.double().numpy() - self.shift) / self.scale) if len(self.scale) else y

    def answer_in(self, answer: Floats) -> Floats:
        """Returns means and variances (B, 2, n_outputs) in these units, log-probabilities as they are."""
        if not len(self.scale):
            return answer
        return np.stack([(answer[:, 0] - self.shift) / self.scale, answer[:, 1] / self.scale**2], axis=1)

    def answer_from(self, answer: Floats) -> Floats:
        """Returns what is in these units as it was."""
        if not len(self.scale):
            return answer
        return np.stack([answer[:, 0] * self.scale + self.shift, answer[:, 1] * self.scale**2], axis=1)


class Former:
    """Representations and the rules over them, as they were when rows left their range.

    Args:
        representations: Fitted for the range.
        rules: Over them.
        units: Of the rules' targets.

    Attributes:
        lead: Nats by which the present has predicted rows of this range better.
        is_whole: Whether experts of its own know the range, so that this former answers for their places.

    Example:
        >>> from cndpm.experts.pool import ClassFamily
        >>> x, generator = torch.randn(100, 2), torch.Generator()
        >>> representations = Representations(10)
        >>> representations.fit(x, torch.arange(100) % 2, generator)
        >>> sizes = {"sizes": representations.sizes, "width": 2, "evidence": 20.0, "n_rules": 8, "served": 300}
        >>> former = Former(representations, Rules(ClassFamily(), [(0.98,)] * 3, **sizes), Units())
        >>> former.answer(x[:5], torch.zeros(5, 2)).shape
        torch.Size([5, 2])
    """

    def __init__(self, representations: Representations, rules: Rules, units: Units) -> None:
        self.representations, self.rules, self.units = representations, rules, units
        self.lead, self.is_whole = 0.0, False

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of models and representations."""
        return self.rules.n_numbers_kept + self.representations.n_numbers_kept

    def answer(self, rows: Tensor, experts: Tensor) -> Tensor:
        """Returns log-probabilities (B, C), or mean and variance (B, 2, n_outputs).

        Args:
            rows: (B, d), on the host.
            experts: What the mixture of experts answers, for classes of which there are models.
        """
        features: Features = self.representations.cut(self.representations(rows))
        mixed = self.rules.answer(features, self.units.answer_in(experts.numpy())).mixed
        return torch.from_numpy(self.units.answer_from(mixed))

    def state_dict(self) -> State:
        """Returns everything."""
        return {
            "representations": self.representations.state_dict(),
            "rules": self.rules.state_dict(),
            "shift": torch.from_numpy(self.units.shift.copy()),
            "scale": torch.from_numpy(self.units.scale.copy()),
            "lead": self.lead,
            "is_whole": self.is_whole,
        }

    @staticmethod
    def check(state: State, *, n_outputs: int) -> None:
        """Raises StateError where the parts of a state have another form.

        Args:
            state: As :meth:`state_dict` returns it.
            n_outputs: Of values; 0 for classes.
        """
        parts = {"representations": part(), "rules": part(), "lead": number(0), "is_whole": flag()}
        expect(state, {**parts, "shift": tensor(n_outputs), "scale": tensor(n_outputs)})


class Formers(list[Former]):
    """Those that are kept, the latest last.

    Example:
        >>> Formers().n_numbers_kept
        0
    """

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all of them."""
        return sum(former.n_numbers_kept for former in self)

    def admit(self, n_classes: int) -> None:
        """Makes room for class indices below `n_classes`."""
        for former in self:
            former.rules.admit(n_classes)

    def owning(self, present: Representations, rows: Tensor) -> list[tuple[Former, Tensor]]:
        """Returns which rows belong to formers: those that are likelier in a range that experts know than in others.

        A part of such a range has the rows that lie in it and in no smaller one.

        Args:
            present: Whose range is compared with theirs.
            rows: (B, d), on the host.

        Returns:
            Formers that own any, with the rows' mask, (B,) bool.
        """
        if not self:
            return []
        volume, owner = torch.where(present.outside(rows), torch.inf, present.log_volume), torch.full((len(rows),), -1)
        likeliest = present.log_density(rows)
        for i, former in enumerate(self):
            if not former.is_whole:
                is_inside = ~former.representations.outside(rows) & (former.representations.log_volume < volume)
                owner[is_inside], volume[is_inside] = i, former.representations.log_volume
        for i, former in enumerate(self):
            if former.is_whole:
                density = former.representations.log_density(rows)
                owner[density > likeliest], likeliest = i, torch.maximum(density, likeliest)
        return [(former, owner == i) for i, former in enumerate(self) if bool((owner == i).any())]

    def compare(
        self, present: Representations, rows: Tensor, y: Tensor, *, now: Floats, experts: Tensor, family: Family
    ) -> None:
        """Adds by how much the present predicts rows of formers better than they do.

        Args:
            present: Whose range is compared with theirs.
            rows: (B, d), on the host.
            y: Class indices (B,) or targets (B, n_outputs).
            now: What the present answers, (B, ...).
            experts: What the mixture of experts answers, (B, ...).
            family: What is predicted.
        """
        for former, mine in self.owning(present, rows):
            both = np.stack([now[mine.numpy()], former.answer(rows[mine], experts[mine]).numpy()])
            better, worse = family.log_scores(both, y[mine].numpy())
            former.lead = max(0.0, former.lead + float(np.clip(better - worse, -FLOOR, FLOOR).sum()))

    def give_up(self, nats: float) -> None:
        """Gives up those whose rows the present has predicted better by so many nats."""
        self[:] = [former for former in self if former.lead < nats]

    def exchange(self, left: Former, rows: Tensor) -> Former | None:
        """Keeps one that was just left; takes out and returns the one that most of the latest rows belong to, if any.

        Args:
            left: What was the present.
            rows: The latest, (n, d).
        """
        owning = self.owning(left.representations, rows)
        back = next((former for former, mine in owning if 2 * int(mine.sum()) > len(rows)), None)
        if back is not None and back.is_whole:  # rows came from one range that experts know to another
            left.is_whole = True
        kept = [former for former in self if former is not back]
        dropped = [] if left.is_whole else [former for former in kept if not former.is_whole][: 1 - _MOST_PARTS]
        self[:] = [*[former for former in kept if former not in dropped][1 - MOST_FORMERS :], left]
        return back
