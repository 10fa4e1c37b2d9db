"""How well new rows are told from known ones, and whether false alarms come as often as asked for.

    python -m benchmarks.novelty                  # seeds 0 to 4

Three streams, no setting for any of them: digits 0 to 7, of which 1,000 are learned, and 8 and 9 as what is new; two
moons, and rows drawn uniformly from a box one unit wider than they are; ten sensors that drift, and rows in which three
of them read something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import roc_auc_score

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor

RATES = (0.01, 0.05, 0.1)
Floats = NDArray[np.float64]


class Case(NamedTuple):
    """Rows that are learned in their order, known rows that are not, and new ones, with labels of the learned rows."""

    learned: Floats
    known: Floats
    new: Floats
    labels: NDArray[np.int64]


def digits(seed: int) -> Case:
    """Returns digits 0 to 7 as known and 8 and 9 as new."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(x))
    x, y = x[order], y[order]
    return Case(x[y < 8][:1000], x[y < 8][1000:], x[y >= 8], y[y < 8][:1000])


def moons(seed: int) -> Case:
    """Returns two moons, and rows drawn uniformly around them."""
    x, y = make_moons(4000, noise=0.1, random_state=seed)
    new = np.random.default_rng(seed).uniform(x.min(axis=0) - 1, x.max(axis=0) + 1, size=(2000, 2))
    return Case(x[:2000], x[2000:], new, y[:2000])


def sensors(seed: int, n: int = 5000) -> Case:
    """Returns ten correlated sensors, of units far apart, whose zeros drift by three deviations along the stream."""
    rng = np.random.default_rng(seed)
    mixing, units = rng.normal(size=(3, 10)), 10.0 ** rng.integers(-3, 4, size=10)
    drift = 3 * rng.choice([-1.0, 1.0], size=10)
    when = np.concatenate([np.linspace(0, 1, n), np.ones(2000)])
    rows = rng.normal(size=(len(when), 3)) @ mixing + 0.3 * rng.normal(size=(len(when), 10)) + when[:, None] * drift
    new = rows[n + 1000 :].copy()
    for row in new:
        row[rng.choice(10, size=3, replace=False)] += rng.choice([-1.0, 1.0], size=3) * rng.uniform(2, 6, size=3)
    return Case(rows[:n] * units, rows[n : n + 1000] * units, new * units, (rows[:n, 0] > 0).astype(np.int64))


CASES: dict[str, Callable[[int], Case]] = {"digits 8, 9": digits, "two moons": moons, "drifting sensors": sensors}


def area(model: CNDPMDensity | CNDPMClassifier | CNDPMRegressor, case: Case) -> float:
    """Returns the area under the curve of novelty, known against new rows."""
    novelty = np.concatenate([model.novelty(case.known), model.novelty(case.new)])
    return float(roc_auc_score(np.repeat([0, 1], [len(case.known), len(case.new)]), novelty))


def false_alarms(model: CNDPMDensity, known: Floats) -> list[float]:
    """Returns the share of known rows that are called outliers, for every rate asked for."""
    return [float((model.set_params(false_alarm_rate=rate).predict(known) == -1).mean()) for rate in RATES]


def while_it_goes_on(rows: Floats, rate: float, seed: int) -> float:
    """Returns the share of alarms where every batch of ten is judged before it is learned, from row 1,000 on."""
    model = CNDPMDensity(false_alarm_rate=rate, random_state=seed).partial_fit(rows[:1000])
    alarms = []
    for start in range(1000, len(rows), 10):
        batch = rows[start : start + 10]
        alarms.append((model.predict(batch) == -1).mean())
        model.partial_fit(batch)
    return float(np.mean(alarms))


def measured(name: str, seed: int) -> tuple[list[float], list[float]]:
    """Returns areas under the curve of the three estimators, and the density's false alarms by rate."""
    case = CASES[name](seed)
    density = CNDPMDensity(random_state=seed).fit(case.learned)
    classifier = CNDPMClassifier(random_state=seed).fit(case.learned, case.labels)
    regressor = CNDPMRegressor(random_state=seed).fit(case.learned, case.labels)
    return [area(model, case) for model in (density, classifier, regressor)], false_alarms(density, case.known)


def listed(values: Iterable[float]) -> str:
    """Returns the values of all seeds as text."""
    return ", ".join(f"{value:.4f}" for value in values)


if __name__ == "__main__":
    for name in CASES:
        areas, alarms = (np.array(part) for part in zip(*(measured(name, seed) for seed in range(5)), strict=True))
        shown = ", ".join(f"{value:.3f}" for value in areas.mean(axis=0))
        print(f"{name}: area under the curve {shown} (density, classifier, regressor; least {areas.min():.3f})")
        for rate, values in zip(RATES, alarms.T, strict=True):
            print(f"  false alarms asked for {rate}: {values.mean():.4f} ({listed(values)})")
    for name in ("two moons", "drifting sensors"):
        kept = [while_it_goes_on(CASES[name](seed).learned, 0.05, seed) for seed in range(3)]
        print(f"{name}, judged before learning, asked for 0.05: {np.mean(kept):.4f} ({listed(kept)})")
