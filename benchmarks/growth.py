"""The cost of a batch with many experts and many classes against few: ratios measured in one run.

    python -m benchmarks.growth                           # about five minutes on one core
    python -m benchmarks.growth --representations one     # the experts answer alone
    python -m benchmarks.growth --what neural             # networks: 1,000 against 10; --device cuda on a GPU

Gaussian experts are the default's, on rows of 32 features; only the memory is smaller, so that experts come quickly.
A wake step and an answer are of a batch of ten; answers for 1,000 rows at once and a live stream (predict, then learn)
are printed beside them. Few and many take turns, and the fastest of several rounds counts. Answers are compared with
the exact ones, in which every component takes part.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.growth_of_steps import growth_by_experts
from cndpm.experiments.presets import preset_settings
from cndpm.experts.gaussian import GaussianBank
from cndpm.experts.gaussian.provisional import sum_by_label
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings

_N_FEATURES = 32
_BATCH = 10
_ROUNDS = 7


class Blobs:
    """Rows of many classes, each a blob of its own.

    Args:
        n_classes: Number of blobs.
        seed: Of centres and rows.
    """

    def __init__(self, n_classes: int, seed: int = 0) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.n_classes = n_classes
        self._centres = 1.5 * torch.randn(n_classes, _N_FEATURES, generator=self._generator)

    def draw(self, n: int, first: int = 0, stop: int | None = None) -> tuple[Tensor, Tensor]:
        """Draws n rows of the classes from `first` to `stop`, (n, 32), and their classes."""
        y = torch.randint(first, stop or self.n_classes, (n,), generator=self._generator)
        return self._centres[y] + torch.randn(n, _N_FEATURES, generator=self._generator), y


def grown(blobs: Blobs, *, at_once: int, memory_size: int, representations: str) -> CNDPM:
    """Learns the classes a few at a time, so that every few become an expert.

    Args:
        blobs: The rows.
        at_once: Classes that come together.
        memory_size: Of the model; half as many samples again come of every few classes.
        representations: The setting of this name.
    """
    settings = CNDPMSettings.model_validate({"memory_size": memory_size, "representations": representations})
    learner = CNDPM(settings, input_shape=(_N_FEATURES,))
    for first in range(0, blobs.n_classes, at_once):
        x, y = blobs.draw(memory_size + memory_size // 2, first, first + at_once)
        learner.learn_block(x, y, _BATCH)
    learner.consolidate()
    return learner


def measured(learner: CNDPM, x: Tensor, y: Tensor) -> dict[str, Callable[[], object]]:
    """Returns what is timed, by name, with the number of batches it consists of in front."""
    few = x[: 20 * _BATCH]

    def live() -> None:
        for start in range(0, len(few), _BATCH):
            part = learner.prepare(few[start : start + _BATCH])
            learner.predict_log_proba(part)
            learner.learn(part, y[start : start + _BATCH])

    def answers() -> None:
        for start in range(0, len(few), _BATCH):
            learner.predict_log_proba(few[start : start + _BATCH])

    return {
        "wake step": lambda: learner.learn_block(few, y[: len(few)], _BATCH),
        "answer": answers,
        "predict, then learn": live,
        "answer for 1,000 rows": lambda: learner.predict_log_proba(x),
    }


def milliseconds(work: Callable[[], object]) -> float:
    """Measures how long some work takes."""
    started = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - started)


def compare(name: str, few: tuple[CNDPM, Blobs], many: tuple[CNDPM, Blobs]) -> None:
    """Prints every cost with many beside the one with few, and their ratio."""
    works = [measured(learner, *blobs.draw(1000)) for learner, blobs in (few, many)]
    for what in works[0]:
        fastest = [min(milliseconds(work[what]) for _ in range(_ROUNDS)) for work in works]
        n_batches = 1 if "rows" in what else 20
        least, most = (value / n_batches for value in fastest)
        print(f"{name}, {what}: {most / least:.2f} times ({most:.2f} ms / {least:.2f} ms)", flush=True)


def agreement(learner: CNDPM, blobs: Blobs, n: int = 10_000) -> str:
    """Compares answers with those of all components."""
    bank, (x, y) = learner.bank, blobs.draw(n)
    assert isinstance(bank, GaussianBank)
    answers = learner.predict_log_proba(x)
    same, right, differences = 0, 0, []
    for start in range(0, n, 500):
        part, rows = learner.prepare(x[start : start + 500]).kept[0], slice(start, start + 500)
        scores = bank.ready().answers.log_prob(part, exact=False)
        counts, labels = bank.ready().counts, torch.from_numpy(bank.labels.labels)
        log_proba = (scores + counts.log()).log_softmax(dim=1)
        everything = sum_by_label(log_proba, labels.expand(len(scores), -1), answers.shape[1])
        same += int((everything.argmax(1) == answers[rows].argmax(1)).sum())
        right += int((everything.argmax(1) == y[rows]).sum())
        differences.append((everything.exp() - answers[rows].exp()).abs().amax())
    return (
        f"{100 * same / n:.2f} % of {n:,} answers are the exact ones, whose accuracy is {100 * right / n:.2f} %; "
        f"probabilities differ by {float(torch.stack(differences).max()):.1e} at most"
    )


def gaussian_experts(representations: str) -> None:
    """Compares 1,000 experts with 10, of two classes each."""
    how: dict[str, Any] = {"at_once": 2, "memory_size": 40, "representations": representations}
    pairs = [(grown(blobs, **how), blobs) for blobs in (Blobs(20), Blobs(2000))]
    counts = [learner.n_experts for learner, _ in pairs]
    print(f"Gaussian experts: {counts[1]:,} against {counts[0]}")
    compare("experts", *pairs)
    print("experts:", agreement(*pairs[1]), flush=True)


def gaussian_classes(representations: str) -> None:
    """Compares 10,000 classes with 10."""
    pairs = [
        (grown(blobs, at_once=at_once, memory_size=20 * at_once, representations=representations), blobs)
        for blobs, at_once in ((Blobs(10), 5), (Blobs(10_000), 50))
    ]
    experts = [learner.n_experts for learner, _ in pairs]
    print(f"Classes: 10,000 (in {experts[1]} experts) against 10 (in {experts[0]})")
    compare("classes", *pairs)
    print("classes:", agreement(*pairs[1]), flush=True)


def neural_experts(device: str, numbers: Sequence[int] = (10, 1000)) -> None:
    """Compares 1,000 networks with 10, without lateral connections, by a wake step of ten images."""
    paper = CNDPMSettings.model_validate(preset_settings("paper", "cndpm", "split-mnist"))
    costs = growth_by_experts(paper, numbers, sharing=False, device=device)
    few, many = (costs[f"wake_step_ms_{n}_separate_experts"] for n in numbers)
    resident = costs[f"peak_resident_mib_{numbers[-1]}_separate_experts"]
    print(f"networks on {device}, wake step: {many / few:.2f} times ({many:.1f} ms / {few:.1f} ms); {resident:.0f} MiB")


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--what", nargs="*", choices=("experts", "classes", "neural"), default=["experts", "classes"])
    parser.add_argument("--representations", default="auto", help="the setting of this name")
    parser.add_argument("--device", default="cpu", help="of the networks")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if "experts" in options.what:
        gaussian_experts(options.representations)
    if "classes" in options.what:
        gaussian_classes(options.representations)
    if "neural" in options.what:
        neural_experts(options.device)


if __name__ == "__main__":
    main()
