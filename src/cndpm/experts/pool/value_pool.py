"""One pool of members that answers real values for rows of tables, follows rules that change and finds former ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.experts.pool.class_pool import When
from cndpm.experts.pool.latest_rows import LatestRows
from cndpm.experts.pool.mix import shares
from cndpm.experts.pool.moments import Labels
from cndpm.experts.pool.representations import Floats
from cndpm.experts.pool.residuals import Residuals
from cndpm.experts.pool.value_members import KEEPS, N_MEMBERS, Said, ValueMembers
from cndpm.experts.pool.value_mix import Told, ValueMix
from cndpm.experts.pool.value_moments import ValueMoments
from cndpm.experts.pool.value_rules import Rules
from cndpm.state import State, StateError, expect, maybe, part, tensor, whole

__all__ = ["ValuePool"]

_FITS = (20, 100, 500)
"""Rows after which representations are made of what is kept, as long as there is one rule."""

_CHUNK = 10
"""Rows learned at a time."""

_FAST = 0.99
"""What forgets at least so fast is evidence of a rule that changed."""

_COUNTS = ("n_seen", "n_fits", "measured", "seed")

_RATES = np.concatenate([[*keeps, 1.0] for keeps in KEEPS])


class ValuePool:
    """Answers mean and variance of o targets from rows of d columns.

    Members are regressions that forget at several rates, rules that forget nothing, and means of the nearest rows. Each
    answers a Gaussian; they are weighed by how well they foretold the rows so far. Where what forgets is better by far
    than the rule in force, the rows since then found another rule; one that holds again is found by its densities.

    Constants: rates of forgetting, clocks, windows, the filter's and the lead's were given beforehand, as for
    classes; ridges and noise follow from the rows. Chosen on streams of our own (friedman functions of other seeds, a
    random walk of weights, pieces, two rules in turn, noise that grows with x): that only what forgets at 0.99 or
    faster is evidence of a change, how long errors count, and the number of neighbours whose errors give the width.

    Args:
        n_columns: d.
        n_outputs: o.
        n_rows: Rows kept for neighbours.
        evidence: Nats by which what forgets must lead before a rule is founded.
        n_rules: Rules kept at most.
        seed: Of the waves.

    Example:
        >>> x = np.random.default_rng(0).uniform(-3, 3, (300, 1))
        >>> pool = ValuePool(1, 1)
        >>> pool.learn(x, np.sin(x))
        >>> mean, variance = pool.answer(np.array([[1.0]]))[0, :, 0]
        >>> bool(abs(mean - np.sin(1)) < 0.1)
        True
    """

    for_classes: ClassVar[bool] = False

    def __init__(
        self,
        n_columns: int,
        n_outputs: int,
        *,
        n_rows: int = 5000,
        evidence: float = 20.0,
        n_rules: int = 8,
        seed: int = 0,
    ) -> None:
        self.n_columns, self.n_outputs, self.evidence, self.max_rules = n_columns, n_outputs, evidence, n_rules
        self._n_rows, self.seed = n_rows, seed
        self._begin()

    def _begin(self) -> None:
        """Has learned nothing."""
        self.n_seen, self.n_fits, self.measured = 0, 0, 0
        self.events: list[tuple[int, str, int]] = []
        slow = np.flatnonzero(_RATES == 1)
        self.rows = LatestRows(self.n_columns, self.n_outputs, max(self._n_rows, _FITS[0]))
        self._mix = ValueMix(N_MEMBERS, self.n_outputs, trusted=tuple(slow.tolist()))
        self._residuals, self._rules = Residuals(self.n_outputs), Rules(self.n_columns, self.n_outputs)
        self._members: ValueMembers | None = None
        self._before: list[dict[str, Floats]] = []  # the rule in force as it was before the doubt
        self._latest = np.zeros((N_MEMBERS, self.n_outputs))  # the members' latest errors
        self._asked: tuple[Said, Told] | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it can answer: some rows have come."""
        return self.n_seen > 0

    @property
    def n_rules(self) -> int:
        """Rules so far."""
        return len(self._rules)

    @property
    def shares(self) -> dict[str, float]:
        """Shares that rules, recent models and the nearest rows have in an answer for now."""
        return shares(self._mix.weights, np.flatnonzero(_RATES == 1), {"nearest rows": N_MEMBERS - len(_RATES)})

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of a saved state."""
        return _size(self.state_dict())

    def answer(self, x: Floats, when: When = "now", since: Sequence[float] = ()) -> Floats:
        """Returns mean and variance, (B, 2, o).

        Args:
            x: Rows, (B, d).
            when: "next" for the rows that come next in the stream: the latest errors count too. Values have no labels
                by which another time could be told from now.
            since: Not used: errors are known of what was learned.
        """
        if self._members is None:
            return np.tile(_so_far(self.rows.y), (len(x), 1, 1))
        made = np.empty((len(x), 2, self.n_outputs))
        for begin in range(0, len(x), 256):
            told = self._ask(self._members, x[begin : begin + 256])[1].answer
            made[begin : begin + 256] = self._residuals.tell(told, begin).answer if when == "next" else told
        made[:, 0] = made[:, 0] * self._members.scale + self._members.middle
        made[:, 1] *= self._members.scale**2
        return made

    def learn(self, x: Floats, y: Floats, *, row_by_row: bool = False) -> None:
        """Answers rows (B, d), then learns their targets (B, o).

        Args:
            x: Rows.
            y: Their targets.
            row_by_row: Whether each target was known before the next row was asked about.
        """
        for begin in range(0, len(x), _CHUNK):
            self._learn(x[begin : begin + _CHUNK], y[begin : begin + _CHUNK])

    def refresh(self) -> None:
        """Does what was postponed: regressions are made anew of their sums."""
        for moments in self._members.moments if self._members else ():
            moments.refresh()
        self._asked = None

    def extend(self, other: ValuePool) -> None:
        """Goes on with the rows that another pool keeps."""
        self.learn(other.rows.x, other.rows.y)

    def relabel(self, places: Labels) -> None:
        """Has nothing to do: there are no labels."""

    def forget(self, is_gone: NDArray[np.bool_]) -> None:
        """Learns anew what it keeps but for some rows, (m,) bool, which turned out to belong elsewhere."""
        x, y = self.rows.x[~is_gone].copy(), self.rows.y[~is_gone].copy()
        events, n_seen = self.events, self.n_seen - int(is_gone.sum())
        self._begin()
        self.learn(x, y)
        self.events, self.n_seen = events, n_seen

    def _ask(self, members: ValueMembers, x: Floats) -> tuple[Said, Told]:
        if self._asked is None or not np.array_equal(self._asked[0].x, x):
            said = members.say(x, self.rows, self._rules.weights)
            self._asked = said, self._mix.tell(said.mean, said.variance, said.widths)
        return self._asked

    def _learn(self, x: Floats, y: Floats) -> None:
        self.n_seen += len(x)
        if self._members is None:
            self.rows.add(x, y)
        else:
            self._learn_told(self._members, x, y)
        is_due = self.n_fits < len(_FITS) and self.n_seen >= _FITS[self.n_fits]
        if is_due and self.n_rules == 1 and len(self.rows) == self.rows.n:
            self._fit()
        elif self._members is not None and len(self.rows) and self.n_seen >= 2 * self.measured:
            self._members.measure_slopes(self.rows, self._rules.current)
            self.measured = self.n_seen
        self._asked = None

    def _fit(self) -> None:
        self.n_fits = sum(self.n_seen >= n for n in _FITS)
        former = self._members
        self._members = ValueMembers(self.rows, seed=[self.seed, self.n_fits], former=former)
        if former is not None:  # errors are in units of the targets' deviation
            self._residuals.latest *= former.scale / self._members.scale
            self._latest *= former.scale / self._members.scale
        self.measured, self._before, self._rules = self.n_seen, [], Rules(self.n_columns, self.n_outputs)
        if not self._n_rows:  # none is kept any longer than it takes to find units
            self.rows = LatestRows(self.n_columns, self.n_outputs, 0)

    def _learn_told(self, members: ValueMembers, x: Floats, y: Floats) -> None:
        said, told = self._ask(members, x)
        values = members.in_units(y)
        self._follow(members, said, values)
        ratios = ((values - told.answer[:, 0]) ** 2 / (told.wide * told.levels)[1, 1]).mean(axis=1)
        members.learn(values, said, ratios, self._rules.current)
        if self._rules.is_new(self.evidence):
            self._found(members)
        self._residuals.learn(values, told.answer, self._residuals.tell(told.answer))
        self._mix.learn(values, told)
        self.rows.add(x, y, said.z)

    def _follow(self, members: ValueMembers, said: Said, values: Floats) -> None:
        """Follows the rule in force, and remembers what it was while there is doubt."""
        each = [m.log_densities(values, a) for m, a in zip(members.moments, said.answers, strict=True)]
        pair = [self._mix.favoured(np.flatnonzero(some)) for some in (_RATES <= _FAST, _RATES == 1)]
        errors = values - said.mean
        gains = self._rules.gains(errors[pair], said.variance[pair], self._latest[pair[1]])
        former, self._latest = self._rules.current, errors[:, -1]
        returned = self._rules.hear(np.mean(each, axis=0), gains, said.x, values)
        if returned:
            self.events.append((self.n_seen, "returned", self._rules.current))
            self._restore(members, former)
        if not self._rules.in_doubt:
            self._before = []
        elif not self._before:
            self._before = [moments.copy_rule(self._rules.current) for moments in members.moments]

    def _restore(self, members: ValueMembers, rule: int) -> None:
        """Takes back what a rule has learned since the doubt began."""
        for moments, state in zip(members.moments, self._before, strict=False):
            moments.set_rule(rule, state)
        self._before = []

    def _found(self, members: ValueMembers) -> None:
        self._restore(members, self._rules.current)
        members.found(self._rules.x, self._rules.y)
        self._rules.found()
        self.events.append((self.n_seen, "founded", self._rules.current))
        if self.n_rules > self.max_rules:
            n = members.moments[0].n[members.moments[0].n_recent : -1]
            self._rules.drop(worst := int(n.argmin()))
            for moments in members.moments:
                moments.drop(worst)

    def state_dict(self) -> State:
        """Returns everything that answers rest on."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return counts | {
            **{name: getattr(self, f"_{name}").state_dict() for name in ("mix", "residuals", "rules")},
            "kept": self.rows.state_dict(),
            "members": None if self._members is None else self._members.state_dict(),
            "before": [{name: torch.from_numpy(part.copy()) for name, part in one.items()} for one in self._before],
            "latest": torch.from_numpy(self._latest.copy()),
            "events": [list(event) for event in self.events],
        }

    def load_state_dict(self, state: State) -> None:
        """Takes a state of :meth:`state_dict`.

        Raises:
            StateError: It has another form; nothing is changed.
        """
        d, o = self.n_columns, self.n_outputs
        made = ValuePool(d, o, n_rows=self._n_rows, evidence=self.evidence, n_rules=self.max_rules)
        parts = dict.fromkeys(("kept", "mix", "residuals", "rules"), part()) | {"members": maybe(part())}
        expect(state, dict.fromkeys(_COUNTS, whole()) | parts | {"latest": tensor(N_MEMBERS, o)})
        made.rows.load_state_dict(state["kept"])
        made._mix.load_state_dict(state["mix"], members=N_MEMBERS, o=o)
        made._residuals.load_state_dict(state["residuals"], o=o)
        n_rules = made._rules.load_state_dict(state["rules"], d=d, o=o)["rules"]
        if state["members"] is not None:
            made._members = ValueMembers.from_state(state["members"], d, o, n_rules)
        made.events, made._before = _events(state.get("events")), _before(state.get("before"), made._members)
        made._latest = state["latest"].numpy().copy()
        self.__dict__.update(made.__dict__, **{name: state[name] for name in _COUNTS})


