"""Plots of a fitted estimator, in scikit-learn's form: `...Display.from_estimator(model, ...)`.

For calibration there is scikit-learn's own `CalibrationDisplay`, which takes a :class:`~cndpm.CNDPMClassifier`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cndpm.extras import require_extra
from cndpm.model.events import Event

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cndpm.estimators.base import Estimator
    from cndpm.estimators.regressor import CNDPMRegressor

__all__ = ["ExpertsDisplay", "IntervalDisplay", "NoveltyDisplay"]

Floats = NDArray[np.float64]
_MARKS = {"founded": "o", "returned": "^", "merged": "x", "dropped": "x"}


class _Display:
    """Draws on axes that are given, or on new ones; abstract. They are `ax_`, of the figure `figure_`."""

    ax_: Axes
    figure_: Figure

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draws, and returns itself.

        Args:
            ax: Axes to draw on; new ones where there are none.
        """
        if ax is None:
            require_extra("cli", purpose="plots")
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        self.ax_, self.figure_ = ax, ax.figure  # type: ignore[assignment]
        self._draw(ax)
        return self

    def _draw(self, ax: Axes) -> None:
        raise NotImplementedError


class ExpertsDisplay(_Display):
    """Experts over time: a line from founding on, with marks where an expert returned, was merged or dropped.

    Args:
        events: What happened to experts; the latest 1,000 of a model.
        n_samples: Samples learned so far.

    Example:
        >>> from cndpm.model.events import Event
        >>> display = ExpertsDisplay([Event(50, "founded", 0), Event(120, "founded", 1)], n_samples=200)
        >>> display.spans()
        [(50, 200), (120, 200)]
    """

    def __init__(self, events: Sequence[Event], *, n_samples: int) -> None:
        self.events = list(events)
        self.n_samples = n_samples

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: Axes | None = None) -> Self:
        """Plots the experts of a fitted estimator.

        Args:
            estimator: Any of the three.
            ax: Axes to draw on.
        """
        return cls(estimator.events_, n_samples=estimator.learner_.events.n_samples).plot(ax=ax)

    def spans(self) -> list[tuple[int, int]]:
        """Returns the first and the last sample of every expert that was ever founded, in that order."""
        return [(marks[0][0], marks[-1][0] if _is_end(marks[-1][1]) else self.n_samples) for marks in self._lives()]

    def _lives(self) -> list[list[tuple[int, str]]]:
        """Returns what happened to each expert: samples and kinds. Numbers close up when an expert goes."""
        lives: list[list[tuple[int, str]]] = []
        numbered: list[int] = []
        for event in self.events:
            while len(numbered) <= event.expert:
                numbered.append(len(lives))
                lives.append([] if event.kind == "founded" else [(0, "earlier")])
            lives[numbered[event.expert]].append((event.sample, event.kind))
            if _is_end(event.kind):
                del numbered[event.expert]
        return lives

    def _draw(self, ax: Axes) -> None:
        for row, (marks, (start, stop)) in enumerate(zip(self._lives(), self.spans(), strict=True)):
            (line,) = ax.plot([start, stop], [row, row], linewidth=4, alpha=0.5, solid_capstyle="butt")
            for sample, kind in marks:
                if kind in _MARKS:
                    ax.plot(sample, row, _MARKS[kind], color=line.get_color())
        ax.set(xlabel="samples learned", ylabel="expert", title="o founded, ^ returned, x merged or dropped")
        ax.yaxis.get_major_locator().set_params(integer=True)


class NoveltyDisplay(_Display):
    """Novelty of rows in their order, with the levels above which one known row in twenty and in a hundred lies.

    Args:
        novelty: Of each row, (n,).

    Example:
        >>> NoveltyDisplay(np.array([0.1, 5.0])).novelty.tolist()
        [0.1, 5.0]
    """

    def __init__(self, novelty: Floats) -> None:
        self.novelty = novelty

    @classmethod
    def from_estimator(cls, estimator: Estimator, X: ArrayLike, *, ax: Axes | None = None) -> Self:
        """Plots how new rows are to a fitted estimator.

        Args:
            estimator: Any of the three.
            X: (n, n_features), or (n, *input_shape).
            ax: Axes to draw on.
        """
        return cls(estimator.novelty(X)).plot(ax=ax)

    def _draw(self, ax: Axes) -> None:
        ax.plot(self.novelty, ".", markersize=3)
        for known, style in ((20, ":"), (100, "--")):
            ax.axhline(np.log(known), color="gray", linestyle=style, label=f"one known row in {known} is above")
        ax.set(xlabel="row", ylabel="novelty (nats)")
        ax.legend()


class IntervalDisplay(_Display):
    """Targets beside the intervals in which they should lie, in the order of the predictions.

    Args:
        mean: Predictions, (n,).
        interval: Lower and upper bounds, (n, 2).
        y: Targets, (n,).
        coverage: Share of targets that should lie inside.

    Attributes:
        coverage_: Share of targets that does.

    Example:
        >>> bounds = np.array([[0.0, 2.0], [1.0, 3.0]])
        >>> IntervalDisplay(np.array([1.0, 2.0]), bounds, np.array([1.5, 9.0]), coverage=0.9).coverage_
        0.5
    """

    def __init__(self, mean: Floats, interval: Floats, y: Floats, *, coverage: float) -> None:
        order = mean.argsort()
        self.mean, self.interval, self.y, self.coverage = mean[order], interval[order], y[order], coverage
        is_inside = (self.interval[:, 0] <= self.y) & (self.y <= self.interval[:, 1])
        self.coverage_ = float(is_inside.mean())

    @classmethod
    def from_estimator(
        cls, estimator: CNDPMRegressor, X: ArrayLike, y: ArrayLike, *, coverage: float = 0.9, ax: Axes | None = None
    ) -> Self:
        """Plots intervals of a fitted regressor of one output.

        Args:
            estimator: The regressor.
            X: (n, n_features), or (n, *input_shape).
            y: Targets, (n,).
            coverage: Share of targets that should lie inside.
            ax: Axes to draw on.
        """
        mean: Any = estimator.predict(X)
        if np.ndim(mean) != 1:
            raise ValueError(f"intervals are drawn of one output; the regressor has {mean.shape[1]}")
        interval = estimator.predict_interval(X, coverage=coverage)
        return cls(mean, interval, np.asarray(y, dtype=np.float64), coverage=coverage).plot(ax=ax)

    def _draw(self, ax: Axes) -> None:
        place = np.arange(len(self.mean))
        ax.fill_between(place, self.interval[:, 0], self.interval[:, 1], alpha=0.3)
        ax.plot(place, self.mean, linewidth=1)
        ax.plot(place, self.y, ".", markersize=3, color="black")
        title = f"{100 * self.coverage_:.0f} % of the targets inside, {100 * self.coverage:.0f} % expected"
        ax.set(xlabel="rows in the order of their predictions", ylabel="target", title=title)


def _is_end(kind: str) -> bool:
    return kind in ("merged", "dropped")
