"""Merging of Gaussian experts: they are sums, so nothing is lost."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from cndpm.experts.bank import Merging
from cndpm.experts.gaussian.own_covariance import OwnGaussians
from cndpm.mixture.redundancy import best_of_sources

if TYPE_CHECKING:
    from cndpm.experts.gaussian.additive import AdditiveBank
    from cndpm.experts.gaussian.classes import GaussianBank
    from cndpm.experts.gaussian.regression import GaussianRegressionBank

Own = TypeVar("Own", bound="AdditiveBank[Any]")

_SAME_LABELS = 0.5
"""How alike the shares of labels of two experts must be (Bhattacharyya) to be taken for the same labels."""


class AdditiveMerging(Merging, Generic[Own]):
    """Merging of banks of sums; abstract."""

    _bank: Own

    def _extend(self, other: Own) -> None:
        if len(other.counts) and not len(self._bank.counts):
            self._bank.load_state_dict(other.state_dict())
        elif len(other.counts):
            self._append(other)

    @abstractmethod
    def _append(self, other: Own) -> None:
        """Appends the experts of another bank; both have some."""


class ClassMerging(AdditiveMerging["GaussianBank"]):
    """Merges experts that hold one Gaussian for each label."""

    def _append(self, other: GaussianBank) -> None:
        mine, theirs = self._bank.labels, other.labels
        n_classes = max(mine.n_classes, theirs.n_classes)
        mine.reserve(n_classes)
        table = np.pad(theirs.table, ((0, 0), (0, n_classes - theirs.n_classes)), constant_values=-1)
        table = np.where(table >= 0, table + mine.n_components, -1)
        gaussians: Any = self._bank.ready()
        gaussians.extend(other.ready())
        mine.replace(np.concatenate([mine.table, table]))

    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        self._bank.ready().merge_components(*self._bank.labels.unite(groups), judge_anew=True)

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        """Asks typical samples of every label of an expert, weighted by their number."""
        table, gaussians, counts = self._bank.labels, self._bank.ready(), self._bank.component_counts()
        shares = counts / np.maximum(self._bank.totals(counts), 1e-300)[table.owners]
        explained = np.zeros((table.n_experts, table.n_experts))
        log_labels = math.log(table.n_labels + 1) if self._bank.for_classes else 0.0
        for label in np.unique(table.labels):
            components = table.components_of(np.array([label]))
            components = components[counts[components] >= 1]  # less is a trace of samples that went elsewhere
            owners = table.owners[components]
            margins = gaussians.typical_margins(components).cpu().numpy() + log_labels
            margins = margins + np.log(counts[components])[:, None]
            takes = best_of_sources(margins, np.array(sources)[owners]) & (margins >= levels.numpy()[owners][:, None])
            explained[np.ix_(owners, owners)] += takes * shares[components]
        return torch.from_numpy(explained)

    def affinity(self) -> Tensor | None:
        """Puts experts of the same labels first, then those whose means lie near each other."""
        if not len(self._bank.counts):
            return None
        gaussians, table, counts = self._bank.ready(), self._bank.labels, self._bank.component_counts()
        if isinstance(gaussians, OwnGaussians) and table.n_components == table.n_experts:
            return gaussians.affinity()
        shares = np.zeros((table.n_experts, table.n_classes))
        shares[table.owners, table.labels] = counts / np.maximum(self._bank.totals(counts), 1e-300)[table.owners]
        alike = (torch.from_numpy(np.sqrt(shares)) @ torch.from_numpy(np.sqrt(shares)).T) > _SAME_LABELS
        sums, owners = gaussians.whitened_sums().cpu(), torch.from_numpy(table.owners)
        totals = torch.from_numpy(self._bank.totals(counts)).clamp_min(1e-9)
        means = sums.new_zeros(table.n_experts, sums.shape[1]).index_add(0, owners, sums) / totals[:, None]
        return 1e9 * alike - torch.cdist(means, means).square()

    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        table = self._bank.labels
        renamed = np.full((table.n_experts, max(n_classes, table.n_classes)), -1, dtype=np.int64)
        renamed[:, list(mapping)] = table.table[:, : len(mapping)]
        table.replace(renamed)
        self._bank.renamed(mapping)


class RegressionMerging(AdditiveMerging["GaussianRegressionBank"]):
    """Merges experts that are one Gaussian each, over features and targets."""

    def _append(self, other: GaussianRegressionBank) -> None:
        self._bank.ready().extend(other.ready())

    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        pairs = [(k, group[0]) for group in groups for k in group[1:]]
        if pairs:
            self._bank.ready().merge_components(pairs, [group[0] for group in groups])

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        counts = self._bank.counts
        margins = self._bank.ready().typical_margins(np.arange(len(counts))) + counts.log()[:, None]
        best = torch.from_numpy(best_of_sources(margins.numpy(), np.array(sources)))
        return ((margins >= levels[:, None]) & best).double()

    def affinity(self) -> Tensor:
        return self._bank.ready().affinity()

    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        """Does nothing: targets are numbers."""
