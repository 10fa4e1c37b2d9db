"""What labels cost: bytes and time of the model that rows get by default, as it comes to know more and more of them.

    python -m benchmarks.labels                       # up to 10,000 labels, a few minutes
    python -m benchmarks.labels --labels 10 100       # fewer

One model with the default settings meets five rows of every label, in an order of their own, up to each number of
labels in turn. Then it is measured: the time of a batch of ten rows of labels that it knows (of the process; the median
over 20 blocks of ten batches), of an answer to ten rows, the bytes of its file, and the memory of the process. One line
of JSON for each number of labels; `--out RECORD` adds them to a record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from figures.facts import add_options, append, facts
from numpy.typing import NDArray

from cndpm import CNDPMClassifier

__all__ = ["main", "measured", "rows_of"]

_N_FEATURES = 8
_ROWS_OF_LABEL = 5
_BATCH, _N_BLOCKS = 10, 20
_LABELS = (10, 30, 100, 256, 300, 1000, 3000, 10_000)


def rows_of(labels: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """Draws a row for each of the labels (n,), (n, 8): every label has a centre of its own.

    Args:
        labels: Numbers of labels.
        seed: Of what is drawn around the centres.
    """
    centres = 6 * np.random.default_rng(0).normal(size=(int(labels.max()) + 1, _N_FEATURES))
    return centres[labels] + np.random.default_rng(seed).normal(size=(len(labels), _N_FEATURES))


def measured(numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
    """Yields what was measured at each number of labels, ascending."""
    model, known = CNDPMClassifier(device="cpu", random_state=0), 0
    for n in numbers:
        new = np.random.default_rng(n).permutation(np.repeat(np.arange(known, n), _ROWS_OF_LABEL))
        began = time.process_time()
        model.partial_fit(rows_of(new, seed=n), new)
        learning, known = time.process_time() - began, n
        yield {
            "labels": n,
            "experts": model.n_experts_,
            "new_label_milliseconds": 1e3 * learning * _ROWS_OF_LABEL / len(new),
            "batch_milliseconds": _milliseconds(model.partial_fit, n, n_rows=_BATCH * _BATCH) / _BATCH,
            "answer_milliseconds": _milliseconds(lambda x, _: model.predict_proba(x), n, n_rows=_BATCH),
            "file_kib": _file_bytes(model) / 1024,
            "process_mib": _resident_mib(),
        }


def _milliseconds(call: Callable[[Any, Any], Any], n_labels: int, n_rows: int) -> float:
    """Returns the median time of a call with rows of known labels."""
    taken = []
    for number in range(_N_BLOCKS):
        y = np.random.default_rng(number).integers(n_labels, size=n_rows)
        x = rows_of(y, seed=number)
        began = time.process_time()
        call(x, y)
        taken.append(1e3 * (time.process_time() - began))
    return median(taken)


def _file_bytes(model: CNDPMClassifier) -> int:
    with TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        return Path(folder, "model").stat().st_size


def _resident_mib() -> float:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line of JSON for each number of labels."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels", description="What labels cost.")
    parser.add_argument("--labels", type=int, nargs="+", default=_LABELS, help="numbers of labels, ascending")
    add_options(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="The number of unique classes")  # of scikit-learn: targets may be numbers
    for row in measured(sorted(options.labels)):
        print(json.dumps(row), flush=True)
        if options.out is not None:
            append(options.out, [facts(commit=options.commit) | {"seed": 0} | row])
    return 0


if __name__ == "__main__":
    sys.exit(main())
