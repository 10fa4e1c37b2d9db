"""Three representations of a row: the row in standard units, random waves beside it, steps and their products.

.. math::
    z = (x - m) / s, \\qquad w = \\sqrt 2 \\cos(z \\Omega + b), \\qquad
    s_{jq} = \\operatorname{sign}(z_j - t_{jq}), \\qquad s_a s_b
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.state import Keeps, integers, tensor

__all__ = ["Representations"]

Floats = NDArray[np.float64]

_FARTHEST = 8.0
"""Deviations from the middle that a value is cut to, so that one value does not outweigh all others."""

_N_WAVES = 200
"""Random waves; more of them cost their square, and few rows bear no more."""

_N_STEPS, _N_STEPS_OF_COLUMN = 200, 15
"""Steps of all columns and of one: a threshold is met within a thirtieth of the column's rows."""

_N_PRODUCTS = 150
"""Products of two steps."""


class Representations(Keeps):
    """Maps rows to features.

    Attributes:
        middle: Median of every column, (d,).
        scale: Its deviation, 1 where a column does not vary, (d,).
        frequencies: Of the waves, (d, w).
        phases: Of the waves, (w,).
        columns: Of the steps, (q,).
        thresholds: Of the steps, (q,).
        products: The pairs of steps that are multiplied, (2, p).

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 2))
        >>> maps = Representations.fit(x, np.arange(50) % 2, np.random.default_rng(0))
        >>> [features.shape for features in maps(x)] == [(50, d) for d in maps.sizes]
        True
    """

    kinds: ClassVar = ("row", "waves", "steps")
    kept: ClassVar = {
        "middle": tensor("d"),
        "scale": tensor("d"),
        "frequencies": tensor("d", "waves"),
        "phases": tensor("waves"),
        "columns": integers("steps", low=0),
        "thresholds": tensor("steps"),
        "products": integers(2, "products", low=0),
    }
    middle: Floats
    scale: Floats
    frequencies: Floats
    phases: Floats
    columns: NDArray[np.int64]
    thresholds: Floats
    products: NDArray[np.int64]

    @classmethod
    def fit(cls, x: Floats, targets: NDArray[np.int64] | Floats, rng: np.random.Generator) -> Self:
        """Fits units, widths, thresholds and products to rows.

        Waves are as wide as rows typically lie apart. The products are those that explain most of what steps alone
        leave of the targets.

        Args:
            x: Rows, (n, d).
            targets: Labels (n,) or values (n, o).
            rng: Draws the waves.
        """
        made, d = cls(), x.shape[1]
        deviation = x.std(axis=0)
        made.middle, made.scale = np.median(x, axis=0), np.where(deviation > 1e-9, deviation, 1.0)
        z = made.units(x)
        apart = _typical_square(z)
        made.frequencies = rng.normal(size=(d, _N_WAVES)) / np.sqrt(apart)
        made.phases = rng.uniform(0, 2 * np.pi, _N_WAVES)
        made.columns, made.thresholds = _thresholds(z)
        made.products = _telling_products(made._steps(z), _centred(targets))
        return made

    @property
    def sizes(self) -> list[int]:
        """Features of each representation."""
        d = len(self.middle)
        return [d, d + len(self.phases), d + self.thresholds.size + self.products.shape[1]]

    @property
    def n_numbers_kept(self) -> int:
        """Numbers of all maps."""
        return sum(getattr(self, name).size for name in self.kept)

    def units(self, x: Floats) -> Floats:
        """Returns rows (n, d) in standard units."""
        return np.minimum(np.maximum((x - self.middle) / self.scale, -_FARTHEST), _FARTHEST)

    @staticmethod
    def is_cut(z: Floats) -> NDArray[np.bool_]:
        """Returns which of rows in standard units (n, d) lie so far out that a value was cut, (n,)."""
        return np.asarray((np.abs(z) >= _FARTHEST).any(axis=1))

    def __call__(self, x: Floats) -> list[Floats]:
        """Returns the features of rows (n, d) in every representation, (n, size) each."""
        z = self.units(x)
        steps = self._steps(z)
        waves = 2**0.5 * np.cos(z @ self.frequencies + self.phases)
        products = steps.take(self.products[0], axis=1) * steps.take(self.products[1], axis=1)
        return [z, np.concatenate([z, waves], axis=1), np.concatenate([z, steps, products], axis=1)]

    def _steps(self, z: Floats) -> Floats:
        return np.where(z.take(self.columns, axis=1) > self.thresholds, 1.0, -1.0)

    def load_state_dict(self, state: dict[str, object], **sizes: int) -> dict[str, int]:
        found = super().load_state_dict(state, **sizes)
        integers("steps", below=len(self.middle))("columns", torch.from_numpy(self.columns), {})
        integers(2, "products", below=self.thresholds.size)("products", torch.from_numpy(self.products), {})
        return found


def _typical_square(z: Floats) -> float:
    """Returns the median squared distance of rows (n, d) that differ; 1 where none do."""
    some = z[:: max(1, len(z) // 300)]
    squares = (some**2).sum(axis=1)
    apart = squares[:, None] + squares - 2 * some @ some.T
    apart = apart[apart > 1e-9]
    return float(np.median(apart)) if len(apart) else 1.0


def _thresholds(z: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Returns columns and thresholds of the steps of rows (n, d), (q,) each: quantiles, as many of each column.

    Where the columns are too many for all steps, one of few values, such as a word that came or did not, takes only as
    many as tell these apart, and leaves the others to the rest.
    """
    if z.shape[1] * _N_STEPS_OF_COLUMN <= _N_STEPS:
        of_columns = list(_quantiles(z, _N_STEPS_OF_COLUMN).T)
    else:
        values = [np.unique(column)[:-1] for column in z.T]
        sizes, each = np.array([len(few) for few in values]), range(2, _N_STEPS_OF_COLUMN + 1)
        n_each = max((n for n in each if np.minimum(n, sizes).sum() <= _N_STEPS), default=1)
        many = _quantiles(z, n_each).T
        of_columns = [own if len(own) <= n_each else those for own, those in zip(values, many, strict=True)]
    steps = sorted((i, j, at) for j, own in enumerate(of_columns) for i, at in enumerate(own.tolist()))
    return np.array([j for _, j, _ in steps], np.int64), np.array([at for *_, at in steps], np.float64)


def _quantiles(z: Floats, n: int) -> Floats:
    """Returns n quantiles of every column of rows, (n, d)."""
    return np.quantile(z, np.linspace(0, 1, n + 2)[1:-1], axis=0)


def _centred(targets: NDArray[np.int64] | Floats) -> Floats:
    """Returns values, or indicators of labels, less their means, (n, o)."""
    values = np.eye(int(targets.max()) + 1)[targets] if targets.ndim == 1 else targets
    centred: Floats = values - values.mean(axis=0)
    return centred


def _telling_products(steps: Floats, targets: Floats) -> NDArray[np.int64]:
    """Returns pairs of steps (n, m) whose products tell most of what steps alone leave of targets (n, o), (2, p)."""
    gram = steps.T @ steps
    gram.flat[:: len(gram) + 1] += 0.1 * len(steps)
    rest = targets - steps @ np.linalg.solve(gram, steps.T @ targets)
    signs, told = steps.astype(np.float32), np.zeros(gram.shape, np.float32)
    for one in rest.T.astype(np.float32):
        told += np.square(signs.T @ (signs * one[:, None]))
    first, second = np.triu_indices(len(told), 1)
    best = np.argsort(-told[first, second], kind="stable")[:_N_PRODUCTS]
    return np.stack([first[best], second[best]])
