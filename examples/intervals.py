"""Draws docs/images/intervals.svg: intervals where noise grows with x, and far from the data.

python examples/intervals.py docs/images/intervals.svg
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from cndpm import CNDPMRegressor


def rows(n: int, seed: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A sine on [-3, 3]; its noise grows from 0.05 at the left by `noise` a unit."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(X[:, 0]) + (0.05 + noise * (X[:, 0] + 3)) * rng.normal(size=n)


def main() -> None:
    figure, both = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True)
    for axes, noise, asked, title in (
        (both[0], 0.1, np.linspace(-3, 3, 201), "noise that grows with x"),
        (both[1], 0.0, np.linspace(-5, 5, 201), "beyond what was learned"),
    ):
        X, y = rows(1000, 0, noise)
        model = CNDPMRegressor(random_state=0).fit(X, y)
        lower, upper = model.predict_interval(asked[:, None]).T
        axes.plot(X, y, ".", markersize=2, color="gray")
        axes.fill_between(asked, lower, upper, alpha=0.3)
        axes.plot(asked, model.predict(asked[:, None]))
        axes.plot(asked, np.sin(asked), "k:")
        axes.set(title=title, xlabel="x", ylim=(-5, 5))
        print(title, model.predict_interval([[4.0]]).round(2).tolist())
    figure.tight_layout()
    figure.savefig(sys.argv[1], metadata={"Date": None} if sys.argv[1].endswith("svg") else None)


if __name__ == "__main__":
    main()
