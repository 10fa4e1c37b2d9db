"""River's own datasets, row by row by its own evaluation: ``python -m benchmarks.river_data`` prints one line each.

Every row is predicted, then learned (``evaluate.progressive_val_score``); all models with their defaults.
"""

from __future__ import annotations

import argparse
import time

from cndpm.river import CNDPMClassifier
from river import datasets, evaluate, forest, metrics

MODELS = {"cndpm": lambda seed: CNDPMClassifier(seed=seed), "ARF": lambda seed: forest.ARFClassifier(seed=seed)}
STREAMS = {"ImageSegments": datasets.ImageSegments, "Bananas": datasets.Bananas, "Phishing": datasets.Phishing}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS))
    given = parser.parse_args()
    for stream in given.streams:
        for seed in given.seeds:
            for name, make_model in MODELS.items():
                began = time.perf_counter()
                accuracy = evaluate.progressive_val_score(STREAMS[stream](), make_model(seed), metrics.Accuracy()).get()
                seconds = time.perf_counter() - began
                print(f"{stream:14} seed {seed} {name:6} {100 * accuracy:6.2f} % {seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
