"""Streams that hurt: what becomes of the default where data drifts, returns, comes in bursts, twice, or mislabelled.

    python -m benchmarks.hard_streams                      # about two minutes on one core

Rows of eight features and six classes, 9,000 of them, in batches of ten. Every stream is a reordering or a change of
the same rows; the first line is the plain one. Printed are the experts founded, the share of right answers before
learning (prequential) and on fresh rows at the end, and milliseconds a batch, of the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings

_N, _D, _CLASSES, _BATCH = 9000, 8, 6, 10

Rows = tuple[Tensor, Tensor]


def rows(n: int, seed: int) -> Rows:
    """Draws rows (n, 8) of six classes, shuffled."""
    generator = torch.Generator().manual_seed(seed)
    centres = 2 * torch.randn(_CLASSES, _D, generator=torch.Generator().manual_seed(0))
    y = torch.randint(_CLASSES, (n,), generator=generator)
    return centres[y] + torch.randn(n, _D, generator=generator), y


def in_turn(data: Rows, n_turns: int) -> Rows:
    """Orders rows so that pairs of classes take turns, each n_turns times."""
    x, y = data
    by_pair = [torch.nonzero(y // 2 == pair)[:, 0] for pair in range(_CLASSES // 2)]
    parts = [torch.tensor_split(indices, n_turns) for indices in by_pair]
    order = torch.cat([part[turn] for turn in range(n_turns) for part in parts])
    return x[order], y[order]


def drifting(data: Rows) -> Rows:
    """Moves all classes by three deviations in every feature from first to last."""
    x, y = in_turn(data, 3)
    return x + 3 * torch.linspace(0, 1, len(x))[:, None], y


def imbalanced(data: Rows) -> Rows:
    """Keeps one row in fifty of the classes 1, 3 and 5."""
    x, y = in_turn(data, 1)
    keep = (y % 2 == 0) | (torch.arange(len(y)) % 50 == 0)
    return x[keep], y[keep]


def bursty(data: Rows) -> Rows:
    """Lets one class come at a time, in bursts of random length between 1 and 60."""
    x, y = data
    generator = torch.Generator().manual_seed(1)
    waiting = [torch.nonzero(y == label)[:, 0].tolist() for label in range(_CLASSES)]
    order: list[int] = []
    while any(waiting):
        label = int(torch.randint(_CLASSES, (1,), generator=generator))
        n = int(torch.randint(1, 61, (1,), generator=generator))
        order += waiting[label][:n]
        waiting[label] = waiting[label][n:]
    return x[order], y[order]


def duplicated(data: Rows) -> Rows:
    """Lets every row come five times in a row."""
    x, y = in_turn(data, 1)
    order = torch.arange(len(y))[::5].repeat_interleave(5)[: len(y)]
    return x[order], y[order]


def adversarial(data: Rows) -> Rows:
    """Lets the rows of every class come from one end of it to the other: the worst order for a running mean."""
    x, y = data
    order = torch.cat([own[x[own].sum(dim=1).argsort()] for label in range(_CLASSES) for own in [_of(y, label)]])
    return x[order], y[order]


def _of(y: Tensor, label: int) -> Tensor:
    return torch.nonzero(y == label)[:, 0]


def mislabelled(share: float) -> Callable[[Rows], Rows]:
    """Gives a share of the rows a random label."""

    def change(data: Rows) -> Rows:
        x, y = in_turn(data, 1)
        generator = torch.Generator().manual_seed(2)
        wrong = torch.rand(len(y), generator=generator) < share
        return x, torch.where(wrong, torch.randint(_CLASSES, y.shape, generator=generator), y)

    return change


STREAMS: dict[str, Callable[[Rows], Rows]] = {
    "two classes after two": lambda data: in_turn(data, 1),
    "shuffled": lambda data: data,
    "returning, 10 turns": lambda data: in_turn(data, 10),
    "returning, 100 turns": lambda data: in_turn(data, 100),
    "drifting": drifting,
    "imbalanced, 1 in 50": imbalanced,
    "bursty": bursty,
    "duplicated, 5 times": duplicated,
    "ordered against it": adversarial,
    "10 % of labels wrong": mislabelled(0.1),
    "30 % of labels wrong": mislabelled(0.3),
}


def main() -> None:
    """Prints one line a stream."""
    data, (x_test, y_test) = rows(_N, seed=3), rows(3000, seed=4)
    print(f"{'stream':24} experts  prequential %  at the end %  ms a batch")
    for name, change in STREAMS.items():
        x, y = change(data)
        shift = 3.0 if name == "drifting" else 0.0  # the world as it is at the end
        learner = CNDPM(CNDPMSettings(memory_size=200), input_shape=(_D,), n_classes=_CLASSES)
        right, started = 0, time.process_time()
        for start in range(0, len(x), _BATCH):
            part, labels = learner.prepare(x[start : start + _BATCH]), y[start : start + _BATCH]
            right += int((learner.predict_log_proba(part).argmax(dim=1) == labels).sum())
            learner.learn(part, labels)
        cost = 1e3 * (time.process_time() - started) * _BATCH / len(x)
        learner.consolidate()
        final = (learner.predict_log_proba(x_test + shift, exact=True).argmax(dim=1) == y_test).double().mean()
        print(
            f"{name:24} {learner.n_experts:7} {100 * right / len(x):14.1f} {100 * float(final):13.1f} {cost:11.2f}",
            flush=True,
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