def _so_far(y: Floats) -> Floats:
    """Returns mean and variance of a few targets, (2, o), wider the fewer they are."""
    n = len(y)
    if n == 0:
        return np.stack([np.zeros(y.shape[1]), np.ones(y.shape[1])])
    mean = y.mean(axis=0)
    spread = ((y - mean) ** 2).sum(axis=0) / max(n - 1, 1)
    return np.stack([mean, np.maximum(spread, mean**2 / n**2 + 1e-12) * (1 + 3 / n)])


def _size(node: Any) -> int:
    """Returns how many numbers a state holds."""
    if isinstance(node, dict):
        node = list(node.values())
    if isinstance(node, list):
        return sum(map(_size, node))
    return int(node.numel()) if hasattr(node, "numel") else 1


def _events(saved: Any) -> list[tuple[int, str, int]]:
    if not isinstance(saved, list) or not all(isinstance(one, list | tuple) and len(one) == 3 for one in saved):
        raise StateError(f"'events' must be a list of sample, what and rule; got {str(saved)[:80]}")
    return [(int(sample), str(what), int(rule)) for sample, what, rule in saved]


def _before(saved: Any, members: ValueMembers | None) -> list[dict[str, Floats]]:
    moments = members.moments if members else []
    if not isinstance(saved, list) or len(saved) not in (0, len(moments)):
        raise StateError(f"'before' must hold nothing or one rule for each representation; got {str(saved)[:80]}")
    for m, one in zip(moments, saved, strict=False):
        expect(one, m.kept, members=1, f=m.sums.shape[1], o=m.errors.shape[1])
    return [{name: one[name].numpy().copy() for name in ValueMoments.kept} for one in saved]
