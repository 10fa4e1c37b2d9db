"""Gaussian experts over patch features on the paper's streams: accuracy, gate, experts, numbers kept, seconds.

    python benchmarks/gate.py split-mnist --data DATA --out gate.json
    python benchmarks/gate.py split-cifar10 split-cifar100 --data DATA --device cuda --patches 128 683 --out gate.json

One pass, batches of ten, no replay, no task information, one set of settings for all streams. DATA holds the published
layouts: MNIST/raw, FashionMNIST/raw, cifar-10-batches-py, cifar-100-python (readers accept the .gz files as well). The
loop below is Algorithm 1 with the concentration set by the model; features of a thousand samples are computed at a
time, which changes nothing but the speed, because they are frozen.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import math
import pickle
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.features import PatchFeatures, PrincipalFeatures
from cndpm.experts.gaussian import GaussianBank
from cndpm.mixture.novelty import AutoConcentration, accepts_expert, margins

BATCH_SIZE = 10
CHUNK_SIZE = 1000


@dataclass
class Task:
    """Images (N, C, H, W) as bytes and labels (N,) of one task."""

    x: Tensor
    y: Tensor


@dataclass
class Scenario:
    """The training stream in order, the test tasks, the number of classes."""

    x: Tensor
    y: Tensor | None
    test: list[Task]
    n_classes: int


# --- data -------------------------------------------------------------------------------------------------------------


def _idx(folder: Path, name: str) -> np.ndarray:
    path = folder / name
    raw = path.read_bytes() if path.exists() else gzip.decompress((folder / f"{name}.gz").read_bytes())
    n_dims = raw[3]
    shape = np.frombuffer(raw, ">u4", count=n_dims, offset=4).astype(int)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * n_dims).reshape(shape)


def _pickled(path: Path) -> dict[bytes, np.ndarray]:
    with path.open("rb") as file:
        return pickle.load(file, encoding="bytes")


def load(name: str, data: Path) -> tuple[Task, Task, list[list[int]]]:
    """Training and test set and the labels of every task."""
    pairs = [[2 * i, 2 * i + 1] for i in range(5)]
    if name in ("mnist", "fashion"):
        folder = data / ("MNIST" if name == "mnist" else "FashionMNIST") / "raw"
        folder = folder if any(folder.glob("*ubyte*")) else data / "fashion-mnist"
        sets = [
            Task(
                torch.tensor(_idx(folder, f"{part}-images-idx3-ubyte"))[:, None],
                torch.tensor(_idx(folder, f"{part}-labels-idx1-ubyte")).long(),
            )
            for part in ("train", "t10k")
        ]
        return sets[0], sets[1], pairs
    if name == "cifar10":
        folder = data / "cifar-10-batches-py"
        parts = [[_pickled(folder / f"data_batch_{i}") for i in range(1, 6)], [_pickled(folder / "test_batch")]]
        sets = [_cifar(part, b"labels") for part in parts]
        return sets[0], sets[1], pairs
    folder = data / "cifar-100-python"
    train, test = _pickled(folder / "train"), _pickled(folder / "test")
    coarse, fine = np.array(train[b"coarse_labels"]), np.array(train[b"fine_labels"])
    tasks = [sorted(set(fine[coarse == c].tolist())) for c in range(20)]
    return _cifar([train], b"fine_labels"), _cifar([test], b"fine_labels"), tasks


def _cifar(parts: list[dict[bytes, np.ndarray]], label: bytes) -> Task:
    x = np.concatenate([part[b"data"] for part in parts]).reshape(-1, 3, 32, 32)
    return Task(torch.tensor(x), torch.tensor(np.concatenate([np.asarray(part[label]) for part in parts])).long())


def scenario(name: str, data: Path, seed: int, subset: int | None, order: list[int] | None) -> Scenario:
    """The stream `name`: tasks one after the other, each shuffled; fuzzy streams mix neighbours as the paper does."""
    fuzzy, unlabelled = name.startswith("fuzzy-"), name.endswith("-gen")
    dataset = name.removeprefix("fuzzy-").removeprefix("split-").removesuffix("-gen")
    train, test, tasks = load(dataset, data)
    tasks = [tasks[i] for i in order] if order else tasks
    rng = np.random.default_rng(seed)
    indices = [np.flatnonzero(np.isin(train.y.numpy(), labels)) for labels in tasks]
    stream = _fuzzy(indices, rng) if fuzzy else [rng.permutation(part)[:subset] for part in indices]
    chosen = torch.tensor(np.concatenate(stream))
    tests = [Task(test.x[mask], test.y[mask]) for mask in (torch.isin(test.y, torch.tensor(t)) for t in tasks)]
    y = None if unlabelled else train.y[chosen]
    return Scenario(train.x[chosen], y, tests, int(train.y.max()) + 1)


def _fuzzy(indices: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """6,000 of the first task; five mixed stages of 2,400 between neighbours; 6,000 of the last; with replacement."""
    stream = [rng.choice(indices[0], 6000)]
    for old, new in itertools.pairwise(indices):
        for share in (0.1, 0.3, 0.5, 0.7, 0.9):
            is_new = rng.random(2400) < share
            stream.append(np.where(is_new, rng.choice(new, 2400), rng.choice(old, 2400)))
    return [*stream, rng.choice(indices[-1], 6000)]


# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


class Mixture:
    """Algorithm 1 with Gaussian experts and a concentration of the model's own."""

    def __init__(self, bank: GaussianBank, *, memory_size: int, novelty_rate: float) -> None:
        self.bank, self.memory_size = bank, memory_size
        self.novelty = AutoConcentration(novelty_rate=novelty_rate)
        self.counts = torch.zeros(0, dtype=torch.float64, device=bank.device)
        self.memory: list[tuple[Tensor, Tensor | None]] = []
        self.log: list[dict[str, object]] = []
        self.n_seen = 0
        self.n_returned = 0

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        """Routes a batch: what is new goes to the memory, the rest to the experts."""
        self.n_seen += len(x)
        if not self.bank.n_experts:
            self._remember(x, y)
            return
        log_known = self.counts.log() + self.bank.log_joint(x, y)
        is_new = self.novelty.judge(log_known, self.bank.log_joint_new(x, y))
        responsibilities = torch.where(is_new[:, None], 0.0, log_known.softmax(dim=1))
        if not bool(is_new.all()):
            self.bank.learn(x, y, responsibilities)
            self.counts = self.counts + responsibilities.sum(dim=0)
        if bool(is_new.any()):
            self._remember(x[is_new], None if y is None else y[is_new])

    def _remember(self, x: Tensor, y: Tensor | None) -> None:
        self.memory.append((x.clone(), y))
        if sum(len(part) for part, _ in self.memory) >= self.memory_size:
            self.sleep()

    def sleep(self) -> None:
        """A fifth of the memory is held out; on it the new expert must earn its place and sets its own level."""
        x = torch.cat([part for part, _ in self.memory])
        y = None if self.memory[0][1] is None else torch.cat([part for _, part in self.memory if part is not None])
        self.memory = []
        x, y = self._return_tails(x, y)
        if len(x) < self.memory_size // 2:
            self.memory = [(x, y)]
            return
        held_out = torch.arange(len(x), device=x.device) % 5 == 4
        rest, rest_y = x[~held_out], None if y is None else y[~held_out]
        self.bank.start_expert(rest, rest_y)
        self.bank.train_expert(1)
        counts = torch.cat([self.counts, self.counts.new_tensor([float(len(rest))])])
        checked, checked_y = x[held_out], None if y is None else y[held_out]
        log_known = counts.log() + self.bank.log_joint(checked, checked_y)
        log_new = self.bank.log_joint_new(checked, checked_y)
        accepted = self.bank.n_experts == 1 or accepts_expert(
            log_known.logsumexp(dim=1),
            log_known[:, :-1].logsumexp(dim=1),
            cost=float(self.counts.sum().clamp_min(1).log()),
        )
        self.log.append({"at": self.n_seen, "accepted": accepted})
        if not accepted:
            into = int((self.counts.log() + self.bank.log_joint(rest, rest_y)[:, :-1]).sum(dim=0).argmax())
            self.bank.remove(self.bank.n_experts - 1, into)
            self.counts[into] += len(rest)
            return
        self.counts = counts
        margin, expert = margins(log_known, log_new)
        own = expert == self.bank.n_experts - 1
        self.novelty.add_expert(margin[own])
        self.bank.learn(checked, checked_y, log_known.softmax(dim=1))
        self.counts = self.counts + log_known.softmax(dim=1).sum(dim=0)

    def _return_tails(self, x: Tensor, y: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Samples that experts explain better than the rest of the memory would go back to the experts."""
        if not self.bank.n_experts:
            return x, y
        log_known = self.counts.log() + self.bank.log_joint(x, y)
        known = log_known.amax(dim=1) > math.log(len(x)) + self.bank.log_leave_one_out(x, y)
        self.n_returned += int(known.sum())
        responsibilities = torch.where(known[:, None], log_known.softmax(dim=1), 0.0)
        self.bank.learn(x, y, responsibilities)
        self.counts = self.counts + responsibilities.sum(dim=0)
        return x[~known], None if y is None else y[~known]

    def log_experts(self, x: Tensor) -> Tensor:
        """Log-probability of every expert given x alone, (B, K)."""
        return (self.counts.log() + self.bank.log_density(x)).log_softmax(dim=1)


# --- one run ----------------------------------------------------------------------------------------------------------


def run(name: str, options: argparse.Namespace, n_patches: int) -> dict[str, object]:
    device = torch.device(options.device)
    torch.manual_seed(options.seed)
    data = scenario(name, options.data, options.seed, options.subset, options.order)
    patches = PatchFeatures(n_patches)
    # Without labels an expert is one Gaussian; it needs a covariance of its own, and so few features.
    labelled = data.y is not None
    bank = GaussianBank(
        patches if labelled else PrincipalFeatures(patches, 128),
        n_classes=data.n_classes if labelled else None,
        covariance="shared" if labelled else "own",
        shrinkage=options.shrinkage,
        seed=options.seed,
        device=device,
    )
    mixture = Mixture(bank, memory_size=options.memory, novelty_rate=options.novelty_rate)
    stream_x, stream_y = data.x.to(device), None if data.y is None else data.y.to(device)
    _synchronise(device)
    begun = time.perf_counter()
    for start in range(0, len(stream_x), CHUNK_SIZE):
        chunk = stream_x[start : start + CHUNK_SIZE].float() / 255
        bank.announce(chunk[:BATCH_SIZE])
        for at in range(0, len(chunk), BATCH_SIZE):
            y = None if stream_y is None else stream_y[start + at : start + at + BATCH_SIZE]
            mixture.learn(chunk[at : at + BATCH_SIZE], y)
        _progress(name, start, len(stream_x), bank, begun)
    n_left = sum(len(part) for part, _ in mixture.memory)
    _synchronise(device)
    trained = time.perf_counter()
    result = evaluate(mixture, data.test, device)
    _synchronise(device)
    gaussians = bank._gaussians
    return {
        "scenario": name,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "patches": n_patches,
        **result,
        "experts": bank.n_experts,
        "foundings": mixture.log,
        "left_in_memory": n_left,
        "returned_from_memory": mixture.n_returned,
        "numbers_kept": bank.n_numbers_kept,
        "views": patches.views,
        "shrinkage": getattr(gaussians, "shrinkage", None),
        "tail": str(getattr(gaussians, "tail", None)),
        "factorisations": getattr(gaussians, "n_factorisations", None),
        "counts": mixture.counts.tolist(),
        "log_alpha": mixture.novelty.log_alpha().tolist(),
        "seconds_training": trained - begun,
        "seconds_total": time.perf_counter() - begun,
        "seed": options.seed,
        "subset": options.subset,
        "order": options.order,
        "memory": options.memory,
        "torch": torch.__version__,
    }


def evaluate(mixture: Mixture, tests: list[Task], device: torch.device) -> dict[str, object]:
    """Accuracy of equation 6, share of samples that reach the expert of their task, accuracy of that expert."""
    right, gated, classified, total = 0, 0, 0, 0
    per_task = []
    for task in tests:
        correct, reached = 0, torch.zeros(mixture.bank.n_experts, dtype=torch.long)
        expert_right = torch.zeros(mixture.bank.n_experts, dtype=torch.long)
        for start in range(0, len(task.x), CHUNK_SIZE):
            x = task.x[start : start + CHUNK_SIZE].to(device).float() / 255
            y = task.y[start : start + CHUNK_SIZE].to(device)
            gate, predicted = mixture.log_experts(x), mixture.bank.predictive(x)
            correct += int(((gate[..., None] + predicted).logsumexp(dim=1).argmax(dim=1) == y).sum())  # 0 if unlabelled
            reached += gate.argmax(dim=1).bincount(minlength=len(reached)).cpu()
            expert_right += (predicted.argmax(dim=2) == y[:, None]).sum(dim=0).cpu()
        # A task's expert is the one that most of its samples reach.
        owner = int(reached.argmax())
        right, gated = right + correct, gated + int(reached[owner])
        classified, total = classified + int(expert_right[owner]), total + len(task.y)
        per_task.append(correct / len(task.y))
    return {
        "accuracy": right / total,
        "gating_accuracy": gated / total,
        "classifier_accuracy": classified / total,
        "accuracy_per_task": per_task,
    }


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _progress(name: str, start: int, n: int, bank: GaussianBank, begun: float) -> None:
    done = min(n, start + CHUNK_SIZE)
    if done % 5000 < CHUNK_SIZE or done == n:
        seconds = time.perf_counter() - begun
        print(f"{name}: {done}/{n} samples, {bank.n_experts} experts, {seconds:.1f} s", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="+", help="[fuzzy-]split-{mnist,fashion,cifar10,cifar100}[-gen]")
    parser.add_argument("--data", type=Path, required=True, help="folder with the published layouts")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--patches", type=int, nargs="+", default=[128], help="per size; 128 compact, 683 large")
    parser.add_argument("--memory", type=int, default=1000)
    parser.add_argument("--novelty-rate", type=float, default=0.01)
    parser.add_argument("--shrinkage", type=float, default=None, help="fixed; by default chosen by held-out likelihood")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--subset", type=int, default=None, help="samples per task, for a quick look")
    parser.add_argument("--order", type=int, nargs="+", default=None, help="order of the tasks")
    parser.add_argument("--out", type=Path, default=None, help="JSON file, rewritten after every run")
    options = parser.parse_args()
    results = []
    for name in options.scenarios:
        for n_patches in options.patches:
            try:
                results.append(run(name, options, n_patches))
            except Exception as error:  # one failure must not lose the runs before and after it
                results.append({"scenario": name, "patches": n_patches, "error": f"{type(error).__name__}: {error}"})
            print(json.dumps(results[-1]), flush=True)
            if options.out:
                options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
