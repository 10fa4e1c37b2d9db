"""Orders a scenario's samples: pure functions from candidate rows and a generator to rows; and the generators.

Rows are indices into a pool of samples. All draws of a stage are made at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import torch
from numpy.typing import NDArray

from cndpm.validation import ConfigError


class Purpose(IntEnum):
    """Purposes of random numbers. They are part of what determines the numbers, so the values must not change."""

    FRACTION = 0
    LABEL_NOISE = 1
    ORDER = 2
    BLUR = 3
    SHUFFLE = 4
    BINARISE = 5
    BINARISE_TEST = 6
    SYNTHETIC = 7
    HELD_OUT = 8


def _sequence(seed: int, purpose: Purpose, *counters: int) -> np.random.SeedSequence:
    if seed < 0:
        raise ValueError(f"seed must not be negative; got {seed}")
    return np.random.SeedSequence(seed, spawn_key=(int(purpose), *counters))


def host_generator(seed: int, purpose: Purpose, *counters: int) -> np.random.Generator:
    """Makes a numpy generator for `purpose`; `counters` (a round, a class, ...) make further independent ones."""
    return np.random.default_rng(_sequence(seed, purpose, *counters))


def device_generator(device: torch.device, seed: int, purpose: Purpose, *counters: int) -> torch.Generator:
    """Makes a torch generator on `device`; its numbers repeat at every call, though not on every kind of device."""
    state = _sequence(seed, purpose, *counters).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(state[0] >> np.uint64(1)))


Rows = NDArray[np.int64]
"""Indices into a pool of samples, (n,)."""


def draw_stage(
    candidates: Sequence[Rows],
    n: int,
    *,
    weights: Sequence[float] | None = None,
    replacement: bool,
    rng: np.random.Generator,
) -> Rows:
    """Draws the rows of one stage, (n,)."""
    if weights is not None:
        return _draw_weighted(candidates, n, np.asarray(weights), rng)
    rows = np.concatenate(candidates)
    if replacement:
        return rows[rng.integers(len(rows), size=n)]
    if n > len(rows):
        raise ConfigError(f"a stage of {n} samples cannot be drawn without replacement from {len(rows)}")
    return rng.permutation(rows)[:n]


def _draw_weighted(candidates: Sequence[Rows], n: int, weights: NDArray[np.float64], rng: np.random.Generator) -> Rows:
    subset = rng.choice(len(candidates), size=n, p=weights / weights.sum())
    drawn = np.empty(n, np.int64)
    for k, rows in enumerate(candidates):
        here = subset == k
        drawn[here] = rows[rng.integers(len(rows), size=int(here.sum()))]
    return drawn


def blur(rows: Rows, *, kind: str, width: float, rng: np.random.Generator) -> Rows:
    """Moves every sample by a random distance: the same samples, boundaries between stages gradual.

    A sample at position t goes to the rank of t + d, where d is uniform on [-width/2, width/2] (``linear``) or normal
    with standard deviation `width` (``gaussian``). The share of the later stage around a boundary is then the
    distribution function of d.
    """
    n = len(rows)
    distance = rng.uniform(-width / 2, width / 2, n) if kind == "linear" else rng.normal(0.0, width, n)
    return rows[np.argsort(np.arange(n) + distance, kind="stable")]


def batch_sizes(stage_lengths: Sequence[int], batch_size: int) -> NDArray[np.int64]:
    """Returns the sizes of all batches, (n_batches,): each stage is cut by itself, so its last batch may be smaller."""
    sizes = [min(batch_size, length - at) for length in stage_lengths for at in range(0, length, batch_size)]
    return np.array(sizes, np.int64)
