"""Rows of river's generators and of the data that it brings along; needs the extra ``cndpm[river]``.

Generated rows depend on the seed; data are the same for every seed. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np

from cndpm.extras import require_extra
from cndpm.streams.rows import Rows

_SEEDS_APART = 10  # more than the parts of one stream, so that two seeds share none


def in_turn(seed: int, *, generator: str, rule: str, rules: Sequence[int], n: int, **options: Any) -> Rows:
    """Draws n rows of one of river's generators under each of some rules, one after the other, each turn by its own."""
    make = getattr(_synth(), generator)
    parts = [
        _classes(islice(make(**{rule: number}, seed=turn + 1 + _SEEDS_APART * seed, **options), n))
        for turn, number in enumerate(rules)
    ]
    x, y = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return Rows(x, y, tuple(range(n, n * len(rules), n)))


def hyperplane(seed: int) -> Rows:
    """Draws 6,000 rows of ten features on two sides of a plane, five of whose weights move all the time."""
    made = _synth().Hyperplane(seed=3 + _SEEDS_APART * seed, n_features=10, n_drift_features=5, mag_change=0.01)
    return _classes(islice(made, 6000))


def moving_centroids(seed: int) -> Rows:
    """Draws 6,000 rows of four classes around twenty centroids that move all the time."""
    made = _synth().RandomRBFDrift(
        seed_model=1 + _SEEDS_APART * seed,
        seed_sample=2 + _SEEDS_APART * seed,
        n_classes=4,
        n_features=10,
        n_centroids=20,
        change_speed=0.05,
        n_drift_centroids=20,
    )
    return _classes(islice(made, 6000))


def image_segments(_seed: int = 0) -> Rows:
    """Returns 2,310 segments of outdoor images, 18 features, seven classes in alphabetical order."""
    rows = list(_datasets().ImageSegments())
    names = sorted({name for _, name in rows})
    return _classes((x, names.index(name)) for x, name in rows)


def phishing(_seed: int = 0) -> Rows:
    """Returns 1,250 websites, nine features: phishing or not."""
    return _classes(_datasets().Phishing())


def water_flow(_seed: int = 0) -> Rows:
    """Returns the hourly flow of water in a pipe, 1,268 hours, by hour of the day, day of the week and day."""
    rows = list(_datasets().WaterFlow())
    first = rows[0][0]["Time"]
    return _targets((_calendar(x["Time"], first), y) for x, y in rows)


def approval(_seed: int = 0) -> Rows:
    """Returns 1,001 days of a president's approval, by the day and five polls."""
    return _targets((list(x.values()), y) for x, y in _datasets().TrumpApproval())


def _calendar(time: datetime, first: datetime) -> list[float]:
    """Returns hour and weekday as angles, so that midnight and Sunday have no edge, and the days since `first`."""
    day, week = 2 * np.pi * time.hour / 24, 2 * np.pi * time.weekday() / 7
    return [np.sin(day), np.cos(day), np.sin(week), np.cos(week), (time - first).total_seconds() / 86400]


def _classes(samples: Iterable[tuple[dict[str, Any], Any]]) -> Rows:
    xs, ys = zip(*((list(x.values()), y) for x, y in samples), strict=True)
    return Rows(np.array(xs, dtype=float), np.array(ys).astype(np.int64))


def _targets(samples: Iterable[tuple[list[float], float]]) -> Rows:
    xs, ys = zip(*samples, strict=True)
    return Rows(np.array(xs, dtype=float), np.array(ys, dtype=float))


def _datasets() -> Any:
    require_extra("river", purpose="this scenario")
    from river import datasets

    return datasets


def _synth() -> Any:
    return _datasets().synth
