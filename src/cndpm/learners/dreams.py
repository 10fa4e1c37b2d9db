"""Which of a generator's dreams are worth replaying.

Samples of a VAE's prior blend its modes, and the share of thin modes (the digit 1) shrinks from one generation of
dreams to the next. Choosing the clearest dreams of every class in equal numbers works against both.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from cndpm.learners.networks import VAE

__all__ = ["clearest", "dream"]


def clearest(logits: Tensor, n: int) -> Tensor:
    """Indices of n samples, the most confident of each predicted class in turn, (n,).

    Args:
        logits: Of more than n samples, (n_samples, C).
        n: Samples to choose.
    """
    confidence, label = F.softmax(logits, dim=1).max(dim=1)
    order = confidence.argsort(descending=True, stable=True)
    member = F.one_hot(label[order], logits.shape[1])
    rank_in_class = (member.cumsum(0) * member).sum(1)
    return order[rank_in_class.argsort(stable=True)[:n]]


def dream(
    vae: VAE, classify: torch.nn.Module | None, n: int, generator: torch.Generator, *, known: Tensor, surplus: int
) -> tuple[Tensor, Tensor]:
    """n dreams, (n, *input_shape), and the logits of the classes known to the dreamer, (n, C).

    Args:
        vae: The generator.
        classify: The classifier that labels its dreams; None: the VAE's own.
        n: Dreams wanted.
        generator: Source of the latent noise.
        known: Which classes it knew, (C,).
        surplus: Dreams drawn for each one kept; with 1 all are kept.
    """
    inputs = vae.sample(surplus * n, generator)
    logits = vae.classify(inputs) if classify is None else classify(inputs)
    logits = logits.masked_fill(~known, float("-inf"))
    if surplus == 1:
        return inputs, logits
    chosen = clearest(logits, n)
    return inputs[chosen], logits[chosen]
