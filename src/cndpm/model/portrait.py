"""Draws from a mixture for its portrait."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cndpm.learner import Portrait
from cndpm.model.answers import Answers

_N_MIXTURE_SAMPLES = 50  # as in the paper's figure
_N_EXPERT_SAMPLES = 10
_MAX_DRAWN_EXPERTS = 24


def draw_portrait(
    answers: Answers, *, similarity: Tensor, counts: Tensor, input_shape: tuple[int, ...], seed: int
) -> Portrait:
    """Draws samples from a mixture and each of its K experts, K at least 1; their `similarity` is (K, K)."""
    facts = {"similarity": similarity.cpu().numpy(), "counts": counts.cpu().numpy()}
    try:
        draws = [answers.sample(_N_MIXTURE_SAMPLES, seed=seed, expert=None)]
    except NotImplementedError:  # features that cannot be turned back into samples, densities that cannot be sampled
        empty = np.zeros(0, dtype=np.int64)
        x = np.zeros((0, *input_shape), dtype=np.float32)
        return Portrait(x=x, y=empty, expert=empty, from_mixture=empty.astype(bool), **facts)
    drawn = range(min(len(counts), _MAX_DRAWN_EXPERTS))
    draws += [answers.sample(_N_EXPERT_SAMPLES, seed=seed, expert=k) for k in drawn]
    n = sum(len(x) for x, _, _ in draws)
    return Portrait(
        x=torch.cat([x for x, _, _ in draws]).float().cpu().numpy(),
        y=torch.cat([_labels(y, len(x)) for x, y, _ in draws]).cpu().numpy(),
        expert=torch.cat([expert for _, _, expert in draws]).cpu().numpy(),
        from_mixture=np.arange(n) < _N_MIXTURE_SAMPLES,
        **facts,
    )


def _labels(y: Tensor | None, n: int) -> Tensor:
    return torch.full((n,), -1) if y is None or y.is_floating_point() else y
