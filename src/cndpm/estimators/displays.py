"""Plots of a fitted estimator, in scikit-learn's form: `...Display.from_estimator(model, ...)`.

For calibration there is scikit-learn's own `CalibrationDisplay`, which takes a :class:`~cndpm.CNDPMClassifier`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cndpm.estimators.base import Estimator
from cndpm.estimators.regressor import CNDPMRegressor
from cndpm.extras import require_extra
from cndpm.model.events import Event

__all__ = ["ExpertsDisplay", "IntervalDisplay", "NoveltyDisplay"]

Floats = NDArray[np.float64]
_MARKS = {"founded": "o", "returned": "^", "merged": "x", "dropped": "x", "rule founded": "s", "rule returned": "D"}


class _Display:
    """Draws on axes that are given, or on new ones, which are `ax_` of `figure_` from then on; abstract."""

    def plot(self, *, ax: Any = None) -> Self:
        """Draws on axes of matplotlib, new ones where none are given, and returns itself."""
        if ax is None:
            require_extra("matplotlib", purpose="plots")
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        self.ax_, self.figure_ = ax, ax.figure
        self._draw(ax)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


class ExpertsDisplay(_Display):
    """Experts over time: a line from founding on, with marks for what happened to each and to the rules where it is.

    Args:
        events: What happened to experts; the latest 1,000 of a model.
        n_samples: Samples learned so far.

    Example:
        >>> display = ExpertsDisplay([Event(50, "founded", 0), Event(120, "founded", 1)], n_samples=200)
        >>> display.spans()
        [(50, 200), (120, 200)]
    """

    def __init__(self, events: Sequence[Event], *, n_samples: int) -> None:
        self.n_samples = n_samples
        self.lives: list[list[tuple[int, str]]] = []
        numbered: list[int] = []  # numbers close up when an expert goes
        for event in events:
            while len(numbered) <= event.expert:
                numbered.append(len(self.lives))
                self.lives.append([] if event.kind == "founded" else [(0, "earlier")])
            self.lives[numbered[event.expert]].append((event.sample, event.kind))
            if event.kind in ("merged", "dropped"):
                del numbered[event.expert]

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Any = None) -> Self:
        """Plots the experts of a fitted estimator.

        Args:
            estimator: Any of the three.
            ax: Axes to draw on.
        """
        return cls(estimator.events_, n_samples=estimator.learner_.events.n_samples).plot(ax=ax)

    def spans(self) -> list[tuple[int, int]]:
        """Returns the first and the last sample of every expert that was ever founded, in that order."""
        ends = [life[-1][0] if life[-1][1] in ("merged", "dropped") else self.n_samples for life in self.lives]
        return [(life[0][0], end) for life, end in zip(self.lives, ends, strict=True)]

    def _draw(self, ax: Any) -> None:
        for row, (life, span) in enumerate(zip(self.lives, self.spans(), strict=True)):
            (line,) = ax.plot(span, [row, row], linewidth=4, alpha=0.5, solid_capstyle="butt")
            for sample, kind in life:
                ax.plot(sample, row, _MARKS.get(kind, ""), color=line.get_color())
        for kind in dict.fromkeys(kind for life in self.lives for _, kind in life if kind in _MARKS):
            ax.plot([], [], _MARKS[kind], color="gray", label=kind)
        ax.set(xlabel="samples learned", ylabel="expert", ylim=(-0.5, max(len(self.lives), 1) - 0.5))
        ax.yaxis.get_major_locator().set_params(integer=True)
        if self.lives:
            ax.legend()


class NoveltyDisplay(_Display):
    """Novelty of rows in their order, with the levels above which one known row in twenty and in a hundred lies.

    Example:
        >>> NoveltyDisplay(np.array([0.1, 5.0])).novelty.tolist()
        [0.1, 5.0]
    """

    def __init__(self, novelty: Floats) -> None:
        self.novelty = novelty

    @classmethod
    def from_estimator(cls, estimator: Estimator, X: ArrayLike, *, ax: Any = None) -> Self:
        """Plots how new rows are to a fitted estimator.

        Args:
            estimator: Any of the three.
            X: (n, n_features), or (n, *input_shape).
            ax: Axes to draw on.
        """
        return cls(estimator.novelty(X)).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax.plot(self.novelty, ".", markersize=3)
        for known, style in ((20, ":"), (100, "--")):
            ax.axhline(np.log(known), color="gray", linestyle=style, label=f"one known row in {known} is above")
        ax.set(xlabel="row", ylabel="novelty (nats)")
        ax.legend()


class IntervalDisplay(_Display):
    """Targets beside the intervals in which they should lie, in the order of the predictions.

    Args:
        interval: Lower and upper bounds, (n, 2).
        y: Targets, (n,).
        coverage: Share of targets that should lie inside; `coverage_` is the share that does.

    Example:
        >>> IntervalDisplay(np.array([[0.0, 2.0], [1.0, 3.0]]), np.array([1.5, 9.0]), coverage=0.9).coverage_
        0.5
    """

    def __init__(self, interval: Floats, y: Floats, *, coverage: float) -> None:
        order = interval.mean(axis=1).argsort()
        self.interval, self.y, self.coverage = interval[order], y[order], coverage
        self.coverage_ = float(((self.interval[:, 0] <= self.y) & (self.y <= self.interval[:, 1])).mean())

    @classmethod
    def from_estimator(
        cls, estimator: CNDPMRegressor, X: ArrayLike, y: ArrayLike, *, coverage: float = 0.9, ax: Any = None
    ) -> Self:
        """Plots intervals of a fitted regressor of one output.

        Args:
            estimator: The regressor.
            X: (n, n_features), or (n, *input_shape).
            y: Targets, (n,).
            coverage: Share of targets that should lie inside.
            ax: Axes to draw on.
        """
        interval = estimator.predict_interval(X, coverage=coverage)
        if interval.ndim != 2:
            raise ValueError(f"intervals are drawn of one output; the regressor has {interval.shape[1]}")
        targets = np.asarray(y, dtype=np.float64)
        if targets.shape != interval.shape[:1]:
            raise ValueError(f"y has a target for each row of X; got {targets.shape} for {len(interval)} rows")
        return cls(interval, targets, coverage=coverage).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax.fill_between(np.arange(len(self.y)), *self.interval.T, alpha=0.3)
        ax.plot(self.interval.mean(axis=1), linewidth=1)
        ax.plot(self.y, ".", markersize=3, color="black")
        title = f"{100 * self.coverage_:.0f} % of the targets inside, {100 * self.coverage:.0f} % expected"
        ax.set(xlabel="rows in the order of their predictions", ylabel="target", title=title)
