"""Random numbers of streams: what determines them, and that they never change."""

from __future__ import annotations

import numpy as np
import torch

from cndpm.streams.ordering import Purpose, device_generator, host_generator

CPU = torch.device("cpu")


def first(seed: int, purpose: Purpose, *counters: int) -> tuple[float, float]:
    """The first number of the host's and of the device's generator."""
    drawn = torch.rand((), generator=device_generator(CPU, seed, purpose, *counters), dtype=torch.float64)
    return host_generator(seed, purpose, *counters).random(), drawn.item()


def test_the_same_seed_purpose_and_counters_give_the_same_numbers():
    assert first(3, Purpose.ORDER, 1, 2) == first(3, Purpose.ORDER, 1, 2)


def test_another_seed_purpose_or_counter_gives_other_numbers():
    keys = [(3, Purpose.ORDER, 1, 2), (4, Purpose.ORDER, 1, 2), (3, Purpose.BLUR, 1, 2), (3, Purpose.ORDER, 1, 3)]
    keys += [(3, Purpose.ORDER, 1), (3, Purpose.ORDER)]
    for number in range(2):
        assert len({first(*key)[number] for key in keys}) == len(keys)


def test_numbers_are_those_of_numpys_seed_sequence_with_the_purpose_as_the_first_key():
    """Streams of recorded runs can be made again only as long as this holds."""
    for value, purpose in enumerate(
        ("FRACTION", "LABEL_NOISE", "ORDER", "BLUR", "SHUFFLE", "BINARISE", "BINARISE_TEST", "SYNTHETIC")
    ):
        sequence = np.random.SeedSequence(5, spawn_key=(value, 7))
        expected = np.random.default_rng(sequence).random()
        assert host_generator(5, Purpose[purpose], 7).random() == expected
