"""What patch features lose where places or turned views are left out. All classes at once, mirror images always.

python -m benchmarks.places cifar10 --data DIR --device cuda [--turns 0,8,-8] [--strides 2,2] [--dense 4]

Prints one JSON line: accuracy, and the share of test images whose class lies in the right task, for some shrinkages.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from cndpm.experts.features import PatchFeatures
from cndpm.experts.features.patches import PatchFilters
from cndpm.experts.features.responses import CONTRAST_FLOOR
from cndpm.experts.features.views import apply_view
from cndpm.experts.gaussian.shrinkage import shrunk_covariance
from cndpm.experts.gaussian.statistics import SharedStatistics
from cndpm.streams import load_scenario

_BLOCK = 500
_THRESHOLD = 0.25
_SHRINKAGES = (10**-3.5, 10**-3.0, 10**-2.5)
Features = Callable[[Tensor], Tensor]


def responses(x: Tensor, filters: PatchFilters) -> Tensor:
    """Of filters to contrast-normalised patches, (B, P, H', W')."""
    size = filters.weight.shape[-1]
    mean, square = (functional.avg_pool2d(part.double().mean(dim=1, keepdim=True), size, 1) for part in (x, x.square()))
    contrast = ((square - mean.square()).clamp_min(0) + CONTRAST_FLOOR).rsqrt().float()
    return functional.conv2d(x, filters.weight) * contrast - filters.bias[None, :, None, None]


def moments(responses: Tensor, offset: tuple[int, int], strides: tuple[int, int]) -> Tensor:
    """Means and deviations of both sides over a 2 x 2 grid, (B, 2, 2, 4 P), of the places that are left."""
    halves = []
    for n, first, stride in zip(responses.shape[-2:], offset, strides, strict=True):
        places, half = torch.arange(first, n, stride, device=responses.device), -(-n // 2)
        halves.append((places[places < half], places[places >= n - half]))
    cells = []
    for rows in halves[0]:
        for columns in halves[1]:
            cell = responses[:, :, rows][:, :, :, columns].flatten(2)
            sides = [(side * cell - _THRESHOLD).clamp_min(0) for side in (1, -1)]
            cells += [part for side in sides for part in (side.mean(dim=2), side.std(dim=2, correction=0))]
    return torch.cat(cells, dim=1).view(len(responses), 2, 2, -1)


def first_place(view: int, strides: tuple[int, int]) -> tuple[int, int]:
    """Where the places of a view begin: other ones in every view, as far as there are others."""
    if max(strides) > 2:
        return min(view, strides[0] - 1), min(view, strides[1] - 1)
    row, column = ((0, 0), (0, 1), (1, 0), (1, 1), (1, 1))[view]
    return min(row, strides[0] - 1), min(column, strides[1] - 1)


def sparse_features(memory: Tensor, options: argparse.Namespace) -> Features:
    """Patch features of some places of some turns of images and their mirror images."""
    fitted = PatchFeatures(options.n_patches, views=("",))
    fitted.fit(memory.cpu(), generator=torch.Generator().manual_seed(0))
    here = [PatchFilters(f.weight.to(memory.device), f.bias.to(memory.device)) for f in fitted._filters]

    def of_size(x: Tensor, filters: PatchFilters) -> Tensor:
        strides = (1, 1) if filters.weight.shape[-1] in options.dense else options.strides
        total = torch.zeros((), device=x.device)
        for i, turn in enumerate(options.turns):
            image = apply_view(x, f"turn{turn:+d}") if turn else x
            offset = first_place(i, strides)
            total = total + moments(responses(image, filters), offset, strides)
            # The mirror image at the mirrored places, then its cells in their own order.
            total = total + moments(responses(image.flip(-1), filters).flip(-1), offset, strides).flip(2)
        return total.flatten(1) / (2 * len(options.turns))

    return lambda x: torch.cat([of_size(x, filters) for filters in here], dim=1)


def evaluate(options: argparse.Namespace) -> dict[str, float]:
    scenario = load_scenario(f"split-{options.dataset}", fraction=options.fraction)
    stream = scenario.build(data_dir=options.data, seed=0, device=options.device)
    batches = list(stream.batches())
    x, y = torch.cat([b.x for b in batches]), torch.cat([b.y for b in batches if b.y is not None])
    features = sparse_features(x[:_BLOCK], options)
    statistics = SharedStatistics(features(x[:_BLOCK]).mean(dim=0))
    n_classes = int(y.max()) + 1
    statistics.add_components(n_classes)
    for part, labels in zip(x.split(_BLOCK), y.split(_BLOCK), strict=True):
        statistics.add(statistics.shift(features(part)), functional.one_hot(labels, n_classes).double().cpu())
        statistics.flush()
    test, labels = (torch.cat([getattr(task, part) for task in stream.tasks]) for part in ("x", "y"))
    rows = torch.cat([statistics.shift(features(part)) for part in test.to(x.device).split(_BLOCK)])
    means = statistics.sums / statistics.counts[:, None].to(rows.device)
    per_task = n_classes // len(stream.tasks)
    report = {}
    for shrinkage in _SHRINKAGES:
        covariance = shrunk_covariance(statistics.within_scatter(), statistics.degrees_of_freedom, shrinkage)
        duals = torch.cholesky_solve(means.T, torch.linalg.cholesky(covariance))
        answers = (rows @ duals - 0.5 * (means.T * duals).sum(dim=0)).argmax(dim=1).to(labels.device)
        report[f"accuracy {shrinkage:.0e}"] = 100 * float((answers == labels).double().mean())
        report[f"gating {shrinkage:.0e}"] = 100 * float((answers // per_task == labels // per_task).double().mean())
    return report


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", choices=("cifar10", "cifar100"))
    parser.add_argument("--data")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--n-patches", type=int, default=128)
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--turns", type=_numbers, default=(0, 8, -8), help="degrees")
    parser.add_argument("--strides", type=_numbers, default=(1, 1), help="between the rows and columns that count")
    parser.add_argument("--dense", type=_numbers, default=(), help="patch sizes of which every place counts")
    options = parser.parse_args()
    asked = {name: value for name, value in vars(options).items() if name != "data"}
    print(json.dumps({**asked, "torch": torch.__version__, **evaluate(options)}))


if __name__ == "__main__":
    main()
