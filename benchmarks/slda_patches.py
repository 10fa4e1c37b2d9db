"""Streaming LDA on the patch features of the default: what its experts, gate and shrinkage add, or do not.

    python -m benchmarks.slda_patches split-cifar10 --data DIR --device cuda --seeds 5 --out slda.jsonl --commit COMMIT

One pass over a scenario, its published test set. The features are those of the default: 128 patches a size, fitted on
the first 500 samples; the sums and discriminants are those of the learner `slda`, with its default shrinkage, and the
classes are known from the start.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from figures.facts import add_options, append, facts
from torch import Tensor

from cndpm.baselines.slda import SLDA, discriminants
from cndpm.experts.features import PatchFeatures
from cndpm.streams import load_scenario

_MEMORY, _BLOCK = 500, 500


def measure(name: str, seed: int, *, data: str | None, device: str, n_patches: int, fraction: float) -> dict[str, Any]:
    """Makes one pass and returns the accuracy on all test samples.

    Args:
        name: Of the scenario.
        seed: Of the stream and of the filters.
        data: Where datasets lie.
        device: Where it is computed.
        n_patches: Filters a size.
        fraction: Of the training samples.
    """
    stream = load_scenario(name, fraction=fraction).build(data_dir=data, seed=seed, device=device)
    batches = list(stream.batches())
    x, y = torch.cat([b.x for b in batches]), torch.cat([b.y for b in batches if b.y is not None]).to(device)
    features = PatchFeatures(n_patches)
    features.fit(x[:_MEMORY], generator=torch.Generator().manual_seed(seed), labels=y[:_MEMORY].cpu())
    d, n_classes = features.n_features, int(y.max()) + 1
    counts, sums, products = (torch.zeros(shape, dtype=torch.float64, device=device) for shape in _shapes(n_classes, d))
    for part, labels in zip(x.split(_BLOCK), y.split(_BLOCK), strict=True):
        rows = features(part).double()
        counts += torch.bincount(labels, minlength=n_classes)
        sums.index_add_(0, labels, rows)
        products.addmm_(rows.T, rows)
    weights, biases = discriminants(counts, sums, products, shrinkage=SLDA.Settings.model_validate({}).shrinkage)
    test, labels = (torch.cat([getattr(task, part) for task in stream.tasks]).to(device) for part in ("x", "y"))
    answers = torch.cat([_answers(features(part), weights, biases) for part in test.split(_BLOCK)])
    return {"accuracy": 100 * float((answers == labels).double().mean()), "n_features": d, "n_samples": len(x)}


def _shapes(n_classes: int, d: int) -> tuple[tuple[int, ...], ...]:
    return (n_classes,), (n_classes, d), (d, d)


def _answers(rows: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    return (rows.double() @ weights + biases).argmax(dim=1)


def main() -> None:
    """Appends one line a seed to the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slda_patches", description=__doc__)
    parser.add_argument("scenarios", nargs="+")
    parser.add_argument("--data")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--n-patches", type=int, default=128)
    parser.add_argument("--fraction", type=float, default=1.0)
    add_options(parser, required=True)
    options = parser.parse_args()
    made_by = facts(options.device, commit=options.commit)
    like = {name: getattr(options, name) for name in ("data", "device", "n_patches", "fraction")}
    for name in options.scenarios:
        for seed in range(options.seeds):
            told = {"scenario": name, "learner": "slda on patches", "seed": seed, **measure(name, seed, **like)}
            print(name, seed, f"{told['accuracy']:.2f}", flush=True)
            append(options.out, [told | made_by])


if __name__ == "__main__":
    main()
