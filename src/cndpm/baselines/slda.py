"""Streaming linear discriminant analysis on fixed features: sums that do not depend on the order of the stream."""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.components import RandomSource, TensorSlots
from cndpm.baselines.shared.composed import ComposedLearner
from cndpm.learner import LearnerSettings
from cndpm.state import State


class FixedFeatures(TensorSlots):
    r"""Computes fixed features: pixels, or random Fourier features of a Gaussian kernel (Rahimi and Recht 2007).

    .. math:: \phi(x) = \sqrt{2 / D} \cos(\sqrt{2\gamma}\, W x + b), \qquad W_{ij} \sim N(0, 1),\ b_i \sim U(0, 2\pi)

    so that :math:`\phi(x) \cdot \phi(x') \approx \exp(-\gamma \lVert x - x' \rVert^2)`.
    """

    def __init__(self, n_inputs: int, n_features: int | None, *, random: RandomSource, device: torch.device) -> None:
        super().__init__(device)
        self.n_features = n_inputs if n_features is None else n_features
        if n_features is not None:
            self.values["directions"] = random.normal(n_inputs, n_features).to(device)
            phase = torch.rand(n_features, generator=random.generator) * 2 * math.pi
            self.values["phase"] = phase.to(device)

    def __call__(self, x: Tensor, gamma: Tensor) -> Tensor:
        """Returns features of samples (batch, ...) in double precision, (batch, n_features); gamma is a scalar."""
        fixed = self.values
        if not fixed:
            return x.flatten(1).double()
        angle = torch.addmm(fixed["phase"], x.flatten(1) * (2 * gamma).sqrt(), fixed["directions"])
        return angle.cos().double() * math.sqrt(2 / self.n_features)


def discriminants(counts: Tensor, sums: Tensor, products: Tensor, *, shrinkage: float) -> tuple[Tensor, Tensor]:
    r"""Returns weights (n_features, n_classes) and biases (n_classes,) of the linear discriminants.

    .. math:: w_c = \Lambda \mu_c, \quad b_c = -\tfrac12 \mu_c^\top \Lambda \mu_c, \quad
        \Lambda = \left[(1 - \varepsilon) \Sigma + \varepsilon \bar\sigma^2 I\right]^{-1}

    with :math:`\Sigma` the covariance within classes and :math:`\bar\sigma^2` its mean variance, of each class's
    `counts` (n_classes,) and `sums` (n_classes, n_features), and `products`, the summed outer products of all features.
    """
    means = sums / counts.clamp_min(1)[:, None]
    within = (products - sums.T @ means) / counts.sum()
    variance = within.diagonal().mean().clamp_min(1e-12)
    within = (1 - shrinkage) * within
    within.diagonal().add_(shrinkage * variance)
    weights = torch.cholesky_solve(means.T, torch.linalg.cholesky(within))
    return weights, -0.5 * (means * weights.T).sum(1)


class SLDA(ComposedLearner):
    """Streaming linear discriminant analysis (Hayes and Kanan 2020) on pixels or random Fourier features.

    It keeps class counts, class sums and summed outer products, in double precision: exactly what linear discriminant
    analysis of the whole stream would need, whatever its order. The equation is at :func:`discriminants`.

    Departures: features are fixed maps of the pixels, not of a pretrained network; the shrinkage is relative to the
    mean variance; outer products are added in groups of `chunk` samples, for speed. Without a `gamma` the kernel's
    width is set by the first batch: gamma = 1 / its mean squared distance.
    """

    class Settings(LearnerSettings):
        """The features and the shrinkage."""

        features: Literal["pixels", "fourier"] = Field("fourier", description="the fixed feature map")
        n_features: int = Field(2000, ge=1, description="number of random Fourier features")
        gamma: float | None = Field(None, gt=0, description="inverse width of the kernel; null: from the first batch")
        shrinkage: float = Field(1e-3, gt=0, le=1, description="weight of the identity in the covariance")
        chunk: int = Field(500, ge=1, description="samples whose features wait until they are added together")

    settings: Settings

    def _make(self) -> None:
        super()._make()
        n_features = self.settings.n_features if self.settings.features == "fourier" else None
        n_inputs, n_classes = math.prod(self.input_shape), self.required_classes()
        self.map = FixedFeatures(n_inputs, n_features, random=self.random, device=self.device)
        self.statistics = TensorSlots(self.device)
        self.statistics.values = {
            "gamma": torch.tensor(self.settings.gamma or 0.0, device=self.device),
            "counts": torch.zeros(n_classes, dtype=torch.float64, device=self.device),
            "sums": torch.zeros(n_classes, self.map.n_features, dtype=torch.float64, device=self.device),
            "products": torch.zeros(2 * (self.map.n_features,), dtype=torch.float64, device=self.device),
            "waiting": torch.zeros(0, self.map.n_features, dtype=torch.float64, device=self.device),
        }
        self.parts |= {"map": self.map, "statistics": self.statistics}
        self._solution: tuple[Tensor, Tensor] | None = None

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        kept = self.statistics.values
        if self.settings.gamma is None and not kept["counts"].any():
            rows = x.flatten(1)  # 1 over their mean squared distance; over their length if all are equal, or one alone
            spread = 2 * (rows - rows.mean(0)).square().sum() / max(1, len(rows) - 1)
            kept["gamma"] = 1 / torch.where(spread > 0, spread, rows.square().sum(1).mean().clamp_min(1))
        features = self.map(x, kept["gamma"])
        kept["counts"] += torch.bincount(y, minlength=len(kept["counts"]))
        kept["sums"].index_add_(0, y, features)
        kept["waiting"] = torch.cat([kept["waiting"], features])
        if len(kept["waiting"]) >= self.settings.chunk:
            kept["products"].addmm_(kept["waiting"].T, kept["waiting"])
            kept["waiting"] = kept["waiting"][:0].clone()
        self._solution = None

    @torch.no_grad()
    def predict_log_proba(self, x: Tensor) -> Tensor:
        kept = self.statistics.values
        if not kept["counts"].any():
            return torch.full((len(x), len(kept["counts"])), 1 / len(kept["counts"]), device=self.device).log()
        weights, biases = self._discriminants()
        logits = self.map(x.to(self.device), kept["gamma"]) @ weights + biases
        return F.log_softmax(logits.masked_fill(kept["counts"] == 0, float("-inf")), dim=1).float()

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._solution = None

    def _discriminants(self) -> tuple[Tensor, Tensor]:
        """Returns the discriminants of the present sums, computed once for as long as these do not change."""
        if self._solution is None:
            kept = self.statistics.values
            products = torch.addmm(kept["products"], kept["waiting"].T, kept["waiting"])
            self._solution = discriminants(kept["counts"], kept["sums"], products, shrinkage=self.settings.shrinkage)
        return self._solution
