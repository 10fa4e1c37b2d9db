"""Linear models of one representation that forget at several rates: when they learn and when they are solved anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

import torch
from torch import Tensor

from cndpm.experts.pool.faded_products import FadedProducts
from cndpm.experts.pool.forgetting import renewal_interval
from cndpm.state import State, StateError, expect, part
from cndpm.state.expecting import Form

__all__ = ["Members"]

_PATIENCE = 4


class Members(ABC):
    """M linear models over d features, each solved anew when enough samples have come; abstract.

    Args:
        n_features: d.
        n_others: Values that follow the features in a row of the products: what is told of the target.
        keeps: What is left of a sample after the next one, by member; 1 forgets nothing.

    Example:
        >>> from cndpm.experts.pool import Discriminants
        >>> issubclass(Discriminants, Members)
        True
    """

    def __init__(self, n_features: int, n_others: int, keeps: tuple[float, ...]) -> None:
        self.n_features, self.keeps = n_features, list(keeps)
        self._sums = FadedProducts(n_features + n_others, keeps)
        self._waits = [0] * len(keeps)

    def __len__(self) -> int:
        return len(self.keeps)

    @property
    def n_numbers_kept(self) -> int:
        """Sums and solutions."""
        return self._sums.n_numbers_kept + sum(part.numel() for part in self._solutions().values())

    @abstractmethod
    def admit(self, n_classes: int) -> None:
        """Makes room for class indices below `n_classes`."""

    def append(self) -> None:
        """Adds a member that forgets nothing and has learned nothing."""
        self.keeps.append(1.0)
        self._waits.append(0)
        self._sums.append(1.0)
        self._append_solution()

    def begin(self, m: int, other: int | None = None, labels: list[int] | None = None) -> None:
        """Has member m begin anew, or where another one stands but for its labels.

        Args:
            m: The member.
            other: The other one, which may be the same.
            labels: The label that each of the other's has become; None begins with nothing.
        """
        if other is None or labels is None:
            self._sums.clear(m)
            self._waits[m] = 0
            self._clear_solution(m)
        else:
            order = torch.arange(self._sums.width)
            order[self.n_features + torch.tensor(labels)] = self.n_features + torch.arange(len(labels))
            self._sums.copy(m, other, order)
            self._waits[m] = 0

    @abstractmethod
    def answers(self, z: Tensor) -> Tensor:
        """Returns what every member says of features (B, d), (M, B, ...)."""

    def learn(
        self,
        z: Tensor,
        y: Tensor,
        members: Collection[int],
        *,
        answered: Tensor | None = None,
        patient: Collection[int] = (),
    ) -> None:
        """Learns a batch and renews the solutions that are due.

        Args:
            z: Features, (B, d), double.
            y: Class indices (B,), or targets of about unit variance (B, o), double.
            members: Those that learn.
            answered: The members' answers to these features, where they were asked since they learned last.
            patient: Those that hardly matter, and wait four times as long for the next solution.
        """
        n_rows = z.shape[0]
        self._take_note(z, y, members, answered)
        self._sums.add(self._joined(z, y), members)
        for m in members:
            self._waits[m] -= n_rows
            if self._waits[m] <= 0:
                n = self._solve(m, self._sums.of(m))
                self._waits[m] = renewal_interval(n, self.n_features) * (_PATIENCE if m in patient else 1)

    def hurry(self) -> None:
        """Has all members that learn the next batch renewed."""
        self._waits = [0] * len(self)

    @abstractmethod
    def _take_note(self, z: Tensor, y: Tensor, members: Collection[int], answered: Tensor | None) -> None:
        """Takes note of the errors on samples that are about to be learned."""

    @abstractmethod
    def _joined(self, z: Tensor, y: Tensor) -> Tensor:
        """Returns rows of features and what is told of the target, (B, d + others)."""

    @abstractmethod
    def _solve(self, m: int, sums: Tensor) -> float:
        """Renews the solution of member m from its sums (d + others, d + others); returns the samples it rests on."""

    @abstractmethod
    def _clear_solution(self, m: int) -> None:
        """Puts the solution of member m where it began."""

    @abstractmethod
    def _append_solution(self) -> None:
        """Makes room for the solution of one member more."""

    @abstractmethod
    def _solutions(self) -> dict[str, Tensor]:
        """Returns all that answers depend on, by the names of attributes without their underscore."""

    @abstractmethod
    def _forms(self) -> dict[str, Form]:
        """Returns their forms; sizes are named `members` and `d`."""

    def state_dict(self) -> State:
        """Returns sums and solutions."""
        solutions = {name: part.clone() for name, part in self._solutions().items()}
        return {"sums": self._sums.state_dict(), "waits": list(self._waits), **solutions}

    def load_state_dict(self, state: State) -> None:
        """Restores them to the bit; a state of another form may be taken in part before it is refused."""
        expect(state, {"sums": part(), **self._forms()}, members=len(self), d=self.n_features)
        waits = state.get("waits")
        if not isinstance(waits, list) or len(waits) != len(self) or not all(type(n) is int for n in waits):
            raise StateError(f"'waits' must be a list of {len(self)} whole numbers; got {str(waits)[:80]}")
        self._sums.load_state_dict(state["sums"])
        for name in self._solutions():
            setattr(self, f"_{name}", state[name].cpu().clone())
        self._waits = list(waits)
