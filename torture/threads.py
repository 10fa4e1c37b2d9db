"""Asks a model from four threads while another one teaches it; each answer must be that of a state between two batches.

    python -m torture.threads --n 200 --seed 0 --jobs 2     # 200 models, 500 answers of each: 100,000

Options are those of :mod:`torture.attempts`; an attempt is a model that is taught and gives 500 answers.
The states are known from a model that learned the same batches alone; answers are compared to the bit. A fifth thread
copies the model by pickling, and the copy must answer as one of the states too; now and then the process forks, and the
child must answer and learn. Counted are foreign (an exception), mixed (an answer of no state, or another model in the
end), backwards (a thread saw an earlier state after a later one), stuck (a thread or child did not end), and last the
answers, copies and children that were right. Ends with 1 if any of the first four is not zero.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from torture.attempts import Attack, Outcome, main
from torture.call_worker import fingerprint

__all__ = ["ATTACK", "Stage", "attempts", "perform"]

ATTACK = Attack(
    "models asked by four threads beside a writer",
    "torture.threads",
    200,
    ("foreign", "mixed", "backwards", "stuck"),
    ("answers", "copies", "children"),
)
_N_ANSWERS, _N_CALLS = 500, 20
_N_READERS = 4
_PATIENCE = 300.0
_KINDS: tuple[tuple[type, dict[str, Any]], ...] = (
    (CNDPMClassifier, {"settings": {"n_fourier": 32}}),
    (CNDPMDensity, {}),
    (CNDPMRegressor, {"settings": {"n_fourier": 32}}),
)


@dataclass
class Stage:
    """A model, what it will be taught, and the answers of all its states.

    Attributes:
        model: Has learned a little.
        calls: Rows and targets of the calls that follow; most are of several batches.
        probe: Rows that are asked about.
        states: The number of the state by answer, as bytes.
        end: The fingerprint of the last state.
    """

    model: Any
    calls: list[tuple[np.ndarray, ...]]
    probe: np.ndarray
    states: dict[bytes, int] = field(default_factory=dict)
    end: Any = None

    @classmethod
    def prepare(cls, seed: int, number: int, n_calls: int) -> Stage:
        """Makes a stage, the states included.

        Args:
            seed: Of the data.
            number: Chooses the estimator.
            n_calls: Calls of the writer.
        """
        rng = np.random.default_rng((seed, number))
        estimator, parameters = _KINDS[number % len(_KINDS)]
        model = estimator(memory_size=40, random_state=seed, device="cpu", **parameters)
        y = np.arange(50 + 30 * n_calls) * 4 // (50 + 30 * n_calls)
        x = rng.normal(size=(len(y), 5)) + 5 * y[:, None]
        data = [(x[s], y[s]) if model._target != "none" else (x[s],) for s in (slice(0, 50), slice(50, None))]
        model.partial_fit(*data[0])
        cuts = np.sort(rng.choice(np.arange(1, 30 * n_calls), n_calls - 1, replace=False))
        calls = [tuple(part) for part in zip(*(np.split(values, cuts) for values in data[1]), strict=True)]
        stage = cls(model, calls, x[:: len(x) // 8])
        stage._rehearse()
        return stage

    def _rehearse(self) -> None:
        """Learns the calls alone and notes the answer after every batch."""
        model = pickle.loads(pickle.dumps(self.model))
        self._note(model)
        for x, *y in self.calls:
            targets = _targets_of(model, y[0]) if y else None
            rows = torch.tensor(x.astype(np.float32))
            model.learner_.learn_block(rows, targets, model.batch_size, after_batch=lambda _: self._note(model))
        self.end = fingerprint(model)

    def _note(self, model: Any) -> None:
        self.states.setdefault(answer(model, self.probe), len(self.states))


def _targets_of(model: Any, y: np.ndarray) -> torch.Tensor:
    """Returns targets as the learner of a model takes them."""
    if model._target == "classes":
        return torch.from_numpy(model._codec.encode(y, learn=True))
    return torch.tensor(y, dtype=torch.float32).reshape(len(y), -1)


def answer(model: Any, probe: np.ndarray) -> bytes:
    """Returns what a model says of some rows."""
    name = {"classes": "predict_proba", "values": "predict", "none": "score_samples"}[model._target]
    said: bytes = getattr(model, name)(probe).tobytes()
    return said


@dataclass
class Heard:
    """Counts outcomes, by several threads, with the first detail of each."""

    counts: Counter[str] = field(default_factory=Counter)
    details: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, outcome: str, detail: str) -> None:
        """Counts one outcome."""
        with self._lock:
            self.counts[outcome] += 1
            self.details.setdefault(outcome, detail)


def perform(stage: Stage, n: int, *, forks: bool) -> Heard:
    """Has four threads ask until there are n answers and the writer is done; returns what they heard.

    Args:
        stage: The model and its states.
        n: Answers wanted.
        forks: Whether the process forks now and then.
    """
    heard, over, asked = Heard(), threading.Event(), [0] * (_N_READERS + 1)

    def ask(reader: int) -> None:
        latest = -1
        while not over.is_set():
            latest = _ask_once(stage, heard, latest, copied=reader == _N_READERS)
            asked[reader] += 1

    threads = [threading.Thread(target=ask, args=(reader,), daemon=True) for reader in range(_N_READERS + 1)]
    for thread in threads:
        thread.start()
    for number, call in enumerate(stage.calls):
        stage.model.partial_fit(*call)
        while sum(asked[:_N_READERS]) < n * (number + 1) / len(stage.calls) and any(t.is_alive() for t in threads):
            time.sleep(0.001)  # answers of this state, before the next call
        if forks and number % 5 == 0:
            _fork(stage, heard)
    over.set()
    for thread in threads:
        thread.join(_PATIENCE)
        if thread.is_alive():
            heard.add("stuck", "a thread that asks")
    if fingerprint(stage.model) != stage.end:
        heard.add("mixed", "the model at the end")
    return heard


def _ask_once(stage: Stage, heard: Heard, latest: int, *, copied: bool) -> int:
    """Asks the model, or a copy; returns the latest state that the thread has seen."""
    name = type(stage.model).__name__
    try:
        said = answer(pickle.loads(pickle.dumps(stage.model)) if copied else stage.model, stage.probe)
    except Exception as error:
        heard.add("foreign", f"{name}: {error!r}")
        return latest
    state = stage.states.get(said)
    outcome = "mixed" if state is None else "backwards" if state < latest else "copies" if copied else "answers"
    heard.add(outcome, f"{name}, state {state} after {latest}")
    return latest if state is None else state


def _fork(stage: Stage, heard: Heard) -> None:
    """Forks while other threads ask; the child must answer and learn."""
    child = os.fork()
    if not child:
        right = answer(stage.model, stage.probe) in stage.states
        stage.model.partial_fit(*stage.calls[0])
        os._exit(0 if right else 1)
    began = time.perf_counter()
    while time.perf_counter() - began < 30:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            heard.add("mixed" if status else "children", f"a child ended with {status}")
            return
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    heard.add("stuck", "a child of a fork")


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:  # noqa: ARG001
    """Yields what was heard of the models from `first` to `end`, without any files."""
    torch.set_num_threads(1)
    for number in range(first, end):
        heard = perform(Stage.prepare(seed, number, _N_CALLS), _N_ANSWERS, forks=True)
        for outcome, times in heard.counts.items():
            yield Outcome(number, outcome, heard.details[outcome], times)


if __name__ == "__main__":
    sys.exit(main(ATTACK))
