"""A mixture small enough to know by heart: one expert per pair of classes, told apart by the mean of x."""

from typing import ClassVar

import pytest
import torch

from cndpm.experiments.learners import LEARNERS
from cndpm.learner import Footprint, Learner, LearnerSettings


class MeanMixture(Learner):
    """A new expert whenever a label arrives that no expert has; each keeps the mean of its x and its label counts."""

    class Settings(LearnerSettings):
        classes_per_expert: int = 2

    summary: ClassVar[str] = "for tests"

    def __init__(self, settings, **facts):
        super().__init__(settings, **facts)
        self.experts = self
        self.n_dims = torch.Size(self.input_shape).numel()
        self.sums = torch.zeros(0, self.n_dims)
        self.counts = torch.zeros(0, self.n_classes)

    def learn(self, x, y):
        for row, label in zip(x.flatten(1), y.tolist(), strict=True):
            k = label // self.settings.classes_per_expert
            while len(self.counts) <= k:
                self.sums = torch.cat([self.sums, torch.zeros(1, self.n_dims)])
                self.counts = torch.cat([self.counts, torch.zeros(1, self.n_classes)])
            self.sums[k] += row
            self.counts[k, label] += 1

    def expert_log_proba(self, x):
        means = self.sums / self.counts.sum(1, keepdim=True).clamp(min=1)
        return (-torch.cdist(x.flatten(1), means)).log_softmax(1)

    def expert_predict_log_proba(self, x):
        return (self.counts + 1e-3).log().log_softmax(1).expand(len(x), -1, -1)

    def predict_log_proba(self, x):
        if not len(self.counts):
            return torch.zeros(len(x), self.n_classes).log_softmax(1)
        return (self.expert_log_proba(x)[:, :, None] + self.expert_predict_log_proba(x)).logsumexp(1)

    def footprint(self):
        return Footprint(self.sums.numel(), self.sums.numel() + self.counts.numel(), n_experts=len(self.counts))

    def state_dict(self):
        return {"sums": self.sums.clone(), "counts": self.counts.clone()}

    def load_state_dict(self, state):
        self.sums, self.counts = state["sums"].clone(), state["counts"].clone()


@pytest.fixture
def mean_mixture(monkeypatch):
    """The mixture above, known by the name "mean-mixture"."""
    monkeypatch.setitem(LEARNERS, "mean-mixture", MeanMixture)
    return MeanMixture
