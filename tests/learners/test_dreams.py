"""The choice of dreams."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.learners.dreams import clearest, dream
from cndpm.learners.networks import build_vae


def test_the_most_confident_of_each_class_come_first_and_in_equal_numbers():
    logits = torch.tensor([[9.0, 0.0], [8.0, 0.0], [7.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    assert sorted(clearest(logits, 4).tolist()) == [0, 1, 3, 4]
    assert set(clearest(logits, 2).tolist()) == {0, 4}


@settings(deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(1, 20))
def test_chosen_samples_are_distinct_and_as_balanced_as_there_are_samples(seed: int, n: int):
    logits = torch.randn(40, 3, generator=torch.Generator().manual_seed(seed))
    chosen = clearest(logits, n)
    assert len(set(chosen.tolist())) == n
    available = torch.bincount(logits.argmax(1), minlength=3)
    counts = torch.bincount(logits[chosen].argmax(1), minlength=3)
    short = counts < counts.max() - 1
    assert (counts[short] == available[short]).all()


def test_dreams_are_never_of_a_class_the_dreamer_did_not_know():
    generator = torch.Generator().manual_seed(0)
    vae = build_vae((6,), generator, hidden=5, latent=2, n_classes=4)
    known = torch.tensor([True, False, True, False])
    for surplus in (1, 3):
        inputs, logits = dream(vae, None, 9, generator, known=known, surplus=surplus)
        assert inputs.shape == (9, 6)
        assert known[logits.argmax(1)].all()
