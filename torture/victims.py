"""Models and records that attacks damage: one of every kind of expert, and one of every file that a run leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.experiments import Monitor
from torture.small_run import outcome, run_once

__all__ = ["FLIPPED", "MODELS", "VICTIMS", "Victim", "prepare", "rows_for", "samples"]

_RECORDS = {
    "interrupted": ("config.json", "log.jsonl", "checkpoint.cndpm", "checkpoint.previous.cndpm"),
    "complete": ("config.json", "log.jsonl", "summary.json", "checkpoint.cndpm", "portrait.npz"),
}
_NETWORK = {"hidden": 4, "latent_dim": 2, "n_latent_samples": 2, "density_sleep_steps": 3, "predictor_sleep_steps": 3}
_COMPANIONS = {"sleep_steps": 3, "wake_steps": 1, "hidden": 4}
_ONE = {"representations": "one"}
_SETTINGS: dict[str, dict[str, Any]] = {
    "classifier": {"features": "identity", **_ONE},
    "own covariance": {"covariance": "own", "features": "fourier", "n_fourier": 6, **_ONE},
    "companions": {"classifier": "both", "companions": _COMPANIONS, "features": "identity", **_ONE},
}


@dataclass(frozen=True)
class Victim:
    """Something that is damaged.

    Attributes:
        name: In tables.
        kind: "model", "sealed model", "checkpoint", "sealed checkpoint", "interrupted" or "complete".
        file: The model, or the file of a record.
    """

    name: str
    kind: str
    file: str


def _small(**parameters: Any) -> Callable[[], CNDPMClassifier]:
    return lambda: CNDPMClassifier(memory_size=20, random_state=0, **parameters)


def _neural() -> CNDPMClassifier:
    return CNDPMClassifier.paper(memory_size=20, settings=_NETWORK, log_alpha=-20.0, random_state=0)


MODELS: dict[str, Callable[[], Any]] = {
    "default": _small(),
    **{name: _small(settings=settings) for name, settings in _SETTINGS.items()},
    "images": _small(input_shape=(1, 6, 6), settings={"n_patches": 3, **_ONE}),
    "neural": _neural,
    "regressor": lambda: CNDPMRegressor(memory_size=20, random_state=0, settings=_ONE),
    "representations": lambda: CNDPMRegressor(memory_size=20, random_state=0),
    "density": lambda: CNDPMDensity(memory_size=20, random_state=0),
}

_POOLED = ("default", "representations")
_FEW = 4
"""Columns of models with a pool, whose files are 20 times as large with all 36."""
_KINDS = ("model",) * 6 + ("sealed model",) * 2  # what is refused at once can be tried more often
VICTIMS = (
    *(Victim(f"{name}, {kind}", kind, name) for kind in _KINDS for name in MODELS),
    Victim("sealed checkpoint", "sealed checkpoint", "interrupted"),
    *(Victim(f"{kind} run, {file}", kind, file) for kind, files in _RECORDS.items() for file in files),
)
FLIPPED = (
    *(Victim(f"{name}, one bit", "model", name) for name in MODELS),
    Victim("checkpoint, one bit", "checkpoint", "interrupted"),
)


class _StopError(Exception):
    """Stops a run."""


class _Stopper(Monitor):
    """Stops a run after some batches, between two checkpoints."""

    def learned(self, step: int) -> None:
        if step == 8:
            raise _StopError


def samples(seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Returns three classes of 30 samples, one after the other, within [0, 1]: (90, 36) and (90,)."""
    y = np.repeat([0, 1, 2], 30)
    x = np.random.default_rng(seed).uniform(0, 0.3, size=(90, 36)) + 0.3 * y[:, None]
    return x.astype(np.float32), y


def rows_for(name: str, x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the columns of rows that a model is taught and asked.

    Args:
        name: Of the model.
        x: (n, 36).
    """
    return x[:, :_FEW] if name in _POOLED else x


def prepare(root: Path) -> None:
    """Makes all victims, each twice with different data for splices, below an empty folder."""
    x, y = samples()
    for name, make in MODELS.items():
        for side, n in (("a", 75), ("b", 90)):
            model = make()
            model.partial_fit(rows_for(name, x[:n]), *(() if isinstance(model, CNDPMDensity) else (y[:n],)))
            model.save(root / f"{name}.{side}")
    for seed, side in enumerate("ab"):
        run_once(root / f"complete.{side}", seed=seed)
        with suppress(_StopError):
            run_once(root / f"interrupted.{side}", seed=seed, monitor=_Stopper())
    (root / "expected").write_text(outcome(root / "complete.a"))
