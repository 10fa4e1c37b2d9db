r"""Combines several predictors of one expert by evidence.

Predictors m of the same label are pooled with exponents β (log-linear pooling, Genest and Zidek 1986):

.. math::
    p_\beta(y \mid x) \propto \prod_m p_m(y \mid x)^{\beta_m}

The best exponents are unknown, so there is a posterior over a grid of them. Its evidence is prequential (Dawid
1984): the log loss on samples *before* they are learned, forgotten with a horizon so that a predictor which becomes
good late can win:

.. math::
    L_\beta \leftarrow \gamma^{r_t} L_\beta + r_t \log p_\beta(y_t \mid x_t), \qquad \gamma = 1 - 1 / \text{horizon}

with r_t the expert's responsibility for the sample. Answers use the posterior mean of β: the log loss is convex in β,
so it is no greater there than what a β drawn from the posterior would suffer on average. (1, 0) is the first predictor
alone, (1/2, 1/2) an average; a sum other than 1 corrects predictors that are together too sure or too timid.
"""

from __future__ import annotations

import torch
from torch import Tensor

EXPONENTS = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
"""The values that each β may take."""


def exponent_grid(n_predictors: int) -> Tensor:
    """Returns every combination of exponents, (8^M, M), float64."""
    axis = torch.tensor(EXPONENTS, dtype=torch.float64)
    return torch.cartesian_prod(*[axis] * n_predictors).reshape(-1, n_predictors)


def pool_log_proba(log_proba: Tensor, exponents: Tensor) -> Tensor:
    """Pools log-probabilities (..., M, C) of M predictors with exponents β (..., M), (..., C), float64."""
    return torch.log_softmax((log_proba.double() * exponents.double().unsqueeze(-1)).sum(dim=-2), dim=-1)


def score_exponents(log_proba: Tensor, y: Tensor, grid: Tensor) -> Tensor:
    """Returns log p_β(y | x) for every β of a grid (H, M), (B, K, H), of log-probabilities (B, K, M, C)."""
    pooled = pool_log_proba(log_proba.unsqueeze(2), grid)
    return pooled.gather(-1, y.view(-1, 1, 1, 1).expand(*pooled.shape[:-1], 1)).squeeze(-1)


def add_evidence(evidence: Tensor, scores: Tensor, responsibilities: Tensor, *, horizon: float) -> Tensor:
    """Returns the evidence L (K, H) after a batch, as if its samples had come one after the other.

    Scores are log p_β(y | x), (B, K, H), responsibilities r, (B, K); after `horizon` of an expert's samples evidence
    has fallen to 1/e.
    """
    weight = responsibilities.to(evidence)
    # The evidence of a sample fades with the responsibility for all later samples.
    later = weight.sum(dim=0) - weight.cumsum(dim=0)
    keep = 1 - 1 / horizon
    gained = ((keep**later * weight).unsqueeze(-1) * scores.to(evidence)).sum(dim=0)
    return keep ** weight.sum(dim=0).unsqueeze(-1) * evidence + gained


def mean_exponents(evidence: Tensor, grid: Tensor) -> Tensor:
    """Returns the posterior mean of β for every expert, (K, M), all exponents being equally probable a priori."""
    return torch.softmax(evidence, dim=-1) @ grid
