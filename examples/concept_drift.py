"""Draws docs/images/concept-drift.svg: accuracy over time where a rule is reversed and returns.

python examples/concept_drift.py docs/images/concept-drift.svg
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier

from cndpm import CNDPMClassifier

WINDOW = 200


def stream(n: int = 4500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of five columns; the sign of a sum is the label, and its opposite in the middle third."""
    X = np.random.default_rng(seed).normal(size=(n, 5))
    is_reversed = (np.arange(n) // (n // 3)) == 1
    return X, ((X[:, 0] + X[:, 1] > 0) != is_reversed).astype(int)


def answered(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether each row was answered right before it was learned, in batches of ten."""
    model.partial_fit(X[:10], y[:10], classes=[0, 1])
    is_right = [y[:10] >= 0]
    for start in range(10, len(X), 10):
        rows, labels = X[start : start + 10], y[start : start + 10]
        is_right.append(model.predict(rows) == labels)
        model.partial_fit(rows, labels)
    return np.concatenate(is_right)


def main() -> None:
    X, y = stream()
    forest = RandomForestClassifier(random_state=0).fit(X[:1000], y[:1000])
    curves = {
        "cndpm": answered(CNDPMClassifier(random_state=0), X, y),
        "SGDClassifier, partial_fit": answered(SGDClassifier(random_state=0), X, y),
        "RandomForestClassifier, trained once on the first 1,000 rows": forest.predict(X) == y,
    }
    figure, axes = plt.subplots(figsize=(8, 3.2))
    for name, is_right in curves.items():
        smooth = np.convolve(is_right, np.ones(WINDOW) / WINDOW, mode="valid")
        axes.plot(np.arange(WINDOW, len(X) + 1), 100 * smooth, label=f"{name}: {100 * is_right.mean():.1f} %")
    for change in (len(X) // 3, 2 * len(X) // 3):
        axes.axvline(change, color="gray", linestyle=":")
    axes.set(xlabel="rows", ylabel=f"right, of the latest {WINDOW} (%)", ylim=(0, 102))
    axes.legend(loc="lower right", fontsize="small")
    figure.tight_layout()
    figure.savefig(sys.argv[1], metadata={"Date": None} if sys.argv[1].endswith("svg") else None)
    print("\n".join(f"{100 * right.mean():6.2f} %  {name}" for name, right in curves.items()))


if __name__ == "__main__":
    main()
