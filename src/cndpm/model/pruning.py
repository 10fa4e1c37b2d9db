"""Pruning: experts that are redundant on given data go, and their counts go to the ones that remain (appendix D)."""

from __future__ import annotations

import torch
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.chunks import Samples
from cndpm.mixture import Merge, log_gate, mix_log_proba, plan_merges, route, similarity
from cndpm.model.events import EventLog
from cndpm.model.founding import HELD_OUT, LESSON
from cndpm.model.memory import SampleBatch
from cndpm.model.novelty import Novelty


def log_joint(bank: Bank, batch: SampleBatch) -> Tensor:
    """Returns log p(x, y | k) as routing sees it, (n, K); has no effect on the bank."""
    parts, start = [], 0
    for samples in bank.open(batch.samples.x):
        y = None if batch.y is None else batch.y[start : start + len(samples)]
        parts.append(bank.evidence(samples, y).log_known - bank.counts.log())
        start += len(samples)
    return torch.cat(parts)


def prune(
    bank: Bank, novelty: Novelty, events: EventLog, batch: SampleBatch, *, threshold: float, classes: bool
) -> list[Merge]:
    """Removes experts that are redundant on given data.

    Sums are merged exactly. A network that is removed takes with it what the others have never seen, so those that
    remain learn four fifths of the given data once, as they would awake, without counting them; what they learned is
    kept if they predict the last fifth no worse. The paper does not do that.

    Returns:
        The merges, in the numbering of the experts before pruning.
    """
    if len(bank.counts) < 2:
        return []
    merges = plan_merges(similarity(log_joint(bank, batch)), bank.counts, threshold)
    numbering = list(range(len(bank.counts)))
    for removed, into in merges:
        position, target = numbering.index(removed), numbering.index(into)
        bank.remove(position, into=target)
        novelty.remove_expert(position)
        events.merge(position, target)
        numbering.remove(removed)
    if merges and not bank.is_additive:
        _learn_again(bank, batch, classes=classes)
    return merges


def _learn_again(bank: Bank, batch: SampleBatch, *, classes: bool) -> None:
    """Has the experts learn samples that have been counted already, if that helps with a fifth that is held out."""
    order = torch.randperm(len(batch.samples), generator=torch.Generator().manual_seed(0))
    n_held_out = len(order) // HELD_OUT
    held_out, taught = batch.rows(order[:n_held_out]), order[n_held_out:]
    state, before = bank.state_dict(), _mean_score(bank, held_out, classes=classes)
    for rows in torch.split(taught, LESSON):
        samples, y = batch.rows(rows)
        nothing_new = torch.zeros(len(samples), dtype=torch.bool)
        routing = route(bank.evidence(samples, y).log_known, nothing_new)
        bank.learn(samples, y, routing.responsibilities, counted=False)
    if _mean_score(bank, held_out, classes=classes) < before:
        bank.load_state_dict(state)


def _mean_score(bank: Bank, batch: SampleBatch, *, classes: bool) -> float:
    """Scores how well samples are predicted: the mean of log p(y | x) for classes, else of log p(x, y)."""
    if not classes or batch.y is None:
        return float((log_joint(bank, batch) + bank.counts.log()).logsumexp(dim=1).mean())
    answers = torch.cat([_log_proba(bank, samples).cpu() for samples in bank.open(batch.samples.x)])
    return float(answers.gather(1, batch.y.unsqueeze(1)).mean())


def _log_proba(bank: Bank, samples: Samples) -> Tensor:
    log_density = bank.log_density(samples)
    return mix_log_proba(log_gate(log_density, bank.counts.to(log_density.device)), bank.predictive(samples))
