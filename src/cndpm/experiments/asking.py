"""Asks a learner about a batch before it learns it, whatever the batch carries beside x."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cndpm.experiments.meter import Answers, Target
from cndpm.experiments.scores import ClassAnswers, DensityAnswers, ValueAnswers
from cndpm.learner import Inputs, Learner


@torch.no_grad()
def ask(learner: Learner, x: Inputs, y: Tensor | None, target: Target) -> Answers | None:
    """Compares the learner's answers to one batch with the truth; the learner is not changed.

    None where there is no answer yet: no values before anything was learned, no density without an expert.
    """
    if target == "classes":
        assert y is not None
        return class_answers(learner.predict_for(x, "next"), y)
    kept = learner.footprint()
    if target == "values":
        if kept.n_experts + kept.memory_samples == 0:
            return None
        assert y is not None
        moments = learner.predict_for(x, "next", values=True)
        return ValueAnswers(moments[:, 0], y.to(moments.device).reshape(len(y), -1), moments[:, 1])
    if kept.n_experts == 0 or not learner.describes_x:
        return None
    return DensityAnswers(learner.log_prob(x), math.prod(learner.input_shape))


def class_answers(log_proba: Tensor, y: Tensor) -> ClassAnswers:
    """Reads answers off log-probabilities (batch, n_classes); a class that is not known yet is held impossible."""
    truth, n_classes = y.to(log_proba.device), log_proba.shape[1]
    known = truth < n_classes
    own = log_proba.double().gather(1, truth.clamp(max=n_classes - 1).unsqueeze(1)).squeeze(1)
    return ClassAnswers(log_proba.argmax(1), truth, own.masked_fill(~known, -math.inf))


@torch.no_grad()
def expert_gate(learner: Learner, x: Inputs) -> Tensor | None:
    """Returns the experts' log-probabilities, (batch, n_experts), (batch, 0) with none yet; None otherwise."""
    if learner.experts is None:
        return None
    return torch.zeros(0, 0) if learner.footprint().n_experts == 0 else learner.experts.expert_log_proba(x)
