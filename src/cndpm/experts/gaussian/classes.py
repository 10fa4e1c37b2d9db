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
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.bank import Evidence, Provisional
from cndpm.experts.chunks import Samples
from cndpm.experts.features import FeatureMap
from cndpm.experts.gaussian.additive import AdditiveBank
from cndpm.experts.gaussian.choice import CovarianceChoice
from cndpm.experts.gaussian.factor import host_values
from cndpm.experts.gaussian.label_table import LabelTable
from cndpm.experts.gaussian.own_covariance import OwnGaussians
from cndpm.experts.gaussian.provisional import LOG_FLOOR, ProvisionalGaussians, kernel_model, sum_by_label
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.mixture.inference import log_normalise
from cndpm.mixture.redundancy import best_of_sources
from cndpm.state import State, StateError, expect, integers

_LOG_UNSEEN_LABEL = -1e6
"""log p(y | x, k) of a label that expert k has never seen, as routing sees it: the evidence for a new expert in
labelled streams, below any difference of two densities."""

_TRACE = 1e-6
"""Shares of a sample below this are left out where components are many: each would make one more."""

_FEW_ANSWERS = 4096
"""Experts times classes up to which every expert answers by itself; beyond, their answers are added up by label."""

_SAME_LABELS = 0.5
"""How alike the shares of labels of two experts must be (Bhattacharyya) to be taken for the same labels."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class GaussianBank(AdditiveBank[SharedGaussians | OwnGaussians]):
    """Gaussian experts for labelled streams (class indices) and unlabelled ones.

    The number of classes, if known, is the width of :meth:`predictive`; more may come. A covariance is "shared" by all
    components, or each has its "own" (normal-inverse-Wishart; for few features). One that is shared is shrunk
    `for_classes` where answers are to tell components apart, and for densities otherwise; shrinkage and tail (degrees
    of freedom, inf for normal components) are chosen by the data where they are None.
    """

    _foretells = True
    """Whether its own predictions are asked for, so that their shrinkage is worth judging."""

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
        self.labels = LabelTable(n_classes or 1)
        self._provisional: tuple[Samples, tuple[bool, int], ProvisionalGaussians] | None = None

    @property
    def counts(self) -> Tensor:
        return torch.from_numpy(self._totals(self.component_counts()))

    def admit(self, n_classes: int) -> None:
        self.labels.reserve(n_classes)

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
            log_known, n_labels = self._joint_of_labels(weighted, y.cpu().numpy()), self.labels.n_labels
        log_new = new - (self._log_volume + math.log(n_labels + 1))
        return Evidence(torch.from_numpy(log_known), torch.from_numpy(log_new))

    def log_leave_one_out(self, samples: Samples, y: Tensor | None) -> Tensor:
        labels, groups = torch.unique(self._as_labels(samples.x, y), return_inverse=True)
        others = (torch.bincount(groups, minlength=len(labels)) - 1)[groups] / max(1, len(samples) - 1)
        log_label = others.double().log().clamp_min(LOG_FLOOR)
        return self.ready().log_leave_one_out(samples, groups) - self._log_volume + log_label

    def learn(self, samples: Samples, y: Tensor | None, responsibilities: Tensor, *, counted: bool = True) -> None:
        labels = np.zeros(len(samples), dtype=np.int64) if y is None else y.cpu().numpy()
        gaussians = self._gaussians or self.ready()
        gaussians.add(samples, *self._component_weights(labels, responsibilities.numpy()))

    def margin_drift(self) -> Tensor | None:
        """Averages the drift of an expert's components by their counts."""
        drift = None if self._gaussians is None else self._gaussians.margin_drift()
        if drift is None:
            return None
        moved = drift.numpy()
        weights = np.where(np.isfinite(moved), self.component_counts(), 0.0)
        with np.errstate(invalid="ignore"):
            return torch.from_numpy(self._totals(weights * np.nan_to_num(moved)) / self._totals(weights))

    def log_density(self, samples: Samples, *, exact: bool = True) -> Tensor:
        return torch.as_tensor(self._of_components_and_experts(samples, exact)[1] - self._log_volume)

    def predictive(self, samples: Samples, *, exact: bool = True) -> Tensor:
        return self._label_log_proba(*self._of_components_and_experts(samples, exact))

    def mixed(self, samples: Samples, *, exact: bool = True) -> tuple[Tensor, Tensor] | None:
        n_answers = self.labels.n_experts * self.labels.n_classes
        if not isinstance(self._gaussians, SharedGaussians) or n_answers <= _FEW_ANSWERS:
            return None
        components, scores = self._gaussians.answers.log_prob_near(samples, exact=exact)
        counts, labels = (torch.from_numpy(part) for part in (self.component_counts(), self.labels.labels))
        weighted = scores + counts.clamp_min(1e-300).log().to(scores.device)[components]
        log_density = weighted.logsumexp(dim=1) - (self._log_volume + math.log(float(counts.sum())))
        log_proba = sum_by_label(
            weighted.log_softmax(dim=1), labels.to(scores.device)[components], self.labels.n_classes
        )
        return log_density, log_proba

    def routing_predictive(self, samples: Samples) -> Tensor:
        """Returns :meth:`predictive` with routing's covariance, on the host; free where the evidence is known."""
        weighted = self._weighted(self.ready().routing_log_prob(samples)[0])
        return self._label_log_proba(weighted, self._mix_by_expert(weighted))

    def provisional(self, samples: Samples, y: Tensor | None, *, exact: bool = True) -> Provisional:
        labels = self._as_labels(samples.x, y)
        if not isinstance(self._gaussians, SharedGaussians):  # no covariance is known yet, or none that is shared
            return kernel_model(self.feature_map, samples.x, labels.to(samples.x.device), self.labels.n_classes)
        known, key = self._provisional, (exact, self.labels.n_classes)
        if known is None or known[0] is not samples or known[1] != key:
            model = ProvisionalGaussians(
                self._gaussians,
                samples,
                labels,
                exact=exact,
                n_classes=self.labels.n_classes,
                log_volume=self._log_volume,
            )
            known = self._provisional = (samples, key, model)
        return known[2]

    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        components = torch.from_numpy(self.labels.table[k][self.labels.table[k] >= 0])
        shares = torch.from_numpy(self.component_counts())[components].to(generator.device)
        chosen = components[torch.multinomial(shares, n, replacement=True, generator=generator).cpu()]
        rows = torch.empty(n, self.feature_map.n_features, dtype=torch.float64, device=self.device)
        answers = self.ready().answers
        for component in torch.unique(chosen).tolist():
            mask = chosen == component
            rows[mask.to(self.device)] = answers.sample(component, int(mask.sum()), generator).to(self.device)
        return self.feature_map.inverse(rows), torch.from_numpy(self.labels.labels)[chosen].to(self.device)

    # The contract of additive banks

    def _n_own_numbers(self) -> int:
        return self.labels.table.size

    def _own_state(self) -> State:
        return {"labels": torch.from_numpy(self.labels.table.copy())}

    def _load_own_state(self, state: State) -> None:
        expect(state, {"labels": integers("experts", "classes", low=-1)})
        table = state["labels"].cpu().numpy().copy()
        if sorted(table[table >= 0].tolist()) != list(range(int((table >= 0).sum()))):
            raise StateError("'labels' must number the components from 0, each once")
        self.labels.replace(table)
        self._provisional = None

    def _restored_gaussians(self, state: State) -> SharedGaussians | OwnGaussians:
        gaussians = self._new_gaussians(torch.zeros(1, self.feature_map.n_features, device=self.device))
        gaussians.load_state_dict(state)
        if len(gaussians.counts) != self.labels.n_components:
            n = len(gaussians.counts)
            raise StateError(f"there are {n} components, and labels of {self.labels.n_components}")
        return gaussians

    def _taken(self, x: Tensor, y: Tensor | None) -> Tensor:
        if not len(x):
            raise ValueError("an expert is made of at least one sample; got an empty memory")
        return self._as_labels(x, y).clone()

    def _make_expert(self, samples: Samples, y: Tensor) -> None:
        if self._gaussians is None:
            self._freeze(samples.x, labels=y)
        rows = self._features(samples)
        gaussians = self._begin(rows)
        self.labels.add_expert()
        all_its = np.zeros((len(samples), self.labels.n_experts))
        all_its[:, -1] = 1
        gaussians.found(rows, *self._component_weights(y.numpy(), all_its))

    def _merge(self, k: int, into: int) -> None:
        groups = [[other, k] if other == into else [other] for other in range(self.labels.n_experts) if other != k]
        self.ready().merge_components(*self.labels.unite(groups))

    # Merging: experts are sums, so nothing is lost

    def _append(self, other: Self) -> None:
        mine, theirs = self.labels, other.labels
        n_classes = max(mine.n_classes, theirs.n_classes)
        mine.reserve(n_classes)
        table = np.pad(theirs.table, ((0, 0), (0, n_classes - theirs.n_classes)), constant_values=-1)
        table = np.where(table >= 0, table + mine.n_components, -1)
        gaussians: Any = self.ready()
        gaussians.extend(other.ready())
        mine.replace(np.concatenate([mine.table, table]))

    def unite(self, groups: Sequence[Sequence[int]]) -> None:
        self.ready().merge_components(*self.labels.unite(groups), judge_anew=True)

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        """Asks typical samples of every label of an expert, weighted by their number."""
        table, counts = self.labels, self.component_counts()
        explained, shares = np.zeros((table.n_experts, table.n_experts)), self._label_shares()
        log_labels = math.log(table.n_labels + 1) if self.for_classes else 0.0
        for label in np.unique(table.labels):
            components = table.components_of(np.array([label]))
            components = components[counts[components] >= 1]  # less is a trace of samples that went elsewhere
            owners = table.owners[components]
            margins = self.ready().typical_margins(components).cpu().numpy() + log_labels
            margins = margins + np.log(counts[components])[:, None]
            takes = best_of_sources(margins, np.array(sources)[owners]) & (margins >= levels.numpy()[owners][:, None])
            explained[np.ix_(owners, owners)] += takes * shares[components]
        return torch.from_numpy(explained)

    def affinity(self) -> Tensor | None:
        """Puts experts of the same labels first, then those whose means lie near each other."""
        if not len(self.counts):
            return None
        gaussians, table = self.ready(), self.labels
        if isinstance(gaussians, OwnGaussians) and table.n_components == table.n_experts:
            return gaussians.affinity()
        roots = torch.zeros(table.n_experts, table.n_classes, dtype=torch.float64)
        roots[table.owners, table.labels] = torch.from_numpy(self._label_shares()).sqrt()
        sums, owners = gaussians.whitened_sums().cpu(), torch.from_numpy(table.owners)
        means = sums.new_zeros(table.n_experts, sums.shape[1]).index_add(0, owners, sums)
        means = means / self.counts.clamp_min(1e-9)[:, None]
        return 1e9 * (roots @ roots.T > _SAME_LABELS) - torch.cdist(means, means).square()

    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        table = self.labels
        renamed = np.full((table.n_experts, max(n_classes, table.n_classes)), -1, dtype=np.int64)
        renamed[:, list(mapping)] = table.table[:, : len(mapping)]
        table.replace(renamed)
        self._provisional = None
        if self._memory is not None:
            samples, y = self._memory
            self._memory = (samples, torch.tensor(mapping)[y])

    def _label_shares(self) -> Floats:
        """Returns the part of its expert's samples that each component has, (J,)."""
        counts = self.component_counts()
        return counts / np.maximum(self._totals(counts), 1e-300)[self.labels.owners]

    # Inside

    def _new_gaussians(self, rows: Tensor) -> SharedGaussians | OwnGaussians:
        if self.covariance == "own":
            return OwnGaussians(rows.double().cpu(), self._features)
        kind = {"for_classes": self.for_classes, "foretells": self._foretells}
        choice = CovarianceChoice(self.shrinkage, self.tail, **kind)
        return SharedGaussians(rows.double().mean(dim=0), self._features, choice)

    def _as_labels(self, x: Tensor, y: Tensor | None) -> Tensor:
        if y is None:
            return torch.zeros(len(x), dtype=torch.long)
        if y.dtype.is_floating_point or y.shape != x.shape[:1]:
            raise ValueError(f"labels are integers (batch,) = ({len(x)},); got {y.dtype} {tuple(y.shape)}")
        return y.to("cpu", torch.long)

    def _components(self, labels: Indices) -> Indices:
        """Returns the component of each label in every expert, (B, K), -1 where there is none."""
        table, inside = self.labels.table, labels < self.labels.n_classes
        if inside.all():
            return table[:, labels].T
        found: Indices = table[:, np.where(inside, labels, 0)].T
        return np.where(inside[:, None], found, -1)

    def _evidence_of_labels(self, samples: Samples, labels: Indices) -> Evidence:
        """Returns the evidence where components are many: those of other labels than the samples' are not asked.

        An expert that has not seen a label is no better than another that has not, unless no expert has seen it: then
        the components are asked whose means lie nearest.
        """
        table, gaussians = self.labels, self.ready()
        assert isinstance(gaussians, SharedGaussians)  # others are never wide
        components = table.components_of(labels)
        unknown = ~np.isin(labels, table.labels[components])
        if unknown.any():
            near = gaussians.nearest(samples)
            components = np.arange(table.n_components) if near is None else np.union1d(components, near.cpu().numpy())
        scores, new = gaussians.routing_log_prob(samples, components)
        weighted = scores - self._log_volume + np.log(np.maximum(self.component_counts()[components], 1e-300))
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
        """Returns weights (B, J) of samples with labels (B,) for components, which are made where there are none yet.

        Shares are responsibilities, (B, K). Where components are many, weights are (B, S), for components (S,) that
        come with them, None otherwise.
        """
        gaussians = self._gaussians or self.ready()
        if gaussians.is_wide:
            kept = np.where(shares > _TRACE, shares, 0.0)  # what a sample gives in all stays the same
            shares = kept * (shares.sum(axis=1, keepdims=True) / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300))
        components = self._components(labels)
        missing = (components < 0) & (shares > 0)
        if missing.any():
            self.labels.reserve(int(labels.max()) + 1)
            gaussians.add_components(self.labels.create(labels, missing))
            components = self._components(labels)
        some = self.labels.components_of(labels) if gaussians.is_wide else None
        if some is not None:
            components = np.where(components < 0, len(some), np.searchsorted(some, components))
        n_weights = self.labels.n_components if some is None else len(some)
        weights = torch.zeros(len(labels), n_weights + 1, dtype=torch.float64)
        # The last column takes samples without a component.
        weights.numpy()[np.arange(len(labels))[:, None], components] = shares
        return weights[:, :-1], some

    def component_counts(self) -> Floats:
        """Returns the samples of each component, (J,)."""
        return np.zeros(0) if self._gaussians is None else self._gaussians.counts.cpu().numpy()

    def _totals(self, counts: Floats) -> Floats:
        """Returns the samples of each expert, (K,), from those of its components."""
        return np.bincount(self.labels.owners, weights=counts, minlength=self.labels.n_experts).astype(np.float64)

    def _joint_of_labels(self, weighted: Floats, labels: Indices) -> Floats:
        """Returns log N_k + log p(x, y | k), (B, K), from its terms by component, (B, J)."""
        components = self._components(labels)
        known: Floats = weighted[np.arange(len(weighted))[:, None], np.maximum(components, 0)]
        is_known = components >= 0
        if is_known.all():
            return known
        return np.where(is_known, known, self._mix_labels(weighted) + _LOG_UNSEEN_LABEL)

    def _mix_labels(self, weighted: Floats) -> Floats:
        """Adds up an expert's labels: (B, J) to (B, K), in logs."""
        table = self.labels.by_expert
        mixed: Floats = np.logaddexp.reduce(np.where(table >= 0, weighted[:, table], -np.inf), axis=2)
        return mixed

    def _mix_by_expert(self, weighted: Any) -> Any:
        """Does the same with tensors, on the device of the scores."""
        if not isinstance(weighted, Tensor):
            return self._mix_labels(weighted)
        table = torch.from_numpy(self.labels.by_expert).to(weighted.device)
        return torch.where(table >= 0, weighted[:, table.clamp_min(0)], -torch.inf).logsumexp(dim=-1)

    def _of_components_and_experts(self, samples: Samples, exact: bool) -> tuple[Any, Any]:
        """Returns log p(label, x | k) of components, (B, J), and its sums log p(x | k) by expert, (B, K).

        They are arrays on the host, as far as the components live there.
        """

        def mix(chunk: Samples) -> Any:
            weighted = self._weighted(host_values(self.ready().answers.log_prob(chunk, exact=exact)))
            module: Any = torch if isinstance(weighted, Tensor) else np
            return module.concatenate([weighted, self._mix_by_expert(weighted)], 1)

        # Counts are another tensor whenever something was learned, so they stand for all that answers depend on.
        both = samples.derive(f"for answers, exact={exact}", self.ready().counts, mix)
        return both[:, : self.labels.n_components], both[:, self.labels.n_components :]

    def _weighted(self, scores: Any) -> Any:
        """Adds log p(label | expert) of every component to log densities, (B, J)."""
        counts = self.component_counts()
        log_shares = np.log(np.maximum(counts / self._totals(counts)[self.labels.owners], 1e-300))
        return scores + (torch.from_numpy(log_shares).to(scores.device) if isinstance(scores, Tensor) else log_shares)

    def _label_log_proba(self, weighted: Any, mixed: Any) -> Tensor:
        """Returns log p(label | x, k), (B, K, C), from :meth:`_weighted`, (B, J), and its sums by expert, (B, K)."""
        shape, owners, labels = (*mixed.shape, self.labels.n_classes), self.labels.owners, self.labels.labels
        if isinstance(weighted, Tensor):
            of, label = (torch.from_numpy(part).to(weighted.device) for part in (owners, labels))
            log_proba = weighted.new_full(shape, LOG_FLOOR)
            log_proba[:, of, label] = (weighted - mixed[:, of]).clamp_min(LOG_FLOOR)
            return log_proba.log_softmax(dim=-1)
        values = np.full(shape, LOG_FLOOR)
        values[:, owners, labels] = np.maximum(weighted - mixed[:, owners], LOG_FLOOR)
        return torch.from_numpy(log_normalise(values))
