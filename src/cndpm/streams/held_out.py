"""Splits for choices: a tenth of every class's training samples in place of the test set.

Rules and constants are chosen on such splits, so that test sets are looked at once, when the choice is made.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from cndpm.datasets.dataset import Dataset, Split
from cndpm.streams.randomness import Purpose, host_generator

_SHARE = 10
"""One sample in so many is held out."""


def hold_out(dataset: Dataset, *, seed: int, number: int) -> Dataset:
    """Returns a dataset that is trained and tested on parts of the training set; the test set is left out.

    A tenth of every class, rounded, is held out: at least one sample of a class that has two. Both parts keep the order
    of the training set.
    """
    labels = dataset.train.y.numpy()
    is_held_out = np.zeros(len(labels), dtype=bool)
    for label in range(len(dataset.classes)):
        rows = np.flatnonzero(labels == label)
        n = max(round(len(rows) / _SHARE), int(len(rows) > 1))
        is_held_out[host_generator(seed, Purpose.HELD_OUT, number, label).permutation(rows)[:n]] = True
    chosen = torch.from_numpy(is_held_out)
    train, test = (Split(dataset.train.x[part], dataset.train.y[part]) for part in (~chosen, chosen))
    return replace(dataset, train=train, test=test)
