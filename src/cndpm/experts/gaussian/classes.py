"""A bank of conjugate Gaussian experts over one frozen feature map, for class labels and for none.

Expert k holds one Gaussian per label it has seen (one in all where there are no labels). Founding, teaching and
merging are additions; its evidence and the evidence of "new" are closed forms. The feature map is fitted on the
first memory and frozen.

Features and sums live on the device; labels, evidence and responsibilities are a handful of numbers and live on the
host, where the mixture decides. A GPU is waited for once in a window of a few batches (:mod:`.ledger`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.bank import Evidence, Provisional
from cndpm.experts.chunks import Samples
from cndpm.experts.features import FeatureMap
from cndpm.experts.gaussian.additive import AdditiveBank
from cndpm.experts.gaussian.label_table import LabelTable
from cndpm.experts.gaussian.own_covariance import OwnGaussians
from cndpm.experts.gaussian.provisional import LOG_FLOOR, ProvisionalGaussians, kernel_model, sum_by_label
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.mixture.matching import best_of_sources
from cndpm.state import State, StateError, expect, integers

__all__ = ["GaussianBank"]

_MOST_LABELS = 1 << 40
_LOG_UNSEEN_LABEL = -1e6
"""log p(y | x, k) of a label that expert k has never seen, as routing sees it: the evidence for a new expert in
labelled streams, below any difference of two densities."""

_SAME_LABELS = 0.5
"""How alike the shares of labels of two experts must be (Bhattacharyya) to be taken for the same labels."""

_TRACE = 1e-6
"""Shares of a sample below this are left out where components are many: each would make one more."""

_FEW_ANSWERS = 4096
"""Experts times classes up to which every expert answers by itself; beyond, their answers are added up by label."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class GaussianBank(AdditiveBank[SharedGaussians | OwnGaussians]):
    """Gaussian experts for labelled streams (class indices) and unlabelled ones.

    Args:
        feature_map: Where the Gaussians live; fitted on the first memory unless it already is.
        n_classes: Number of labels, if known; more may come. The width of :meth:`predictive`.
        covariance: "shared" by all components, or each its "own" (normal-inverse-Wishart; for few features).
        for_classes: Whether answers are to tell components apart, so that a shared covariance is shrunk for classes;
            otherwise they give densities.
        shrinkage: Of the shared covariance; None lets the data choose.
        tail: Degrees of freedom of components that share a covariance, inf for normal ones; None likewise.
        seed: Of the feature map's random choices.
        device: Where statistics live and computation runs.

    Example:
        >>> import torch
        >>> from cndpm.experts.features import IdentityFeatures
        >>> x, y = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 2
        >>> bank = GaussianBank(IdentityFeatures(), n_classes=2)
        >>> bank.found(Samples(x), y)
        >>> bank.train(1)
        1.0
        >>> bank.evidence(Samples(x[:10]), y[:10]).log_known.shape
        torch.Size([10, 1])
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        *,
        n_classes: int | None = None,
        covariance: Literal["shared", "own"] = "shared",
        for_classes: bool = True,
        shrinkage: float | None = None,
        tail: float | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        if covariance not in ("shared", "own"):
            raise ValueError(f"covariance is 'shared' or 'own'; got {covariance!r}")
        super().__init__(feature_map, seed=seed, device=device)
        self.covariance, self.for_classes, self.shrinkage, self.tail = covariance, for_classes, shrinkage, tail
        self._labels = LabelTable(n_classes or 1)
        self._provisional: tuple[Samples, tuple[bool, int], ProvisionalGaussians] | None = None

    @property
    def counts(self) -> Tensor:
        return torch.from_numpy(self._totals(self._component_counts()))

    @property
    def component_counts(self) -> Tensor:
        """Samples of each component, (J,), float64, on the host."""
        return torch.from_numpy(self._component_counts())

    @property
    def component_labels(self) -> Tensor:
        """The label of each component, (J,), on the host."""
        return torch.from_numpy(self._labels.labels)

    def sums_by_label(self) -> tuple[Tensor, Tensor]:
        """Returns samples (C,) and sums of features (C, d) by label, whichever expert has learned them; on the host."""
        gaussians, labels = self._ready(), self.component_labels
        counts = torch.zeros(self._labels.n_classes, dtype=torch.float64).index_add(0, labels, self.component_counts)
        features = gaussians.sums_of_features().cpu()
        return counts, features.new_zeros(len(counts), features.shape[1]).index_add(0, labels, features)

    def scatter(self) -> Tensor:
        """Returns the scatter of features about the means of their components, (d, d), lower triangle, on the host."""
        return self._ready().scatter().cpu()

    def component_log_prob(self, samples: Samples, *, exact: bool = True) -> Tensor:
        """Returns log densities of the features under every component, (B, J).

        Args:
            samples: (B, ...).
            exact: As in :meth:`predictive`.
        """
        return self._ready().log_prob(samples, exact=exact)

    def admit(self, n_classes: int) -> None:
        self._labels.reserve(n_classes)

    def evidence(self, samples: Samples, y: Tensor | None) -> Evidence:
        if self._gaussians is None:
            return Evidence(torch.zeros(len(samples), 0, dtype=torch.float64), torch.zeros(len(samples)).double())
        if self._gaussians.is_wide and y is not None:
            return self._evidence_of_labels(samples, y.cpu().numpy())
        counts = self._gaussians.counts.numpy()
        scores, new = self._gaussians.routing_log_prob(samples)
        # log p(label | k) + log N_k is the log count of the label's component.
        weighted = scores - self._log_volume + np.log(np.maximum(counts, 1e-300))
        if y is None:
            log_known, n_labels = self._mix_labels(weighted), 0
        else:
            log_known, n_labels = self._joint_of_labels(weighted, y.cpu().numpy()), self._labels.n_labels
        log_new = new - (self._log_volume + math.log(n_labels + 1))
        return Evidence(torch.from_numpy(log_known), torch.from_numpy(log_new))

    def log_leave_one_out(self, samples: Samples, y: Tensor | None) -> Tensor:
        labels, groups = torch.unique(self._as_labels(samples.x, y), return_inverse=True)
        others = (torch.bincount(groups, minlength=len(labels)) - 1)[groups] / max(1, len(samples) - 1)
        log_label = others.double().log().clamp_min(LOG_FLOOR)
        return self._ready().log_leave_one_out(samples, groups) - self._log_volume + log_label

    def learn(self, samples: Samples, y: Tensor | None, responsibilities: Tensor, *, counted: bool = True) -> None:
        labels = np.zeros(len(samples), dtype=np.int64) if y is None else y.cpu().numpy()
        gaussians = self._gaussians or self._ready()
        gaussians.add(samples, *self._component_weights(labels, responsibilities.numpy()))

    def margin_drift(self) -> Tensor | None:
        """Averages the drift of an expert's components by their counts."""
        drift = None if self._gaussians is None else self._gaussians.margin_drift()
        if drift is None:
            return None
        moved = drift.numpy()
        weights = np.where(np.isfinite(moved), self._component_counts(), 0.0)
        with np.errstate(invalid="ignore"):
            return torch.from_numpy(self._totals(weights * np.nan_to_num(moved)) / self._totals(weights))

    def log_density(self, samples: Samples, *, exact: bool = True) -> Tensor:
        return self._of_components_and_experts(samples, exact)[1] - self._log_volume

    def predictive(self, samples: Samples, *, exact: bool = True) -> Tensor:
        return self._label_log_proba(*self._of_components_and_experts(samples, exact))

    def mixed(self, samples: Samples, *, exact: bool = True) -> tuple[Tensor, Tensor] | None:
        if self._gaussians is None or self._labels.n_experts * self._labels.n_classes <= _FEW_ANSWERS:
            return None
        components, scores = self._gaussians.log_prob_near(samples, exact=exact)
        counts, labels = (torch.from_numpy(part) for part in (self._component_counts(), self._labels.labels))
        weighted = scores + counts.clamp_min(1e-300).log().to(scores.device)[components]
        log_density = weighted.logsumexp(dim=1) - (self._log_volume + math.log(float(counts.sum())))
        log_proba = sum_by_label(
            weighted.log_softmax(dim=1), labels.to(scores.device)[components], self._labels.n_classes
        )
        return log_density, log_proba

    def routing_predictive(self, samples: Samples) -> Tensor:
        """Returns :meth:`predictive` with routing's covariance, on the host; free where the evidence is known."""
        weighted = self._weighted(torch.from_numpy(self._ready().routing_log_prob(samples)[0]))
        return self._label_log_proba(weighted, self._mix_by_expert(weighted))

    def provisional(self, samples: Samples, y: Tensor | None, *, exact: bool = True) -> Provisional:
        labels = self._as_labels(samples.x, y)
        if not isinstance(self._gaussians, SharedGaussians):  # no covariance is known yet, or none that is shared
            return kernel_model(self.feature_map, samples.x, labels.to(samples.x.device), self._labels.n_classes)
        known, key = self._provisional, (exact, self._labels.n_classes)
        if known is None or known[0] is not samples or known[1] != key:
            model = ProvisionalGaussians(
                self._gaussians,
                samples,
                labels,
                exact=exact,
                n_classes=self._labels.n_classes,
                log_volume=self._log_volume,
            )
            known = self._provisional = (samples, key, model)
        return known[2]

    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        components = torch.from_numpy(self._labels.table[k][self._labels.table[k] >= 0])
        shares = torch.from_numpy(self._component_counts())[components].to(generator.device)
        chosen = components[torch.multinomial(shares, n, replacement=True, generator=generator).cpu()]
        rows = torch.empty(n, self.feature_map.n_features, dtype=torch.float64, device=self.device)
        for component in torch.unique(chosen).tolist():
            mask = chosen == component
            rows[mask.to(self.device)] = self._ready().sample(component, int(mask.sum()), generator).to(self.device)
        return self.feature_map.inverse(rows), torch.from_numpy(self._labels.labels)[chosen].to(self.device)

    # The contract of additive banks

    def _n_own_numbers(self) -> int:
        return self._labels.table.size

    def _own_state(self) -> State:
        return {"labels": torch.from_numpy(self._labels.table.copy())}

    def _load_own_state(self, state: State) -> None:
        expect(state, {"labels": integers("experts", "classes", low=-1, below=_MOST_LABELS)})
        table = state["labels"].cpu().numpy().copy()
        if sorted(table[table >= 0].tolist()) != list(range(int((table >= 0).sum()))):
            raise StateError("'labels' must number the components from 0, each once")
        self._labels.replace(table)
        self._provisional = None

    def _restored_gaussians(self, state: State) -> SharedGaussians | OwnGaussians:
        gaussians = self._new_gaussians(torch.zeros(1, self.feature_map.n_features, device=self.device))
        gaussians.load_state_dict(state)
        if len(gaussians.counts) != self._labels.n_components:
            n = len(gaussians.counts)
            raise StateError(f"there are {n} components, and labels of {self._labels.n_components}")
        return gaussians

    def _taken(self, x: Tensor, y: Tensor | None) -> Tensor:
        if not len(x):
            raise ValueError("an expert is made of at least one sample; got an empty memory")
        return self._as_labels(x, y).clone()

    def _make_expert(self, samples: Samples, y: Tensor) -> None:
        if self._gaussians is None:
            self._freeze(samples.x, labels=y)
        rows = self._features(samples)
        if self._gaussians is None:
            known = self._template
            self._gaussians = self._new_gaussians(rows) if known is None else self._restored_gaussians(known)
        self._labels.add_expert()
        all_its = np.zeros((len(samples), self._labels.n_experts))
        all_its[:, -1] = 1
        self._gaussians.found(rows, *self._component_weights(y.numpy(), all_its))

    def _merge(self, k: int, into: int) -> None:
        pairs, keep = self._labels.merge_expert(k, into)
        self._ready().merge_components(pairs, keep)

    def _extend(self, other: GaussianBank) -> None:
        mine, theirs = self._labels, other._labels
        n_classes = max(mine.n_classes, theirs.n_classes)
        mine.reserve(n_classes)
        table = np.pad(theirs.table, ((0, 0), (0, n_classes - theirs.n_classes)), constant_values=-1)
        table = np.where(table >= 0, table + mine.n_components, -1)
        gaussians: Any = self._ready()
        gaussians.extend(other._ready())
        mine.replace(np.concatenate([mine.table, table]))

    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        pairs, keep = self._labels.unite(groups)
        self._ready().unite_components(pairs, keep)

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        """Asks typical samples of every label of an expert, weighted by their number.

        Args:
            levels: (K,).
            sources: (K,).
        """
        table, counts = self._labels, self._component_counts()
        shares = counts / np.maximum(self._totals(counts), 1e-300)[table.owners]
        explained = np.zeros((table.n_experts, table.n_experts))
        log_labels = math.log(table.n_labels + 1) if self.for_classes else 0.0
        for label in np.unique(table.labels):
            components = table.components_of(np.array([label]))
            components = components[counts[components] >= 1]  # less is a trace of samples that went elsewhere
            owners = table.owners[components]
            margins = self._ready().typical_margins(components).cpu().numpy() + log_labels
            margins = margins + np.log(counts[components])[:, None]
            takes = best_of_sources(margins, np.array(sources)[owners]) & (margins >= levels.numpy()[owners][:, None])
            explained[np.ix_(owners, owners)] += takes * shares[components]
        return torch.from_numpy(explained)

    def affinity(self) -> Tensor:
        """Puts experts of the same labels first, then those whose means lie near each other."""
        gaussians, table = self._ready(), self._labels
        if isinstance(gaussians, OwnGaussians) and table.n_components == table.n_experts:
            return gaussians.affinity()
        counts = self._component_counts()
        shares = np.zeros((table.n_experts, table.n_classes))
        shares[table.owners, table.labels] = counts / np.maximum(self._totals(counts), 1e-300)[table.owners]
        alike = (torch.from_numpy(np.sqrt(shares)) @ torch.from_numpy(np.sqrt(shares)).T) > _SAME_LABELS
        return gaussians.expert_affinity(table.owners, table.n_experts) + 1e9 * alike

    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        table = np.full((self._labels.n_experts, max(n_classes, self._labels.n_classes)), -1, dtype=np.int64)
        table[:, list(mapping)] = self._labels.table[:, : len(mapping)]
        self._labels.replace(table)
        self._provisional = None
        if self._memory is not None:
            samples, y = self._memory
            self._memory = (samples, torch.tensor(mapping)[y])

    # Inside

    def _new_gaussians(self, rows: Tensor) -> SharedGaussians | OwnGaussians:
        """Makes the components, none yet; their prior comes from the rows of the first memory, (M, d)."""
        if self.covariance == "own":
            return OwnGaussians(rows.double().cpu(), self._features)
        return SharedGaussians(
            rows.double().mean(dim=0),
            self._features,
            shrinkage=self.shrinkage,
            tail=self.tail,
            for_classes=self.for_classes,
        )

    def _as_labels(self, x: Tensor, y: Tensor | None) -> Tensor:
        if y is None:
            return torch.zeros(len(x), dtype=torch.long)
        if y.dtype.is_floating_point or y.shape != x.shape[:1]:
            raise ValueError(f"labels are integers (batch,) = ({len(x)},); got {y.dtype} {tuple(y.shape)}")
        return y.to("cpu", torch.long)

    def _components(self, labels: Indices) -> Indices:
        """Returns the component of each label in every expert, (B, K), -1 where there is none."""
        table, inside = self._labels.table, labels < self._labels.n_classes
        if inside.all():
            return table[:, labels].T
        found: Indices = table[:, np.where(inside, labels, 0)].T
        return np.where(inside[:, None], found, -1)

    def _evidence_of_labels(self, samples: Samples, labels: Indices) -> Evidence:
        """Returns the evidence where components are many: those of other labels than the samples' are not asked.

        An expert that has not seen a label is no better than another that has not, unless no expert has seen it: then
        the components are asked whose means lie nearest.
        """
        table, gaussians = self._labels, self._ready()
        components = table.components_of(labels)
        unknown = ~np.isin(labels, table.labels[components])
        if unknown.any():
            components = np.union1d(components, gaussians.near(samples))
        scores, new = gaussians.routing_log_prob(samples, components)
        weighted = scores - self._log_volume + np.log(np.maximum(self._component_counts()[components], 1e-300))
        owners = table.owners[components]
        log_known = np.repeat(new[:, None] - self._log_volume + 2 * _LOG_UNSEEN_LABEL, table.n_experts, axis=1)
        row, column = np.nonzero(table.labels[components] == labels[:, None])
        log_known[row, owners[column]] = weighted[row, column]
        for i in np.flatnonzero(unknown):
            best = weighted[i].max()
            shares = np.bincount(owners, weights=np.exp(weighted[i] - best), minlength=table.n_experts)
            asked = shares > 0
            log_known[i, asked] = best + np.log(shares[asked]) + _LOG_UNSEEN_LABEL
        log_new = new - (self._log_volume + math.log(table.n_labels + 1))
        return Evidence(torch.from_numpy(log_known), torch.from_numpy(log_new))

    def _component_weights(self, labels: Indices, shares: Floats) -> tuple[Tensor, Indices | None]:
        """Returns weights (B, J) of samples for components, which are made where there are none yet.

        Args:
            labels: (B,).
            shares: Responsibilities, (B, K).

        Returns:
            The weights and None; where components are many, weights (B, S) and the components (S,) that they are for.
        """
        gaussians = self._gaussians or self._ready()
        if gaussians.is_wide:
            shares = _without_traces(shares)
        components = self._components(labels)
        missing = (components < 0) & (shares > 0)
        if missing.any():
            self._labels.reserve(int(labels.max()) + 1)
            gaussians.add_components(self._labels.create(labels, missing))
            components = self._components(labels)
        some = self._labels.components_of(labels) if gaussians.is_wide else None
        if some is not None:
            components = np.where(components < 0, len(some), np.searchsorted(some, components))
        n_weights = self._labels.n_components if some is None else len(some)
        weights = torch.zeros(len(labels), n_weights + 1, dtype=torch.float64)
        # The last column takes samples without a component.
        weights.numpy()[np.arange(len(labels))[:, None], components] = shares
        return weights[:, :-1], some

    def _component_counts(self) -> Floats:
        """Returns the samples of each component, (J,)."""
        return np.zeros(0) if self._gaussians is None else self._gaussians.counts.cpu().numpy()

    def _totals(self, counts: Floats) -> Floats:
        """Returns the samples of each expert, (K,), from those of its components."""
        return np.bincount(self._labels.owners, weights=counts, minlength=self._labels.n_experts).astype(np.float64)

    def _joint_of_labels(self, weighted: Floats, labels: Indices) -> Floats:
        """Returns log N_k + log p(x, y | k), (B, K), from its terms by component, (B, J)."""
        components = self._components(labels)
        known: Floats = np.take_along_axis(weighted, np.maximum(components, 0), axis=1)
        is_known = components >= 0
        if is_known.all():
            return known
        return np.where(is_known, known, self._mix_labels(weighted) + _LOG_UNSEEN_LABEL)

    def _mix_labels(self, weighted: Floats) -> Floats:
        """Adds up an expert's labels: (B, J) to (B, K), in logs."""
        table = self._labels.by_expert
        mixed: Floats = np.logaddexp.reduce(np.where(table >= 0, weighted[:, table], -np.inf), axis=2)
        return mixed

    def _mix_by_expert(self, weighted: Tensor) -> Tensor:
        """Does the same with tensors, on the device of the scores."""
        table = torch.from_numpy(self._labels.by_expert).to(weighted.device)
        return torch.where(table >= 0, weighted[:, table.clamp_min(0)], -torch.inf).logsumexp(dim=-1)

    def _of_components_and_experts(self, samples: Samples, exact: bool) -> tuple[Tensor, Tensor]:
        """Returns log p(label, x | k) of components, (B, J), and its sums log p(x | k) by expert, (B, K)."""

        def mix(chunk: Samples) -> Tensor:
            weighted = self._weighted(self._ready().log_prob(chunk, exact=exact))
            return torch.cat([weighted, self._mix_by_expert(weighted)], dim=1)

        # Counts are another tensor whenever something was learned, so they stand for all that answers depend on.
        both: Tensor = samples.derive(f"for answers, exact={exact}", self._ready().counts, mix)
        return both[:, : self._labels.n_components], both[:, self._labels.n_components :]

    def _weighted(self, scores: Tensor) -> Tensor:
        """Adds log p(label | expert) of every component to log densities, (B, J)."""
        counts = self._component_counts()
        shares = counts / self._totals(counts)[self._labels.owners]
        return scores + torch.from_numpy(np.log(np.maximum(shares, 1e-300))).to(scores.device)

    def _label_log_proba(self, weighted: Tensor, mixed: Tensor) -> Tensor:
        """Returns log p(label | x, k), (B, K, C), from :meth:`_weighted`, (B, J), and its sums by expert, (B, K)."""
        owners, labels = (torch.from_numpy(of).to(weighted.device) for of in (self._labels.owners, self._labels.labels))
        log_proba = weighted.new_full((*mixed.shape, self._labels.n_classes), LOG_FLOOR)
        log_proba[:, owners, labels] = (weighted - mixed[:, owners]).clamp_min(LOG_FLOOR)
        return log_proba.log_softmax(dim=-1)


def _without_traces(shares: Floats) -> Floats:
    """Returns responsibilities (B, K) without traces; what a sample gives in all stays the same."""
    kept = np.where(shares > _TRACE, shares, 0.0)
    given: Floats = kept * (shares.sum(axis=1, keepdims=True) / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300))
    return given
