"""Sparse text beside the same text as dense rows.

``python -m benchmarks.inputs`` prints one line for each seed: 20 groups, sorted by group, 60 documents of 40 words
each; dense rows are the counts of all 1,000 words, sparse ones hashes to 2**18 columns. The model reads them in calls
of 50.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from cndpm import CNDPMClassifier

N_GROUPS, N_OWN, N_SHARED, N_WORDS = 20, 30, 400, 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    for seed in range(parser.parse_args().seeds):
        print("text", seed, text(seed))


def documents(rng: np.random.Generator, groups: np.ndarray) -> list[str]:
    """Returns documents of which three words in ten are of their group, the others of all."""
    own = rng.integers(N_OWN, size=(len(groups), N_WORDS))
    shared = rng.integers(N_SHARED, size=(len(groups), N_WORDS))
    is_own = rng.random((len(groups), N_WORDS)) < 0.3
    return [
        " ".join(f"g{g}w{o}" if mine else f"s{s}" for o, s, mine in zip(*row, strict=True))
        for g, row in zip(groups, zip(own, shared, is_own, strict=True), strict=True)
    ]


def text(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    y, y_test = np.repeat(np.arange(N_GROUPS), 60), np.repeat(np.arange(N_GROUPS), 20)
    train, test = documents(rng, y), documents(rng, y_test)
    words = [f"g{g}w{i}" for g in range(N_GROUPS) for i in range(N_OWN)] + [f"s{i}" for i in range(N_SHARED)]
    counts = CountVectorizer(vocabulary=words)
    hashed = HashingVectorizer(n_features=2**18)
    rows = {
        "dense": (counts.transform(train).toarray(), counts.transform(test).toarray()),
        "sparse": (hashed.transform(train), hashed.transform(test)),
    }
    return {key: value for name, (a, b) in rows.items() for key, value in measured(name, a, y, b, y_test).items()}


def measured(name: str, X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> dict[str, float]:
    model = CNDPMClassifier(memory_size=100, random_state=0)
    tracemalloc.start()
    began = time.perf_counter()
    for start in range(0, len(y), 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
    model.consolidate()
    right = float((model.predict(X_test) == y_test).mean())
    seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    numbers = model.learner_.footprint().n_numbers_kept
    return {
        f"{name} %": round(100 * right, 2),
        f"{name} s": round(seconds, 1),
        f"{name} numbers kept": numbers,
        f"{name} peak of numpy MB": round(peak / 1e6, 1),
    }


if __name__ == "__main__":
    main()
