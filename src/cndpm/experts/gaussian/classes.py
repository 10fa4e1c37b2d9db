"""A bank of conjugate Gaussian experts over one frozen feature map.

Expert k holds one Gaussian per label it has seen (one in all where there are no labels). Founding it, teaching it and
merging it are additions; its evidence and the evidence of "new" are closed forms. The feature map is fitted on the
first memory and frozen.

Features and sums live on the device; labels, evidence and responsibilities are a handful of numbers and live on the
host, where the mixture decides. A GPU is waited for once in a window of a few batches (:mod:`.ledger`).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.bank import Provisional
from cndpm.experts.features import FeatureMap
from cndpm.experts.gaussian.additive import AdditiveBank
from cndpm.experts.gaussian.label_table import LabelTable, one_hot_weights
from cndpm.experts.gaussian.ledger import WINDOW
from cndpm.experts.gaussian.own_covariance import OwnGaussians
from cndpm.experts.gaussian.provisional import ProvisionalGaussians, kernel_model
from cndpm.experts.gaussian.shared_covariance import SharedGaussians
from cndpm.state import State

__all__ = ["GaussianBank"]

_LOG_FLOOR = -50.0

_LOOK_AHEAD = 500
"""Samples whose features are computed together: a triangular solve for ten rows reads the whole factor."""

_GPU_LOOK_AHEAD = WINDOW
"""The same on a GPU, which computes as many while the host is busy with those before."""


class GaussianBank(AdditiveBank[SharedGaussians | OwnGaussians]):
    """Gaussian experts for labelled streams (class indices) and unlabelled ones.

    Args:
        feature_map: Where the Gaussians live; fitted on the first memory unless it already is.
        n_classes: Number of labels, if known; more may come. The width of :meth:`predictive`. Without it,
            predictions are shrunk for densities, not for classes.
        covariance: "shared" by all components, or each its "own" (normal-inverse-Wishart; for few features).
        shrinkage: Of the shared covariance; None lets the data choose.
        tail: Degrees of freedom of components that share a covariance, inf for normal ones; None likewise.
        log_unseen_label: log p(y | x, k) of a label that expert k has never seen, as routing sees it. The evidence
            for a new expert in labelled streams, below anything that densities differ by.
        seed: Of the feature map's random choices.
        device: Where statistics live and computation runs.

    Example:
        >>> bank = GaussianBank(IdentityFeatures(), n_classes=3)
        >>> bank.start_expert(x_memory, y_memory)
        >>> bank.train_expert(1)
        True
        >>> bank.log_joint(x, y).shape
        torch.Size([10, 1])
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        *,
        n_classes: int | None = None,
        covariance: Literal["shared", "own"] = "shared",
        shrinkage: float | None = None,
        tail: float | None = None,
        log_unseen_label: float = -1e6,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        if covariance not in ("shared", "own"):
            raise ValueError(f"covariance is 'shared' or 'own'; got {covariance!r}")
        if not log_unseen_label < 0:
            raise ValueError(f"log_unseen_label is a log-probability below 0; got {log_unseen_label}")
        super().__init__(feature_map, seed=seed, device=device)
        self.covariance, self.shrinkage, self.tail = covariance, shrinkage, tail
        self.log_unseen_label = log_unseen_label
        self._labels = LabelTable(n_classes or 1)
        self._for_classes = n_classes is not None
        # A GPU computes features while the host is busy with those before.
        self._goes_ahead = self.device.type == "cuda"
        self._look_ahead = _GPU_LOOK_AHEAD if self._goes_ahead else _LOOK_AHEAD
        self._provisional: tuple[Tensor, int, object, ProvisionalGaussians] | None = None

    @property
    def n_experts(self) -> int:
        """K."""
        return self._labels.n_experts

    @property
    def evidence_device(self) -> torch.device:
        """The host."""
        return torch.device("cpu")

    @property
    def answer_size(self) -> int:
        """More than of networks: an answer takes little more memory than its features."""
        return 1000

    def announce(self, x: Tensor) -> None:
        """Prepares the features of a slice with its neighbours'; they are frozen, so no result depends on it."""
        if self._gaussians is None or x.device.type != self.device.type:
            return
        self._cache.look_ahead(x, self._look_ahead)
        self._gaussians.foresee(self._rows(x))
        following = self._cache.go_ahead() if self._goes_ahead else None
        if following is not None:
            self._gaussians.go_ahead(following)

    def select(self, x: Tensor, chosen: Tensor) -> Tensor:
        """x[chosen], with its features where those of x were asked for lately."""
        return self._cache.select(x, chosen)

    def prepare(self, x: Tensor) -> None:
        """Keeps the features of x from the first answer on: they are frozen."""
        self._cache.keep(x)

    def log_joint(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log p(x, y | k), (B, K), float64, with the covariance as routing knows it."""
        if not self.n_experts:
            return torch.zeros(len(x), 0, dtype=torch.float64)
        scores, _ = self._ready().routing_log_prob(self._rows(x))
        weighted = scores.numpy() - self.feature_map.log_volume + self._log_label_share()
        if y is None:
            return self._mix_labels(torch.from_numpy(weighted))
        components = self._labels.components(y.cpu().numpy())
        is_known = components >= 0
        known = np.take_along_axis(weighted, components.clip(min=0), axis=1)
        if not is_known.all():
            table = self._labels.by_expert().numpy()
            mixed = np.logaddexp.reduce(np.where(table >= 0, weighted[:, table], -np.inf), axis=2)
            known = np.where(is_known, known, mixed + self.log_unseen_label)
        return torch.from_numpy(known)

    def log_joint_new(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log p(x, y) under the prior predictive density and equally probable labels, one of them unseen, (B,)."""
        if not self.n_experts:
            return torch.zeros(len(x), dtype=torch.float64)
        _, new = self._ready().routing_log_prob(self._rows(x))
        log_label = 0.0 if y is None else math.log(self._labels.n_labels + 1)
        return new - (self.feature_map.log_volume + log_label)

    def margin_drift(self) -> Tensor | None:
        """As the covariance that all share was renewed: the mean over an expert's components, by their weight."""
        drift = self._ready().margin_drift()
        if drift is None:
            return None
        weights = torch.where(drift.isfinite(), self._ready().counts, 0.0)
        owned = [components[components >= 0] for components in self._labels.table]
        return torch.stack([(weights[own] * drift[own].nan_to_num()).sum() / weights[own].sum() for own in owned])

    def log_leave_one_out(self, x: Tensor, y: Tensor | None) -> Tensor:
        """log p(x_i, y_i) under an expert made of the other samples of a memory, (M,); exact, and makes no expert.

        Samples that the experts explain better are tails of what is known: they should go back to them before the
        memory becomes an expert.
        """
        labels, groups = torch.unique(self._as_labels(x, y), return_inverse=True)
        others = (torch.bincount(groups, minlength=len(labels)) - 1)[groups] / max(1, len(x) - 1)
        log_label = others.double().log().clamp_min(_LOG_FLOOR)
        return self._ready().log_leave_one_out(self._rows(x), groups) - self.feature_map.log_volume + log_label

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x | k), (B, K), float64, exact; of x itself where the map only changes its units."""
        scores, _ = self._ready().log_prob(self._rows(x))
        return self._mix_labels(scores - self.feature_map.log_volume + self._log_label_share_of(scores))

    @property
    def describes_x(self) -> bool:
        """Only where the feature map keeps x."""
        return self.feature_map.keeps_x

    def predictive(self, x: Tensor) -> Tensor:
        """Class log-probabilities of every expert, (B, K, C), float64, exact; unseen labels get e^-50."""
        scores, _ = self._ready().log_prob(self._rows(x))
        return self._label_log_proba(scores)

    def routing_predictive(self, x: Tensor) -> Tensor:
        """The same with the covariance as routing knows it, on the host: at no cost beside :meth:`log_joint`'s."""
        scores, _ = self._ready().routing_log_prob(self._rows(x))
        return self._label_log_proba(scores)

    def admit(self, y: Tensor) -> None:
        """Makes room for labels in the tables."""
        self._labels.reserve(y.cpu().numpy())

    def provisional(self, x: Tensor, y: Tensor | None) -> Provisional:
        """Gaussians over a memory where a covariance is known already, kernels before."""
        labels = self._as_labels(x, y)
        if not isinstance(self._gaussians, SharedGaussians):
            return kernel_model(self.feature_map, x, labels.to(x.device), self._labels.n_classes)
        factor, known = self._gaussians.exact(), self._provisional
        if known is not None and known[0] is x and known[1] == x._version and known[2] is factor:
            return known[3]
        model = ProvisionalGaussians(
            self._gaussians,
            self._rows,
            x,
            labels,
            n_classes=self._labels.n_classes,
            log_volume=self.feature_map.log_volume,
        )
        self._provisional = (x, x._version, factor, model)
        return model

    def learn(self, x: Tensor, y: Tensor | None, responsibilities: Tensor) -> None:
        """Adds the weighted samples to the statistics."""
        self._ready().add(self._rows(x), self._component_weights(self._as_labels(x, y), responsibilities))

    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """n draws of (x, label) from expert k, through the inverse of the feature map where it has one."""
        components = self._labels.table[k][self._labels.table[k] >= 0]
        shares = torch.from_numpy(self._log_label_share())[components].exp().to(generator.device)
        chosen = components[torch.multinomial(shares, n, replacement=True, generator=generator).cpu()]
        rows = torch.empty(n, self.feature_map.n_features, dtype=torch.float64, device=self.device)
        for component in torch.unique(chosen).tolist():
            mask = chosen == component
            rows[mask.to(self.device)] = self._ready().sample(component, int(mask.sum()), generator).to(self.device)
        return self.feature_map.inverse(rows), self._labels.labels()[chosen].to(self.device)

    @property
    def n_numbers_kept(self) -> int:
        """Statistics, label table and feature map."""
        return self.n_parameters + self._labels.table.numel() + self.feature_map.n_numbers_kept

    def state_dict(self) -> State:
        """The labels beside the rest."""
        return {**super().state_dict(), "labels": self._labels.table.clone()}

    def load_state_dict(self, state: State) -> None:
        """Restores the above."""
        super().load_state_dict(state)
        self._labels.replace(state["labels"].to("cpu", copy=True))
        self._provisional = None

    def _taken(self, x: Tensor, y: Tensor | None) -> Tensor:
        if not len(x):
            raise ValueError("an expert is made of at least one sample; got an empty memory")
        return self._as_labels(x, y).clone()

    def _found(self, x: Tensor, y: Tensor) -> None:
        if not self.feature_map.fitted:
            self.feature_map.fit(x, generator=self._generator, labels=y)
        rows = self.feature_map(x)
        if self._gaussians is None:
            self._gaussians = self._new_gaussians(rows)
        self._labels.add_expert()
        all_its = torch.zeros(len(x), self.n_experts, dtype=torch.float64)
        all_its[:, -1] = 1
        self._gaussians.found(rows, self._component_weights(y, all_its))

    def _merge(self, k: int, into: int) -> None:
        pairs, keep = self._labels.merge_expert(k, into)
        self._ready().merge_components(pairs, keep)

    def _new_gaussians(self, rows: Tensor) -> SharedGaussians | OwnGaussians:
        if self.covariance == "own":
            return OwnGaussians(rows.double().cpu())
        return SharedGaussians(
            rows.double().mean(dim=0), shrinkage=self.shrinkage, tail=self.tail, for_classes=self._for_classes
        )

    def _as_labels(self, x: Tensor, y: Tensor | None) -> Tensor:
        if y is None:
            return torch.zeros(len(x), dtype=torch.long)
        if y.dtype.is_floating_point or y.shape != x.shape[:1]:
            raise ValueError(f"labels are integers (batch,) = ({len(x)},); got {y.dtype} {tuple(y.shape)}")
        return y.to("cpu", torch.long)

    def _component_weights(self, labels: Tensor, responsibilities: Tensor) -> Tensor:
        """Weights (B, J) of samples for components, which are made where there are none yet."""
        y, shares = labels.numpy(), responsibilities.to("cpu", torch.float64).numpy()
        self._labels.reserve(y)
        components = self._labels.components(y)
        n_new = self._labels.create(y, (shares > 0) & (components < 0))
        if n_new:
            self._ready().add_components(n_new)
            components = self._labels.components(y)
        return torch.tensor(one_hot_weights(components, shares, self._labels.n_components))

    def _log_label_share(self) -> NDArray[np.float64]:
        """log p(label | expert) of every component, (J,)."""
        counts, owners = self._ready().counts.cpu().numpy(), self._labels.owners().numpy()
        totals = np.bincount(owners, weights=counts, minlength=self.n_experts)
        log_shares: NDArray[np.float64] = np.log((counts / totals[owners]).clip(min=1e-300))
        return log_shares

    def _log_label_share_of(self, scores: Tensor) -> Tensor:
        """The same beside scores."""
        return torch.from_numpy(self._log_label_share()).to(scores.device)

    def _label_log_proba(self, scores: Tensor) -> Tensor:
        """log p(label | x, k), (B, K, C), of densities (B, J)."""
        weighted = scores + self._log_label_share_of(scores)
        table = self._labels.table.to(scores.device)
        joint = torch.where(table >= 0, weighted[:, table.clamp_min(0)], -torch.inf)
        return joint.log_softmax(dim=-1).clamp_min(_LOG_FLOOR).log_softmax(dim=-1)

    def _mix_labels(self, weighted: Tensor) -> Tensor:
        """log sum over an expert's labels of p(label | k) p(x | label, k), given its terms: (B, J) to (B, K)."""
        table = self._labels.by_expert().to(weighted.device)
        return torch.where(table >= 0, weighted[:, table.clamp_min(0)], -torch.inf).logsumexp(dim=-1)
