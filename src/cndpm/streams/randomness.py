"""Independent random numbers for each purpose, all from one seed.

Draws on the host come from numpy (the same on every device); only binarising draws on the device itself.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import torch


class Purpose(IntEnum):
    """Purposes of random numbers. They are part of what determines the numbers, so the values must not change."""

    FRACTION = 0
    LABEL_NOISE = 1
    ORDER = 2
    BLUR = 3
    SHUFFLE = 4
    BINARISE = 5
    BINARISE_TEST = 6
    SYNTHETIC = 7
    HELD_OUT = 8


def _sequence(seed: int, purpose: Purpose, *counters: int) -> np.random.SeedSequence:
    if seed < 0:
        raise ValueError(f"seed must not be negative; got {seed}")
    return np.random.SeedSequence(seed, spawn_key=(int(purpose), *counters))


def host_generator(seed: int, purpose: Purpose, *counters: int) -> np.random.Generator:
    """Makes a numpy generator for `purpose`; `counters` (a round, a class, ...) make further independent ones."""
    return np.random.default_rng(_sequence(seed, purpose, *counters))


def device_generator(device: torch.device, seed: int, purpose: Purpose, *counters: int) -> torch.Generator:
    """Makes a torch generator on `device`; its numbers repeat at every call, though not on every kind of device."""
    state = _sequence(seed, purpose, *counters).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(state[0] >> np.uint64(1)))
