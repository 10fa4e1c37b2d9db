"""Merging against a single pass: Split-MNIST learned in four shards, then merged.

    CNDPM_DATA=... python -m benchmarks.merging            # about three minutes on one core

The shards are quarters of the stream, one after the other. The first begins as any model does; the others take over its
representation. What is compared: samples of every expert, accuracy on the test set, statistics, and the merged file's
size with the time that merging takes. A second part merges in other orders and by pairs.
"""

from __future__ import annotations

import tempfile
import time
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from cndpm.datasets import load_dataset
from cndpm.experts.gaussian import GaussianBank
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.model.cndpm import CNDPM
from cndpm.model.joining import blank, merge, with_same_representation
from cndpm.model.settings import CNDPMSettings
from cndpm.state import save_state

_N_SHARDS = 4


def split_mnist() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the training stream, two digits after two, and the test set."""
    dataset = load_dataset("mnist")
    generator = torch.Generator().manual_seed(0)
    train, test = dataset.train, dataset.test
    order = torch.randperm(len(train.y), generator=generator)
    order = torch.cat([order[train.y[order] // 2 == task] for task in range(5)])
    return train.x[order].float() / 255, train.y[order], test.x.float() / 255, test.y


def learned(learner: CNDPM, x: Tensor, y: Tensor) -> CNDPM:
    """Learns a stream in batches of ten."""
    learner.learn_block(x, y, 10)
    return learner


def finished(learner: CNDPM) -> CNDPM:
    """Sleeps on what is left, as at the end of a stream."""
    learner.consolidate()
    learner.finish()
    return learner


def accuracy(learner: CNDPM, x: Tensor, y: Tensor) -> float:
    """Returns the share of right answers, in per cent."""
    return 100 * float((learner.predict_log_proba(x).argmax(dim=1) == y).double().mean())


def sums(learner: CNDPM) -> tuple[Tensor, Tensor, Tensor]:
    """Returns what experts with one covariance are: samples (C,) and features (C, d) by label, and scatter (d, d)."""
    assert isinstance(learner.bank, GaussianBank)
    gaussians, labels = learner.bank.ready(), torch.from_numpy(learner.bank.labels.labels)
    assert isinstance(gaussians, SharedGaussians)
    statistics, n_classes = gaussians.statistics, learner.bank.labels.n_classes
    counts = torch.zeros(n_classes, dtype=torch.float64).index_add(0, labels, gaussians.counts)
    features = statistics.sums.cpu() + gaussians.counts[:, None] * statistics.origin.cpu()
    by_label = features.new_zeros(n_classes, features.shape[1]).index_add(0, labels, features)
    return counts, by_label, statistics.within_scatter().tril().cpu()


def second_moment(learner: CNDPM) -> Tensor:
    """Returns the sum of z z' over all samples, less the origin, whichever experts have them; lower half, (d, d)."""
    assert isinstance(learner.bank, GaussianBank)
    gaussians = learner.bank.ready()
    assert isinstance(gaussians, SharedGaussians)
    statistics, counts = gaussians.statistics, gaussians.counts.clamp_min(1e-300)
    scaled = statistics.sums.cpu() / counts.sqrt()[:, None]
    return (statistics.within_scatter().cpu() + scaled.T @ scaled).tril()


def differences(a: CNDPM, b: CNDPM) -> str:
    """Compares sums of both models, label by label, relative to their size."""
    parts = [sums(learner) for learner in (a, b)]
    worst = [float((mine - theirs).abs().max() / mine.abs().max()) for mine, theirs in zip(*parts, strict=True)]
    return "counts by label {:.1e}, sums by label {:.1e}, scatter {:.1e}".format(*worst)


def main() -> None:
    """Prints every comparison."""
    x, y, x_test, y_test = split_mnist()
    new = CNDPM(CNDPMSettings(), input_shape=(1, 28, 28))
    started = time.perf_counter()
    single = learned(new, x, y)
    print(f"single pass: {time.perf_counter() - started:.1f} s", flush=True)
    bounds = [len(x) * i // _N_SHARDS // 10 * 10 for i in range(_N_SHARDS)] + [len(x)]
    shards: list[CNDPM] = []
    for start, stop in pairwise(bounds):
        began = with_same_representation(shards[0]) if shards else blank(new)
        shards.append(learned(began, x[start:stop], y[start:stop]))
        print("shard:", [round(n) for n in shards[-1].counts.tolist()], "and", len(shards[-1].memory), "in the memory")
    started = time.perf_counter()
    merged = merge(shards)
    seconds = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        sizes = []
        for learner in (*shards, merged):
            save_state(f"{folder}/model", learner.state_dict(), kind="benchmark")
            sizes.append(Path(f"{folder}/model").stat().st_size / 2**20)
    print(f"merging: {seconds:.2f} s; files of {sizes[0]:.1f} MiB a shard and {sizes[-1]:.1f} MiB merged")
    pairs = merge([merge([shards[3], shards[1]]), merge([shards[2], shards[0]])])
    for learner in (single, merged, pairs):
        finished(learner)
        print(f"samples by expert: {learner.counts.tolist()}, accuracy {accuracy(learner, x_test, y_test):.2f} %")
    print("merged against a single pass:", differences(single, merged))
    print("merged by pairs in another order against at once:", differences(merged, pairs))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
