"""A pool of members that answers p(y | x) for labels, whatever order they come in.

Members are models of three representations that forget at several rates, rules that forget nothing, clusters fitted to
the rows kept, trees grown on them, and the nearest of them. What forgets, forgets with samples of the same label:
nothing that comes later moves a label that stays away. How often labels come is a factor of its own, so members are
compared by balanced answers, p(x | y) normalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.experts.pool.clusters import Clusters
from cndpm.experts.pool.dynamics import Dynamics
from cndpm.experts.pool.judging import weights_by
from cndpm.experts.pool.kept_rows import N_NEIGHBOUR_MEMBERS, KeptRows, neighbours
from cndpm.experts.pool.mix import LOWEST, TEMPERATURES, TOGETHER, Backlog, Mix, Told, log_normalised, shares
from cndpm.experts.pool.moments import ByLabel, Labels, Moments
from cndpm.experts.pool.representations import Floats, Representations
from cndpm.experts.pool.rules import KNOWN, Rules
from cndpm.experts.pool.trees import Trees
from cndpm.state import Keeps, State, StateError, expect, integers, maybe, number, part, tensor, whole

__all__ = ["ClassPool", "When"]

When: TypeAlias = Literal["now", "next", "any"]
"""Whether an answer is for now, for the very next row, or as if any time of the stream were equally likely."""

_KEEPS, _FADE = (0.9, 0.97, 0.995), 0.995
"""What recent models keep of a label when another of its samples comes, windows of ten to 200 of them, and of the
scatter, which all labels share."""

_FITTED_AT = (5, 20, 100, 520)
"""Rows after which representations are fitted anew, and the rows kept are learned anew; never with the row that founds
the first expert, by default the 500th, which would wait for both."""

_LATELY = 0.98
"""What lasts for fifty samples: models that keep no more may challenge a rule; labels so late tell if they mix."""

_MOST_OUTSIDE = 0.3
"""Share of the latest rows, more than usual, that lie beyond what representations tell apart: they are fitted anew."""

_JUDGED_EVERY = (20, 0.1, 200)
"""Rows between two judgements on kept rows: a part of those learned, and no fewer and no more than these."""

_NOTED_EVERY = 100
"""Rows between two notes of the evidence, so that there is one from before a change that was noticed late."""

_IN_RUNS = 0.2
"""How much less varied the latest labels must be than all for kept rows to judge in their place."""

_MOST_LABELS = 256
"""Labels beyond which the experts answer alone: what is kept here grows with their square."""

_AT_ONCE = 1000
"""Rows that are answered at once, so that what members say of them fits into the cache."""


class _Asked(NamedTuple):
    """Keeps what was said to rows: by members, log p(x | y), (M, B, C), by rules, (K, B, C), and what became of it."""

    x: Floats
    features: list[Floats]
    likely: Floats
    by_rules: Floats
    prior: Floats
    now: Told
    is_silent: NDArray[np.bool_] | None


class _SaidNext(NamedTuple):
    """Keeps what was said of the rows asked about last as those that come next: what labels before told, the answer."""

    lifted: Floats
    told: Told
    said: Floats


class ClassPool(Keeps):
    """Learns labels, and answers for now, for the next row, or for any time.

    Args:
        n_columns: Values of a row.
        n_rows: Rows kept at most; with 0 none is kept once there are representations.
        evidence: Nats by which models of the latest samples must lead to found a rule.
        n_rules: Rules kept at most.
        seed: Of the representations.

    Attributes:
        rows: The rows kept.
        events: Of rules: the sample's number, "founded" or "returned", the rule's index.
        n_seen: Rows learned.
        seed: Of the representations, which a pool that is restored takes over.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(1200, 3))
        >>> y = (x[:, 0] > 0).astype(int)
        >>> pool = ClassPool(3)
        >>> for start in range(0, 1200, 10):  # the rule is reversed in the middle
        ...     part = slice(start, start + 10)
        ...     pool.learn(x[part], y[part] if start < 800 else 1 - y[part])
        >>> pool.n_rules
        2
    """

    for_classes: ClassVar[bool] = True
    kept: ClassVar = {
        "counts": tensor("labels"),
        "lately": tensor("labels"),
        "mixing": number(0, 1),
        "n_seen": whole(),
        "seed": whole(),
        "n_fits": whole(0, len(_FITTED_AT)),
        "n_labels_fitted": whole(),
        "measured_at": whole(),
        "judged_at": whole(),
        "outside": number(0, 1),
        "usually_outside": number(0, 1),
    }

    def __init__(
        self, n_columns: int, *, n_rows: int = 5000, evidence: float = 20.0, n_rules: int = 8, seed: int = 0
    ) -> None:
        self._n_columns, self._n_rows, self.seed = n_columns, n_rows, seed
        self._evidence, self._most_rules = evidence, n_rules
        self.rows, self._dynamics = KeptRows(n_columns, max(n_rows, _FITTED_AT[0])), Dynamics()
        self._clusters, self._trees = Clusters(n_columns), Trees()
        self.counts, self.lately, self.mixing = np.zeros(0), np.zeros(0), 1.0
        self.n_seen = self.n_fits = self.n_labels_fitted = self.measured_at = self.judged_at = 0
        self.outside = self.usually_outside = 0.0
        self._maps: Representations | None = None
        self._moments: list[Moments] = []
        self.events: list[tuple[int, str, int]] = []
        self._rules = self._new_rules(0)
        rates = np.tile([*_KEEPS, 1.0], len(Representations.kinds))
        self._fast, self._lasting = np.flatnonzero(rates <= _LATELY), np.flatnonzero(rates == 1)
        self._n_members = len(rates) + 2 + N_NEIGHBOUR_MEMBERS
        self._unforgetful = [*self._lasting, self._n_members - 2, self._n_members - 1]  # rules, and nearest of all rows
        self._now, self._next = Mix(self._n_members), Mix(2 * self._n_members, n_others=1)
        self._earlier = [(deepcopy(self._now), deepcopy(self._next))] * 2
        self._kept_weights: Floats | None = None
        self._asked: _Asked | None = None
        self._placed = self.rows.place(np.zeros((0, n_columns)))  # where rows lie that were asked about last
        self._said_next: _SaidNext | None = None
        self._backlog = Backlog()

    @property
    def n_labels(self) -> int:
        """Labels met so far."""
        return len(self.counts)

    @property
    def is_ready(self) -> bool:
        """Whether it can answer: some rows have come, and labels are not too many."""
        return self._maps is not None and len(self.counts) <= _MOST_LABELS

    @property
    def n_rules(self) -> int:
        """Rules known; none before the first rows."""
        return len(self._rules) if self._moments else 0

    @property
    def shares(self) -> dict[str, float]:
        """Shares that rules, recent models, clusters, trees and the nearest rows have in an answer for now."""
        weights = self._now.weights
        others = {"clusters": 1, "trees": 1, "nearest rows": N_NEIGHBOUR_MEMBERS}
        weights[-sum(others.values()) :][:2] *= len(self._clusters) > 0, len(self._trees) > 0  # without, silent
        return shares(weights, self._lasting, others)

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all models and representations."""
        maps = 0 if self._maps is None else self._maps.n_numbers_kept
        models = sum(moments.n_numbers_kept for moments in self._moments)
        return maps + models + self._clusters.n_numbers_kept + self._trees.n_numbers_kept + self._next.curvature.size

    # Answers

    def answer(self, x: Floats, when: When = "now", since: Sequence[int] = ()) -> Floats:
        """Returns log-probabilities of the labels, (B, C).

        Args:
            x: Rows, (B, d).
            when: "next" takes the rows for those that come next, one after the other.
            since: Labels of rows that have come and were not learned yet.
        """
        if len(x) > _AT_ONCE and when != "next":
            return np.concatenate([self.answer(x[i : i + _AT_ONCE], when) for i in range(0, len(x), _AT_ONCE)])
        if when == "any":
            return self._answer_for_any_time(x)
        asked = self._ask(x)
        return self._answer_next(asked, since) if when == "next" else self._answer_now(asked)

    def _answer_next(self, asked: _Asked, since: Sequence[int] = ()) -> Floats:
        """Answers for rows that come next."""
        if self._said_next is not None and not len(since):
            return self._said_next.said
        lifted = self._dynamics.lift(len(asked.x), since)
        told = self._told_next(asked, lifted)
        said = log_normalised(self._next.answer(told.candidates))
        if not len(since):
            self._said_next = _SaidNext(lifted, told, said)
        return said

    def _answer_now(self, asked: _Asked) -> Floats:
        """Answers by the evidence of the stream, or of kept rows where the labels come in runs."""
        told, weights = asked.now, self._weights_in_runs
        if weights is not None:
            logs = told.logs[: self._n_members]
            told = self._now.ask(logs, weights, 1 - self.mixing, is_silent=asked.is_silent)
        return log_normalised(self._now.answer(told.candidates, by_kept_rows=weights is not None) + asked.prior)

    def _answer_for_any_time(self, x: Floats) -> Floats:
        """Answers by members as kept rows judge them, and by rules as often as each held."""
        assert self._maps is not None
        features, held = self._maps(x), self._rules.held / self._rules.held.sum()
        logs = self._balanced(self._likely(features, self.rows.place(features[0]), held)[0])
        weights = self._judged() if self._weights_in_runs is None else self._weights_in_runs
        told = self._now.ask(logs, weights, 1.0, is_silent=self._is_silent())
        return log_normalised(self._now.answer(told.candidates, by_kept_rows=True) + self._prior())

    def _ask(self, x: Floats) -> _Asked:
        """Returns what is said to rows; to the same rows it is not computed twice."""
        if self._asked is None or not np.array_equal(self._asked.x, x):
            assert self._maps is not None
            features, self._said_next = self._maps(x), None
            self._placed = self.rows.place(features[0])
            self._asked = self._told(x.copy(), features, *self._likely(features, self._placed, self._rules.weights))
        return self._asked

    def _told(self, x: Floats, features: list[Floats], likely: Floats, by_rules: Floats) -> _Asked:
        """Returns what is said to rows by members that find them so likely."""
        prior, is_silent = self._prior(), self._is_silent()
        now = self._now.ask(self._balanced(likely), is_silent=is_silent)
        return _Asked(x, features, likely, by_rules, prior, now, is_silent)

    def _told_next(self, asked: _Asked, lifted: Floats) -> Told:
        """Returns what is said for the next rows: by members, by each with what the labels before tell, and for now."""
        if self._said_next is not None and asked is self._asked and lifted is self._said_next.lifted:
            return self._said_next.told
        both = np.empty((2, *asked.likely.shape))
        np.add(asked.likely, asked.prior, out=both[0])
        np.add(both[0], lifted, out=both[1])
        now = log_normalised(self._now.answer(asked.now.candidates) + asked.prior)
        is_silent = None if asked.is_silent is None else np.tile(asked.is_silent, 2)
        logs = log_normalised(both).reshape(-1, *lifted.shape)
        return self._next.ask(logs, others=[now], is_silent=is_silent)

    def _is_silent(self) -> NDArray[np.bool_] | None:
        """Returns which members have nothing to say, (M,): clusters and trees, at first; None where all do."""
        silent = self._clusters.is_silent(self.rows), not self._trees.sizes.size
        if not any(silent):
            return None
        is_silent = np.zeros(self._n_members, dtype=bool)
        is_silent[-2 - N_NEIGHBOUR_MEMBERS : -N_NEIGHBOUR_MEMBERS] = silent
        return is_silent

    def _likely(self, features: list[Floats], placed: NDArray[np.float32], weights: Floats) -> tuple[Floats, Floats]:
        """Returns log p(x | y) of the members up to constants, (M, B, C), and log p(y | x) of the rules, (K, B, C).

        Rows have features and are placed among the others; of the rules one member is made by their weights (K,).
        """
        k, z, n_labels = len(weights), features[0], len(self.counts)
        each = np.empty((len(features), len(_KEEPS) + k, len(z), n_labels))
        for likely, moments, f in zip(each, self._moments, features, strict=True):
            likely[:] = moments.log_likelihood(f)
        by_rules = np.zeros((k, len(z), n_labels))
        if k > 1:  # one member of every representation stands for all its rules
            rules = log_normalised(each[:, -k:])
            by_rules = np.add.reduce(rules) / len(rules)
            each[:, -k] = np.log(np.add.reduce(weights[:, None, None] * np.exp(rules), axis=1))
            each = each[:, : 1 - k]
        by_models = each.reshape(-1, len(z), n_labels)
        by_rows = self._clusters.answer(z), self._trees.answer(z), neighbours(self.rows, placed)
        return np.concatenate([by_models, *by_rows]), by_rules

    def _balanced(self, likely: Floats) -> Floats:
        """Returns log-probabilities of labels that are equally frequent, those that never came aside."""
        if np.count_nonzero(self.counts) < len(self.counts):
            likely = likely + np.where(self.counts > 0, 0.0, LOWEST)
        return log_normalised(likely)

    def _prior(self) -> Floats:
        """Returns log shares of the labels among all that came, (C,)."""
        shares = np.log((self.counts + 0.5) / np.add.reduce(self.counts))
        return np.where(self.counts > 0, shares, LOWEST)

    # Learning

    def admit(self, n_labels: int) -> None:
        """Makes room for labels below `n_labels`."""
        if (more := n_labels - self.n_labels) > 0:
            if len(self._backlog):
                self._catch_up()
            self.counts, self.lately = np.pad(self.counts, (0, more)), np.pad(self.lately, (0, more))
            self._asked = None
            if n_labels > _MOST_LABELS:
                self._give_up()
            for one in self._by_label:
                one.admit(n_labels)

    def relabel(self, places: Labels) -> None:
        """Gives labels other numbers: label y becomes `places[y]`, (C,), and there is room for all of them."""
        self.refresh()
        self.admit(len(places))
        order = np.argsort(places)
        self.counts, self.lately = self.counts[order], self.lately[order]
        self._asked = None
        for one in self._by_label:
            one.relabel(places)

    @property
    def _by_label(self) -> list[KeptRows | Dynamics | Rules | Clusters | Trees | Moments]:
        if self.n_labels > _MOST_LABELS:
            return []
        return [self.rows, self._dynamics, self._rules, self._clusters, self._trees, *self._moments]

    def learn(self, x: Floats, y: Labels, *, row_by_row: bool = False) -> None:
        """Learns a batch: neighbours and dynamics at once, all else when ten rows have come.

        Args:
            x: Rows, (B, d).
            y: Their labels, (B,).
            row_by_row: Whether each label was known before the next row was asked about.
        """
        if (n_labels := int(y.max()) + 1) > len(self.counts):
            self.admit(n_labels)
        room = self.rows.room - self.rows.n
        if self._maps is None and 0 < room < len(y):  # what representations are fitted to first must be kept
            self.learn(x[:room], y[:room], row_by_row=row_by_row)
            self.learn(x[room:], y[room:], row_by_row=row_by_row)
            return
        self.n_seen += len(y)
        if len(self.counts) > _MOST_LABELS:
            return
        asked = None
        if self._maps is None:
            np.add.at(self.counts, y, 1)
        else:
            asked, backlog = self._ask(x), self._backlog
            if self._said_next is not None and (len(y) == 1 or not row_by_row):
                lifted = self._said_next.lifted
            else:
                since = y.tolist() if row_by_row else ()
                lifted = self._dynamics.lift(len(y), since, is_each_known=row_by_row)
            backlog.add(asked.x, y, asked.likely, asked.by_rules, lifted)
            if len(backlog.y) < TOGETHER:
                backlog.compare(self._answer_next(asked), y)
        self._dynamics.learn(y)
        self.rows.add(x, self.rows.place(x) if asked is None else self._placed, y)
        is_due = self._is_fit_due()
        if asked is not None and (is_due or backlog.is_pressing or not self.counts[y].all()):
            self._catch_up(asked)
        self._asked = None
        if is_due:
            self._fit()
        elif self._maps is not None:
            self._clusters.grow(self.rows, self.seed)
            self._trees.grow(self.rows, self.seed)
        if is_due and not self._n_rows:
            self.rows = KeptRows(self._n_columns, 0)
            self.rows.admit(self.n_labels)

    def _catch_up(self, asked: _Asked | None = None) -> None:
        """Has evidence, models and rules learn the backlog; `asked` is what was said to the latest of it."""
        assert self._maps is not None
        late, self._backlog = self._backlog, Backlog()
        y, lifted = late.y, late.lifted
        if asked is None or len(asked.x) < len(y):
            asked = self._told(late.x, self._maps(late.x), late.likely, late.by_rules)
        begins = self._weigh(asked, y, lifted)
        np.add.at(self.counts, y, 1)
        self._learn(asked.features, y)
        if begins:
            self._found()
        left = _LATELY ** len(y)
        self.outside = left * self.outside + (1 - left) * float(Representations.is_cut(asked.features[0]).mean())
        fewest, part, most = _JUDGED_EVERY
        if 1 - self.mixing > _IN_RUNS and self.n_seen - self.judged_at >= min(max(fewest, part * self.n_seen), most):
            self._judge()
        if self.n_seen % _NOTED_EVERY < len(y):
            self._earlier = [self._earlier[1], (deepcopy(self._now), deepcopy(self._next))]
        if self._n_rows and self.n_seen >= 2 * self.measured_at:
            self._measure(self._maps)

    def _weigh(self, asked: _Asked, y: Labels, lifted: Floats) -> bool:
        """Adds a batch to the evidence for members and rules; returns whether another rule has begun."""
        rows = np.arange(len(y))
        shares, lately = self.counts / self.counts.sum(), self.lately / max(self.lately.sum(), 1e-9)
        if self.n_seen > 1 / (1 - _LATELY):
            variety = (1 - (lately**2).sum()) / max(1 - (shares**2).sum(), 0.1)
            self.mixing = min(max(float(variety), 0.0), 1.0)
        self.lately *= _LATELY ** len(y)
        np.add.at(self.lately, y, _LATELY ** rows[::-1])
        news = np.where(self.counts[y] >= KNOWN, self.mixing, 0.0)
        told = self._told_next(asked, lifted)
        self._next.learn(told, y, np.ones(len(y)))
        self._now.learn(asked.now, y, news)
        is_known = self._rules.knows(y)
        self._rules.follow(asked.by_rules[:, rows, y][:, is_known], self.n_seen)
        scores = told.logs[: self._n_members, rows, y] @ np.where(is_known, news, 0.0)
        gain = float(scores[self._fast].max() - scores[self._unforgetful].max())
        return self._rules.challenge(gain, int(np.ceil(news[is_known].sum()))) and self._n_rows > 0

    def _learn(self, features: list[Floats], y: Labels) -> None:
        """Has the recent models learn a batch, and the rule that holds as much of it as is its own."""
        rules, batch = self._rules, ByLabel.of(y)
        is_own = ~rules.knows(y) if rules.is_waiting else np.ones(len(y), dtype=bool)
        for moments, f in zip(self._moments, features, strict=True):
            moments.learn(f, batch, rule=rules.holds if is_own.all() else None, mixing=self.mixing)
            if is_own.any() and not is_own.all():
                moments.learn(f[is_own], ByLabel.of(y[is_own]), recent=False, rule=rules.holds)
        rules.count(y[is_own])

    def _found(self) -> None:
        """Makes a rule of the samples since challengers began to lead."""
        assert self._maps is not None
        before, is_since = self._rules.holds, self.rows.serial >= self.rows.n - self._rules.n_since
        order = np.flatnonzero(is_since)[np.argsort(self.rows.serial[is_since])]
        y, goes = self.rows.y[order], self._rules.found(self.n_seen)
        for moments, f in zip(self._moments, self._maps(self.rows.x[order]), strict=True):
            moments.add_rule(before)
            moments.learn(f, ByLabel.of(y), recent=False, rule=self._rules.holds)
            if goes is not None:
                moments.drop_rule(goes)
        self._rules.count(y)
        self._begin(int(self.rows.serial[order[0]]))
        if goes is not None:
            self._rules.drop(goes)

    def _is_fit_due(self) -> bool:
        """Returns whether representations are to be fitted to more rows: all are kept, and one rule tells all of them.

        Where rows have come from beyond their reach, which all look alike, they are fitted anew at any rate.
        """
        if self._n_rows and self.outside > self.usually_outside + _MOST_OUTSIDE:
            return True
        if self.n_fits < len(_FITTED_AT):
            is_time = self.n_seen >= _FITTED_AT[self.n_fits]
        else:
            is_time = int(np.count_nonzero(self.counts >= KNOWN)) >= 2 * self.n_labels_fitted
            if not is_time:
                return False
        if self._maps is None:
            return is_time
        is_time &= len(self._rules) == 1 or self.mixing < 0.5
        return self.rows.is_whole and (is_time or self._rules.are_parts)

    def _fit(self) -> None:
        """Fits representations to the rows kept, and has everything learn these anew."""
        self.n_fits = sum(self.n_seen >= n for n in _FITTED_AT)
        order = np.argsort(self.rows.serial)
        x, y = self.rows.x[order], self.rows.y[order]
        self.n_labels_fitted = len(np.unique(y))
        self._maps = Representations.fit(x, y, np.random.default_rng([self.seed, self.n_fits]))
        self.outside = self.usually_outside = float(Representations.is_cut(self._maps.units(x)).mean())
        self._moments = [Moments(d, _KEEPS, _FADE, self.n_labels) for d in self._maps.sizes]
        self._rules = self._new_rules(self.n_labels)
        for start in range(0, len(y), 500):
            batch = ByLabel.of(y[start : start + 500])
            for moments, f in zip(self._moments, self._maps(x[start : start + 500]), strict=True):
                moments.learn(f, batch, rule=0, mixing=self.mixing)
        self._rules.count(y)
        self._begin(0)
        self._measure(self._maps)

    def _begin(self, serial: int) -> None:
        """Forgets clusters and trees; others are made of rows from this number on."""
        self._clusters.begin(serial)
        self._trees.begin(serial)

    def _measure(self, maps: Representations) -> None:
        """Measures distances between rows by the scatter of today's rule."""
        self.rows.measure(maps.units(self.rows.x), self._moments[0].whitening_of_rule(self._rules.holds))
        self.measured_at = self.n_seen

    def _give_up(self) -> None:
        """Forgets all: labels are too many."""
        self.rows, self._moments, self._maps, self._asked = KeptRows(self._n_columns, 0), [], None, None
        self._dynamics, self._kept_weights, self._backlog = Dynamics(), None, Backlog()
        self._clusters, self._trees = Clusters(self._n_columns), Trees()
        self._rules = self._new_rules(0)

    def _new_rules(self, n_labels: int) -> Rules:
        return Rules(evidence=self._evidence, most=self._most_rules, n_labels=n_labels, events=self.events)

    @property
    def _is_in_runs(self) -> bool:
        return 1 - self.mixing > _IN_RUNS

    @property
    def _weights_in_runs(self) -> Floats | None:
        """The members' weights by kept rows where labels come in runs, (T M,); None where they do not."""
        return self._kept_weights if 1 - self.mixing > _IN_RUNS else None

    def _judge(self) -> None:
        """Weighs members by kept rows."""
        self._kept_weights, self.judged_at = self._judged(), self.n_seen

    def refresh(self) -> None:
        """Learns what has come, and does what a schedule has postponed."""
        if len(self._backlog):
            self._catch_up()
            self._asked = None
        if self.is_ready and self._is_in_runs:
            self._judge()

    def forget(self, is_gone: NDArray[np.bool_]) -> None:
        """Learns anew what it keeps but for some rows, (m,) bool, which turned out to belong elsewhere."""
        if len(self._backlog):
            self._catch_up()
        self.counts -= np.bincount(self.rows.y[is_gone], minlength=self.n_labels)
        self.rows.drop(is_gone)
        self._asked, self._kept_weights = None, None
        self._begin(0)
        if len(self.rows) >= _FITTED_AT[0]:
            self._fit()
        else:  # so few are left that it begins anew with them
            self._maps, self._moments, self._rules = None, [], self._new_rules(self.n_labels)
            self.n_seen, self.n_fits, self.measured_at, self.judged_at = self.rows.n, 0, 0, 0
        self._now, self._next = deepcopy(self._earlier[0])  # what came lately spoke of those rows

    def extend(self, other: ClassPool) -> None:
        """Goes on with the rows that another pool keeps, and counts all that it has learned."""
        order = np.argsort(other.rows.serial)
        x, y = other.rows.x[order], other.rows.y[order]
        for start in range(0, len(y), 10):
            self.learn(x[start : start + 10], y[start : start + 10])
        self.refresh()
        self.admit(other.n_labels)
        self.counts[: other.n_labels] += other.counts - np.bincount(y, minlength=other.n_labels)
        self._asked = None

    def _judged(self) -> Floats | None:
        """Returns the weights of members by kept rows, (T M,); None where these cannot tell."""
        if self._maps is None:
            return None
        rng, admitted = np.random.default_rng([self.seed, self.n_seen]), self._balanced
        parts = self.rows, self._maps, self._moments, self._clusters, self._trees
        return weights_by(*parts, self._rules.holds, admitted, rng)

    # What is kept

    def state_dict(self) -> State:
        parts = {"rows": self.rows, "dynamics": self._dynamics, "rules": self._rules}
        parts |= {"clusters": self._clusters, "trees": self._trees}
        mixes = {"mix": self._now, "next": self._next}
        weights = self._kept_weights
        return {
            **super().state_dict(),
            **{name: one.state_dict() for name, one in (parts | mixes).items()},
            "backlog": self._backlog.state_dict() if len(self._backlog) else None,
            "earlier": [mix.state_dict() for pair in self._earlier for mix in pair],
            "maps": None if self._maps is None else self._maps.state_dict(),
            "moments": [moments.state_dict() for moments in self._moments],
            "kept_weights": None if weights is None else torch.tensor(weights),
        }

    def load_state_dict(self, state: State, **sizes: int) -> dict[str, int]:
        parts = dict.fromkeys(("rows", "dynamics", "rules", "clusters", "trees", "mix", "next"), part())
        n_tempered = self._n_members * len(TEMPERATURES)
        optional = {"maps": maybe(part()), "backlog": maybe(part()), "kept_weights": maybe(tensor(n_tempered))}
        expect(state, {**self.kept, **parts, **optional})
        saved = state.get("moments")
        if not isinstance(saved, list) or len(saved) != (0 if state["maps"] is None else len(Representations.kinds)):
            raise StateError(f"'moments' must be a list of the {len(Representations.kinds)} representations")
        sizes = super().load_state_dict(state)
        n_labels = {"labels": sizes["labels"] if sizes["labels"] <= _MOST_LABELS else 0}
        self._dynamics.load_state_dict(state["dynamics"], **n_labels)
        expect(state["dynamics"], {"last": whole(-1, n_labels["labels"] - 1)})
        self._rules.load_state_dict(state["rules"], **n_labels)
        self._clusters.load_state_dict(state["clusters"], d=self._n_columns, **n_labels)
        self._trees.load_state_dict(state["trees"], d=self._n_columns, **n_labels)
        self._now.load_state_dict(state["mix"])
        self._next.load_state_dict(state["next"])
        self._load_earlier(state.get("earlier"))
        self._maps, self._moments, self._asked = None, [], None
        if state["maps"] is not None:
            self._maps = Representations()
            self._maps.load_state_dict(state["maps"], d=self._n_columns)
            n = {"slots": len(_KEEPS) + len(self._rules), "groups": 1 + len(self._rules)}
            for d, one in zip(self._maps.sizes, saved, strict=True):
                moments = Moments(d, _KEEPS, _FADE, sizes["labels"])
                moments.load_state_dict(one, d=d, **n, **n_labels)
                self._moments.append(moments)
        keeps_none = sizes["labels"] > _MOST_LABELS or (self._maps is not None and not self._n_rows)
        room = 0 if keeps_none else max(self._n_rows, _FITTED_AT[0])
        self.rows = KeptRows(self._n_columns, room)
        self.rows.load_state_dict(state["rows"], d=self._n_columns, **n_labels)
        if len(self.rows) > room:
            raise StateError(f"'rows' must be at most {room}; got {len(self.rows)}")
        z = self.rows.x if self._maps is None else self._maps.units(self.rows.x)
        self.rows.measure(z, self.rows.metric)
        self._backlog = Backlog()
        if state["backlog"] is not None:
            known = {"d": self._n_columns, "m": self._n_members, "k": len(self._rules), **n_labels}
            self._backlog.load_state_dict(state["backlog"], **known)
            integers("b", below=sizes["labels"])("y", state["backlog"]["y"], {})
        weights = state["kept_weights"]
        self._kept_weights = None if weights is None else weights.cpu().numpy().copy()
        if weights is not None and not (weights > 0).all():
            raise StateError(f"'kept_weights' must be greater than 0; got {float(weights.min())}")
        return sizes

    def _load_earlier(self, saved: Any) -> None:
        """Restores the notes of the evidence."""
        if not isinstance(saved, list) or len(saved) != 4:
            raise StateError("'earlier' must be a list of four states of evidence")
        self._earlier = [(deepcopy(self._now), deepcopy(self._next)) for _ in range(2)]
        for mix, one in zip([mix for pair in self._earlier for mix in pair], saved, strict=True):
            mix.load_state_dict(one)
