"""Supervised contrastive replay: learn a representation, and answer by the nearest class mean of the memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from cndpm.baselines.shared.replay import AugmentationName, ReplayLearner, ReplaySettings


def contrastive_loss(projections: Tensor, y: Tensor, *, temperature: float) -> Tensor:
    r"""Returns the supervised contrastive loss (Khosla et al. 2020) of projections (N, n_dimensions) of any length.

    .. math:: -\frac{1}{N} \sum_i \frac{1}{|P(i)|} \sum_{p \in P(i)}
        \log \frac{\exp(z_i \cdot z_p / \tau)}{\sum_{a \neq i} \exp(z_i \cdot z_a / \tau)}

    where P(i) are the other samples of i's class; samples without any are left out.
    """
    z = F.normalize(projections, dim=1)
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    log_share = F.log_softmax((z @ z.T / temperature).masked_fill(itself, float("-inf")), dim=1)
    positive = (y[:, None] == y[None, :]) & ~itself
    n_positive = positive.sum(1)
    per_sample = -log_share.masked_fill(~positive, 0).sum(1) / n_positive.clamp_min(1)
    return per_sample.sum() / (n_positive > 0).sum().clamp_min(1)


def class_means(features: Tensor, y: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """Returns each class's unit-length mean feature, (n_classes, n_features), zero without samples, and its count."""
    member = F.one_hot(y, n_classes).to(features.dtype)
    return F.normalize(member.T @ F.normalize(features, dim=1), dim=1), member.sum(0)


class SCR(ReplayLearner):
    r"""Supervised contrastive replay (Mai et al. 2021).

    The batch and replayed samples, each as it is and as a randomly changed view, are drawn together by class and apart
    otherwise (:func:`contrastive_loss`). Prediction is by the nearest mean of the memory's unit-length features,
    :math:`\log p(c \mid x) \propto -\lVert f(x) - \mu_c \rVert^2 / \tau`.

    Departures: the projection is linear; views are shifts and mirror images, without colour changes. Every answer
    passes the memory through the network once.
    """

    class Settings(ReplaySettings):
        """The memory and the loss."""

        replay_batch: int | None = Field(50, ge=1, description="samples replayed per step; null: as many as the batch")
        augmentation: AugmentationName = Field("auto", description="auto: crop-flip for colour images, shift for grey")
        temperature: float = Field(0.1, gt=0, description="tau")
        projection: int = Field(128, ge=1, description="dimension in which samples are contrasted")

    settings: Settings

    def _n_outputs(self) -> int:
        self.required_classes()
        return self.settings.projection

    def learn(self, x: Tensor, y: Tensor | None) -> None:
        x, y = self.labelled(x, y)
        inputs, labels = x, y
        if len(self.memory):
            replayed = self.replayed(len(x))
            inputs, labels = torch.cat([x, replayed["x"]]), torch.cat([y, replayed["y"]])
        projections = self.network.train()(torch.cat([inputs, self.augmentation(inputs)]))
        self.trainer.step(contrastive_loss(projections, labels.repeat(2), temperature=self.settings.temperature))
        self.memory.add(x=x, y=y)

    @torch.no_grad()
    def predict_log_proba(self, x: Tensor) -> Tensor:
        n_classes = self.required_classes()
        if not len(self.memory):
            return torch.full((len(x), n_classes), 1 / n_classes, device=self.device).log()
        rows = self.memory.rows
        self.network.eval()
        means, counts = class_means(self.network.features(rows["x"]), rows["y"], n_classes)
        features = F.normalize(self.network.features(x.to(self.device)), dim=1)
        logits = -torch.cdist(features, means).square() / self.settings.temperature
        return F.log_softmax(logits.masked_fill(counts == 0, float("-inf")), dim=1)
