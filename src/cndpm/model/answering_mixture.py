"""What a mixture of experts knows, and what it answers: equation 6 of the paper, densities, samples, state.

How it comes to know it is the matter of :class:`cndpm.model.expert_mixture.ExpertMixture`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.features import FeatureMap
from cndpm.learner import Footprint, Inputs, Learner, Portrait
from cndpm.mixture import log_gate, log_mixture_density, mix_gaussians, mix_log_proba, similarity
from cndpm.model.admission import Fetch, FiniteCheck, admit_targets, admit_x
from cndpm.model.assembly import CustomDensity, CustomPredictor, make_bank
from cndpm.model.memory import ShortTermMemory
from cndpm.model.scaling import Scaling
from cndpm.model.settings import CNDPMSettings
from cndpm.state import State

__all__ = ["AnsweringMixture", "Samples", "rows_of"]

Samples = tuple[Tensor, Tensor | None]
"""x (n, ...) and y (n, ...) or None."""

_N_MIXTURE_SAMPLES = 50  # as in the paper's figure
_N_EXPERT_SAMPLES = 10
_MAX_DRAWN_EXPERTS = 24


class AnsweringMixture(Learner):
    """Experts, how many samples each has learned, a memory of what is new, and the answers that follow from them.

    Args:
        settings: See :class:`cndpm.model.settings.CNDPMSettings`.
        input_shape: Shape of one sample.
        n_classes: Number of classes where it is known up front; None discovers them as they arrive.
        seed: Determines every random choice.
        device: Where everything lives.
        density: A density class of one's own in place of the VAE.
        predictor: A predictor class of one's own in place of the classifier or regressor.
        feature_map: A feature map of one's own for Gaussian experts, e.g. ``ModuleFeatures(backbone)``.
    """

    Settings = CNDPMSettings
    settings: CNDPMSettings

    def __init__(
        self,
        settings: CNDPMSettings,
        *,
        input_shape: tuple[int, ...],
        n_classes: int | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
        density: CustomDensity | None = None,
        predictor: CustomPredictor | None = None,
        feature_map: FeatureMap | None = None,
    ) -> None:
        super().__init__(settings, input_shape=input_shape, n_classes=n_classes, seed=seed, device=device)
        self.experts = self
        self.bank = make_bank(
            settings,
            input_shape=self.input_shape,
            n_classes=n_classes,
            seed=seed,
            device=self.device,
            density=density,
            predictor=predictor,
            feature_map=feature_map,
        )
        # Samples live on the device; what decisions are made of lives where the bank's evidence arrives.
        self._here = self.bank.evidence_device
        self.memory = ShortTermMemory(settings.memory_size, self.device, self._here)
        self.counts = torch.zeros(0, dtype=torch.float64, device=self._here)
        self._is_finite, self._fetch = FiniteCheck(), Fetch(self._here)
        self._n_known_classes = n_classes or 0
        self._backlog: tuple[Tensor, Tensor | None] | None = None
        self._scaling: tuple[Scaling, Scaling] | None = None

    @property
    def n_experts(self) -> int:
        """Number of experts that are ready."""
        return self.bank.n_experts

    def prepare(self, x: Tensor) -> Inputs:
        x = admit_x(x, self.input_shape).to(self.device)
        if not self.settings.standardise:
            self.bank.prepare(x)
        return x

    def predict_log_proba(self, x: Tensor) -> Tensor:
        return self._in_chunks(x, self._predict_log_proba)

    def predict_moments(self, x: Tensor) -> Tensor:
        """Mean and variance of every target, (batch, 2, n_outputs), for target='values'."""
        return self._in_chunks(x, self._predict_moments)

    @property
    def describes_x(self) -> bool:
        return self.bank.describes_x

    def log_prob(self, x: Tensor) -> Tensor:
        return self._in_chunks(x, self._log_prob)

    def expert_log_proba(self, x: Tensor) -> Tensor:
        counts = self.counts.to(self.device)
        return self._in_chunks(x, lambda part: log_gate(self.bank.log_density(part), counts))

    def expert_predict_log_proba(self, x: Tensor) -> Tensor:
        return self._in_chunks(x, self.bank.predictive)

    def log_joint(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log p(x, y | k) as routing sees it, (batch, n_experts)."""
        x = admit_x(x, self.input_shape).to(self.device)
        x, y = self._scaled(x, self._admit_targets(y, len(x)))
        parts = [slice(i, i + self.bank.answer_size) for i in range(0, len(x), self.bank.answer_size)]
        return torch.cat([self.bank.log_joint(*rows_of((x, y), part)) for part in parts])

    def sample(self, n: int, *, seed: int = 0, expert: int | None = None) -> tuple[Tensor, Tensor | None, Tensor]:
        """Draws (x, y) pairs (appendix G): an expert by its count, x from its density, y from its predictor.

        Args:
            n: Number of samples.
            seed: Determines the draws; the learner itself is not changed.
            expert: Draws from this expert alone.

        Returns:
            x (n, *input_shape), y (n,) or (n, n_outputs) or None, and the index of the expert of each, (n,).
        """
        if self.n_experts == 0:
            raise ValueError("there is no expert to sample from yet; learn more or call consolidate()")
        generator = torch.Generator(self.device).manual_seed(seed)
        weights = (
            self.counts.to(self.device) if expert is None else torch.eye(self.n_experts, device=self.device)[expert]
        )
        chosen = torch.multinomial(weights, n, replacement=True, generator=generator).sort().values
        draws = [self.bank.sample(k, int((chosen == k).sum()), generator) for k in sorted(set(chosen.tolist()))]
        scaling = self._current_scaling()
        x = scaling[0].undo(torch.cat([x for x, _ in draws]))
        targets = [y for _, y in draws if y is not None]
        y = torch.cat(targets) if targets else None
        return x, scaling[1].undo(y) if y is not None and y.is_floating_point() else y, chosen

    @torch.no_grad()
    def portray(self, x: Tensor, y: Tensor | None, *, seed: int) -> Portrait | None:
        if self.n_experts == 0:
            return None
        alike = similarity(self.log_joint(x, y)).cpu().numpy()
        return Portrait(*self._draw_portrait(seed), alike, self.counts.cpu().numpy())

    def _draw_portrait(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """Draws x, y, expert and from_mixture; empty where the experts' densities cannot be drawn from."""
        try:
            draws = [self.sample(_N_MIXTURE_SAMPLES, seed=seed)]
        except NotImplementedError:
            empty = np.zeros(0, dtype=np.int64)
            return np.zeros((0, *self.input_shape), dtype=np.float32), empty, empty, empty.astype(bool)
        drawn = range(min(self.n_experts, _MAX_DRAWN_EXPERTS))
        draws += [self.sample(_N_EXPERT_SAMPLES, seed=seed, expert=k) for k in drawn]
        x = torch.cat([draw[0] for draw in draws]).float().cpu().numpy()
        y = torch.cat([_class_labels(draw[1], len(draw[0])) for draw in draws]).cpu().numpy()
        expert = torch.cat([draw[2] for draw in draws]).cpu().numpy()
        return x, y, expert, np.arange(len(x)) < _N_MIXTURE_SAMPLES

    # What is kept

    def describe(self) -> dict[str, Any]:
        """Samples learned by each expert, samples in the memory by class, and what the bank has to tell."""
        _, y = self.memory.data() if len(self.memory) else (None, None)
        classes = None if y is None or y.is_floating_point() else torch.bincount(y).tolist()
        counts = [round(n, 2) for n in self.counts.tolist()]
        return {"expert_counts": counts, "memory_classes": classes, **self.bank.describe()}

    def footprint(self) -> Footprint:
        return Footprint(
            n_parameters=self.bank.n_parameters,
            n_numbers_kept=self.bank.n_numbers_kept + len(self.counts),
            memory_samples=len(self.memory) + self.bank.n_samples_kept,
            memory_bytes=self.memory.n_bytes + self.bank.sample_bytes,
            n_experts=self.n_experts,
        )

    def state_dict(self) -> State:
        backlog, scaling = self._backlog, self._scaling
        return {
            "bank": self.bank.state_dict(),
            "memory": self.memory.state_dict(),
            "counts": self.counts.clone(),
            "n_known_classes": self._n_known_classes,
            "backlog": [None if part is None else part.clone() for part in backlog] if backlog else None,
            "scaling": [[s.shift.clone(), s.scale.clone()] for s in scaling] if scaling else None,
        }

    def load_state_dict(self, state: State) -> None:
        self.bank.load_state_dict(state["bank"])
        self.memory.load_state_dict(state["memory"])
        self.counts = state["counts"].to(self._here, copy=True)
        self._n_known_classes = state["n_known_classes"]
        self._backlog = self._scaling = None
        if state["backlog"]:
            x, y = state["backlog"]
            self._backlog = (x.to(self.device), None if y is None else y.to(self._here))
        if state["scaling"]:
            of_x, of_y = (Scaling(shift.to(self.device), scale.to(self.device)) for shift, scale in state["scaling"])
            self._scaling = (of_x, of_y)

    # Inside

    def _current_scaling(self) -> tuple[Scaling, Scaling]:
        """The scaling of x and y: fixed when the first expert is founded, before that of the memory as it is."""
        if self._scaling is not None:
            return self._scaling
        of_x = Scaling.identity(self.input_shape, self.device)
        of_y = Scaling.identity((self.settings.n_outputs,), self.device)
        if self.settings.standardise and len(self.memory):
            x, y = self.memory.data()
            of_x = Scaling.fit(x)
            of_y = Scaling.fit(y) if y is not None and y.is_floating_point() else of_y
        return of_x, of_y

    def _scaled(self, x: Tensor, y: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if not self.settings.standardise:
            return x, y
        of_x, of_y = self._current_scaling()
        return of_x.apply(x), of_y.apply(y) if y is not None and y.is_floating_point() else y

    @torch.no_grad()
    def _in_chunks(self, x: Tensor, answer: Callable[[Tensor], Tensor]) -> Tensor:
        x = admit_x(x, self.input_shape).to(self.device)
        x = self._current_scaling()[0].apply(x) if self.settings.standardise else x
        return torch.cat([answer(part) for part in torch.split(x, self.bank.answer_size)])

    def _components(self, x: Tensor) -> tuple[Tensor, Tensor, Callable[[], Tensor]]:
        """Log densities (batch, n), counts (n,), and predictives when asked for, the provisional model included."""
        counts = self.counts.to(self.device)
        log_density = self.bank.log_density(x) if len(counts) else counts.new_zeros(len(x), 0)
        if not (self.settings.anytime and len(self.memory)):
            return log_density, counts, lambda: self.bank.predictive(x)
        provisional = self.bank.provisional(*self._scaled(*self.memory.data()))
        log_density = torch.cat([log_density, provisional.log_density(x).unsqueeze(1)], dim=1)
        counts = torch.cat([counts, counts.new_tensor([len(self.memory)])])

        def predictive() -> Tensor:
            of_memory = provisional.predictive(x).unsqueeze(1)
            return torch.cat([self.bank.predictive(x), of_memory], dim=1) if self.bank.n_experts else of_memory

        return log_density, counts, predictive

    def _predict_log_proba(self, x: Tensor) -> Tensor:
        log_density, counts, predictive = self._components(x)
        if not len(counts):
            n_classes = max(1, self._n_known_classes)
            return torch.full((len(x), n_classes), -math.log(n_classes), dtype=torch.float64, device=self.device)
        return mix_log_proba(log_gate(log_density, counts), predictive())

    def _predict_moments(self, x: Tensor) -> Tensor:
        log_density, counts, predictive = self._components(x)
        if not len(counts):
            raise ValueError("nothing has been learned yet, so no value can be predicted; learn a batch first")
        mean, variance = mix_gaussians(log_gate(log_density, counts), predictive()).unbind(dim=1)
        of_y = self._current_scaling()[1]
        return torch.stack([of_y.undo(mean), variance * of_y.scale.double().square()], dim=1)

    def _log_prob(self, x: Tensor) -> Tensor:
        log_density, counts, _ = self._components(x)
        if not len(counts):
            raise ValueError("nothing has been learned yet, so x has no density; learn a batch or call consolidate()")
        return log_mixture_density(log_density, counts) - self._current_scaling()[0].log_volume

    def _log_known(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log N_k + log p(x, y | k) of scaled samples, (batch, n_experts)."""
        return self.counts.log() + self.bank.log_joint(x, y).double()

    def _admit_targets(self, y: Tensor | None, n: int) -> Tensor | None:
        y = y if y is None else self._fetch(y)
        return admit_targets(y, n, self.settings.target, self.settings.n_outputs, self.n_classes)


def rows_of(samples: Samples, rows: Tensor | slice) -> Samples:
    """Some of the samples, by mask or slice."""
    x, y = samples
    return x[rows], y[rows] if y is not None else None


def _class_labels(y: Tensor | None, n: int) -> Tensor:
    """Returns the classes of n drawn samples, (n,); -1 where they have none."""
    return torch.full((n,), -1) if y is None or y.is_floating_point() else y
