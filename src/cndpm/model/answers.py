"""Answers of a mixture: equation 6, densities, samples, its portrait. Nothing here changes what was learned."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.chunks import Samples
from cndpm.learner import Portrait
from cndpm.mixture import log_gate, log_mixture_density, mix_gaussians, mix_log_proba
from cndpm.model.memory import ShortTermMemory
from cndpm.threads import one_thread


class Answers:
    """Asks the experts, and where they answer at any time a provisional model of what waits in the memory.

    Every question is put to batches of samples. Answers that need not be `exact` take what experts share, such as a
    covariance, as old as its last renewal.
    """

    def __init__(self, bank: Bank, memory: ShortTermMemory, *, anytime: bool, device: torch.device) -> None:
        self._bank, self._memory, self._anytime, self._device = bank, memory, anytime, device

    def predict_log_proba(self, batches: Iterable[Samples], n_classes: int, *, exact: bool) -> Tensor:
        """Returns log-probabilities of the classes, (batch, n_classes): all the same before anything was learned."""

        def answer(samples: Samples) -> Tensor:
            mixed = self._bank.mixed(samples, exact=exact) if self._bank.counts.shape[0] else None
            log_density, counts, predictive = self._components(samples, exact, mixed)
            n = counts.shape[0]
            if not n:
                shape = (len(samples), n_classes)
                return torch.full(shape, -math.log(n_classes), dtype=torch.float64, device=self._device)
            if mixed is not None and n == 1:  # the experts answered together, and nothing waits
                return mixed[1]
            return mix_log_proba(log_gate(log_density, counts), predictive())

        return _of_each(batches, answer)

    def predict_moments(self, batches: Iterable[Samples], *, exact: bool) -> Tensor:
        """Returns mean and variance of every target, (batch, 2, n_outputs)."""

        def answer(samples: Samples) -> Tensor:
            log_density, counts, predictive = self._components(samples, exact)
            if not len(counts):
                raise ValueError("nothing has been learned yet, so no value can be predicted; learn a batch first")
            return mix_gaussians(log_gate(log_density, counts), predictive())

        return _of_each(batches, answer)

    def log_prob(self, batches: Iterable[Samples], *, exact: bool) -> Tensor:
        """Returns log p(x), (batch,)."""
        if self._bank.density_of == "features":
            raise ValueError(
                "these experts model features of x, not x itself, so x has no density; use features='identity' "
                "(density estimators of rows do) or neural experts"
            )

        def answer(samples: Samples) -> Tensor:
            log_density, counts, _ = self._components(samples, exact)
            if not len(counts):
                raise ValueError("nothing has been learned yet, so x has no density; learn a batch or consolidate()")
            return log_mixture_density(log_density, counts)

        return _of_each(batches, answer)

    def expert_log_proba(self, batches: Iterable[Samples], *, exact: bool) -> Tensor:
        """Returns the log-probability that each expert is responsible for x alone, (batch, n_experts)."""
        counts = self._bank.counts.to(self._device)
        return _of_each(batches, lambda samples: log_gate(self._bank.log_density(samples, exact=exact), counts))

    def responsible(self, batches: Iterable[Samples], *, exact: bool) -> Tensor:
        """Returns the log-probability that each expert or, last, the memory answers for x, (batch, n_experts + 1).

        It is -inf where the memory takes no part, and of all before anything was learned.
        """
        n_experts = len(self._bank.counts)

        def answer(samples: Samples) -> Tensor:
            log_density, counts, _ = self._components(samples, exact)
            shares = log_density.new_full((len(samples), n_experts + 1), -torch.inf, dtype=torch.float64)
            shares[:, : len(counts)] = log_gate(log_density, counts)
            return shares

        return _of_each(batches, answer)

    def expert_predictive(self, batches: Iterable[Samples], *, exact: bool) -> Tensor:
        """Returns p(y | x, k) of each expert, (batch, n_experts, ...)."""
        return _of_each(batches, lambda samples: self._bank.predictive(samples, exact=exact))

    def sample(self, n: int, *, seed: int, expert: int | None) -> tuple[Tensor, Tensor | None, Tensor]:
        """Draws n pairs (appendix G): an expert by its count, or a given one, x by its density, y by its predictor."""
        counts = self._bank.counts.to(self._device)
        if not len(counts):
            raise ValueError("there is no expert to sample from yet; learn more or call consolidate()")
        generator = torch.Generator(self._device).manual_seed(seed)
        weights = counts if expert is None else torch.eye(len(counts), device=self._device)[expert]
        chosen = torch.multinomial(weights, n, replacement=True, generator=generator).sort().values
        draws = [self._bank.sample(k, int((chosen == k).sum()), generator) for k in sorted(set(chosen.tolist()))]
        targets = [y for _, y in draws if y is not None]
        return torch.cat([x for x, _ in draws]), torch.cat(targets) if targets else None, chosen

    def _components(
        self, samples: Samples, exact: bool, mixed: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor, Callable[[], Tensor]]:
        """Returns log densities (B, n), counts (n,), and a function of predictives, the provisional model included.

        Experts that have answered together, `mixed`, count as one.
        """
        counts = self._bank.counts.to(self._device)
        n_experts = counts.shape[0]
        if mixed is not None:
            counts, log_density = counts.sum().unsqueeze(0), mixed[0].unsqueeze(1)
        elif n_experts:
            log_density = self._bank.log_density(samples, exact=exact)
        else:
            log_density = counts.new_zeros(len(samples), 0)

        def of_experts() -> Tensor:
            return self._bank.predictive(samples, exact=exact) if mixed is None else mixed[1].unsqueeze(1)

        if not (self._anytime and len(self._memory)):
            return log_density, counts, of_experts
        provisional = self._bank.provisional(*self._memory.batch(), exact=exact)
        log_density = torch.cat([log_density, provisional.log_density(samples).unsqueeze(1)], dim=1)
        counts = torch.cat([counts, counts.new_tensor([len(self._memory)])])

        def predictive() -> Tensor:
            of_memory = provisional.predictive(samples).unsqueeze(1)
            return of_memory if not n_experts else torch.cat([of_experts(), of_memory], dim=1)

        return log_density, counts, predictive


def _of_each(batches: Iterable[Samples], answer: Callable[[Samples], Tensor]) -> Tensor:
    """Returns the answers to all batches, (n, ...)."""
    with torch.no_grad(), one_thread():
        parts = [answer(samples) for samples in batches]
        return parts[0] if len(parts) == 1 else torch.cat(parts)


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
