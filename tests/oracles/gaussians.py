"""The oracle of the default: Algorithm 1 with Gaussian experts, in plain loops, against which tests hold it.

Nothing here is carried along, cached or cut into windows: its Gaussians (:mod:`oracles.plain_gaussians`) keep every
row that was learned. It shares with the fast path the novelty, the feature maps and functions that are tested against
closed forms, so that the two agree to rounding.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cndpm.experts.bank import Evidence
from cndpm.experts.features import IdentityFeatures
from cndpm.mixture import accepts_expert, largest_concept, log_gate, mix_log_proba, route
from cndpm.model.learned_level import LearnedLevel
from cndpm.model.settings import AutoNovelty, CNDPMSettings, GaussianExperts
from cndpm.model.settings.facts import Facts
from cndpm.model.settings.gaussian import GaussiansAlone
from oracles.plain_gaussians import PlainFactor, PlainGaussians, Row

__all__ = ["GaussianOracle"]

_LOG_UNSEEN, _LOG_FLOOR = -1e6, -50.0
_LESSON, _FIFTH = 10, 5

Samples = list[tuple[Tensor, Tensor]]


class GaussianOracle:
    """CN-DPM as shipped, for class labels: shared covariance, automatic novelty, earned founding, anytime answers.

    Args:
        settings: As for CN-DPM; Gaussian experts alone, target "classes", novelty "auto".
        input_shape: Shape of one sample.
        seed: As for CN-DPM; the same seed gives the same features.

    Attributes:
        memory: Samples that wait, each with its label.
        gaussians: The components of all experts.

    Example:
        >>> import torch
        >>> oracle = GaussianOracle(CNDPMSettings(memory_size=20, n_fourier=8), input_shape=(2,))
        >>> y = torch.arange(80) // 40
        >>> for batch in torch.split(torch.arange(80), 10):
        ...     oracle.learn(torch.randn(10, 2) + 9 * y[batch, None], y[batch])
        >>> oracle.n_experts
        2
    """

    def __init__(self, settings: CNDPMSettings, *, input_shape: tuple[int, ...], seed: int = 0) -> None:
        experts, novelty = settings.experts, settings.novelty
        if not isinstance(experts, GaussianExperts) or not isinstance(experts.classifier, GaussiansAlone):
            raise ValueError("the oracle knows Gaussian experts alone: experts='gaussian', classifier='gaussian'")
        if not isinstance(novelty, AutoNovelty) or settings.target != "classes" or experts.covariance == "own":
            raise ValueError("the oracle knows novelty='auto', target='classes' and a shared covariance only")
        self.memory_size, self.anytime = settings.memory_size, settings.anytime
        self.feature_map = experts.features.build(Facts("classes", 1, input_shape, None, seed, torch.device("cpu")))
        self.generator = torch.Generator().manual_seed(seed)
        self.novelty = LearnedLevel(novelty_rate=novelty.novelty_rate, window=novelty.novelty_window)
        self.memory: Samples = []
        self.gaussians = PlainGaussians(0)
        self.origin = torch.zeros(0)  # of the features; sums of centred rows lose no digits
        self.n_experts = self.n_classes = 0

    @property
    def counts(self) -> Tensor:
        """Samples that each expert has learned, (K,)."""
        counts = torch.zeros(self.n_experts, dtype=torch.float64)
        for (expert, _), (n, _) in self.gaussians.sums().items():
            counts[expert] += n
        return counts

    # Learning

    def learn(self, x: Tensor, y: Tensor) -> None:
        """Has the experts learn what is known of a batch; the rest goes to the memory, which sleeps when it is full.

        Args:
            x: Inputs, (B, *input_shape).
            y: Class indices, (B,).
        """
        self.n_classes = max(self.n_classes, int(y.max()) + 1)
        while len(x):
            is_new, responsibilities = self.novelty.route(self.evidence(x, y), y)
            if not is_new.all():
                self._add(x, y, responsibilities)
            if not is_new.any():
                self._review()
            x, y, room = x[is_new], y[is_new], self.memory_size - len(self.memory)
            self.memory += list(zip(x[:room], y[:room], strict=True))
            x, y = x[room:], y[room:]
            while len(self.memory) >= self.memory_size:
                if self.n_experts:
                    self._give_back(self._tails())
                if not self.n_experts or len(self.memory) >= self.memory_size / 2:
                    self._found()

    def consolidate(self) -> None:
        """Sleeps on whatever the memory holds."""
        while self.memory:
            if self.n_experts:
                self._give_back(self._tails())
            if self.memory:
                self._found()

    def evidence(self, x: Tensor, y: Tensor) -> Evidence:
        """Returns log N_k + log p(x, y | k), (B, K), and the log density of "new", (B,), as routing sees them.

        Args:
            x: Inputs, (B, *input_shape).
            y: Class indices, (B,).
        """
        log_known, routing = torch.zeros(len(x), self.n_experts, dtype=torch.float64), self.gaussians.routing
        if routing is None:
            return Evidence(log_known, log_known.new_zeros(len(x)))
        z, sums = self._features(x), self.gaussians.sums()
        joint = {c: routing.log_density(z, n, total) + math.log(n) for c, (n, total) in sums.items()}
        for i in range(len(x)):
            for k in range(self.n_experts):
                own = {label: score[i] for (expert, label), score in joint.items() if expert == k}
                unseen = torch.stack(list(own.values())).logsumexp(dim=0) + _LOG_UNSEEN
                log_known[i, k] = own.get(int(y[i]), unseen)
        n_labels = len({label for _, label in sums})
        log_new = routing.log_density(z, 0.0, 0.0) - math.log(n_labels + 1)
        return Evidence(log_known - self.feature_map.log_volume, log_new - self.feature_map.log_volume)

    def _add(self, x: Tensor, y: Tensor, responsibilities: Tensor) -> None:
        self.gaussians.add(self._rows(x, y, responsibilities))
        self._follow()

    def _rows(self, x: Tensor, y: Tensor, responsibilities: Tensor) -> list[Row]:
        """Returns features with their responsibilities, where somebody has some."""
        rows = []
        for z, label, shares in zip(self._features(x), y.tolist(), responsibilities.tolist(), strict=True):
            if any(shares):
                rows.append((z, {(k, label): share for k, share in enumerate(shares) if share > 0}))
        return rows

    def _follow(self) -> None:
        """Tells the novelty by how much the margins of each expert's samples moved, where routing was renewed."""
        drift, sums = self.gaussians.margin_drift(), self.gaussians.sums()
        if drift is not None:
            moved, weight = torch.zeros(2, self.n_experts, dtype=torch.float64)
            for component, by in drift.items():
                n = sums[component][0]
                moved[component[0]] += n * by
                weight[component[0]] += n
            self.novelty.follow(moved / weight)

    def _review(self) -> None:
        """Gives back samples of labels that are known by now, where there are enough for a lesson."""
        if len(self.memory) >= _LESSON:
            is_stray = ~self.novelty.is_still_new(_stacked(self.memory)[1])
            if int(is_stray.sum()) >= _LESSON:
                self._give_back(is_stray)

    def _tails(self) -> Tensor:
        """Returns which samples an expert explains better than the rest of the memory would, (M,)."""
        x, y = _stacked(self.memory)
        return self.evidence(x, y).log_known.amax(dim=1) > math.log(len(x)) + self._leave_one_out(x, y)

    def _leave_one_out(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the log density of each sample and its label under an expert made of the others, (M,)."""
        routing, z, scores = self.gaussians.routing, self._features(x), []
        assert routing is not None
        for i in range(len(x)):
            others = (y == y[i]) & (torch.arange(len(y)) != i)
            n = int(others.sum())
            log_share = max(math.log(n / (len(x) - 1)), _LOG_FLOOR) if n else _LOG_FLOOR
            scores.append(routing.log_density(z[i : i + 1], n, z[others].sum(dim=0)) + log_share)
        return torch.cat(scores) - self.feature_map.log_volume

    def _give_back(self, rows: Tensor) -> None:
        given = [sample for sample, is_given in zip(self.memory, rows, strict=True) if is_given]
        self.memory = [sample for sample, is_given in zip(self.memory, rows, strict=True) if not is_given]
        self._teach(given)

    def _teach(self, samples: Samples) -> None:
        for start in range(0, len(samples), _LESSON):
            x, y = _stacked(samples[start : start + _LESSON])
            nothing_new = torch.zeros(len(x), dtype=torch.bool)
            self._add(x, y, route(self.evidence(x, y).log_known, nothing_new).responsibilities)

    def _found(self) -> None:
        """Makes an expert of four fifths of the largest concept; it stays if that helps to explain the last fifth."""
        is_largest = largest_concept(_stacked(self.memory)[1].numpy(), least=max(1, self.memory_size // _FIFTH))
        largest = [sample for sample, is_mine in zip(self.memory, is_largest, strict=True) if is_mine]
        self.memory = [sample for sample, is_mine in zip(self.memory, is_largest, strict=True) if not is_mine]
        every = _FIFTH if len(largest) >= 2 * _FIFTH else len(largest) + 1
        held_out = largest[every - 1 :: every]
        founders = [sample for i, sample in enumerate(largest) if i % every != every - 1]
        self._make_expert(*_stacked(founders))
        self._follow()
        x, y = _stacked(held_out or founders)
        evidence, n = self.evidence(x, y), len(held_out)
        if self.n_experts == 1 or self._is_earned(evidence.log_known, None if n else self._leave_one_out(x, y)):
            self.novelty.add_expert(Evidence(evidence.log_known[:n], evidence.log_new[:n]), y[:n])
        else:
            self.n_experts -= 1
            self.gaussians.merge(self.n_experts, into=int(evidence.log_known[:, :-1].sum(dim=0).argmax()))
        self._teach(held_out)

    def _make_expert(self, x: Tensor, y: Tensor) -> None:
        if not self.n_experts:
            if not self.feature_map.fitted:
                self.feature_map.fit(x, generator=self.generator, labels=y)
            self.origin = self.feature_map(x).double().mean(dim=0)
            self.gaussians = PlainGaussians(len(self.origin))
        self.n_experts += 1
        self.gaussians.found(self._rows(x, y, torch.eye(self.n_experts)[-1:].expand(len(x), -1)))

    def _is_earned(self, log_known: Tensor, log_alone: Tensor | None) -> bool:
        """Compares the mixture with and without its newest expert, by samples that are held out or left out."""
        counts = self.counts
        log_n, log_n_before = float(counts.sum().log()), float(counts[:-1].sum().clamp_min(1).log())
        newest = log_known[:, -1] if log_alone is None else counts[-1].log() + log_alone
        before = log_known[:, :-1].logsumexp(dim=1)
        return accepts_expert(torch.logaddexp(before, newest) - log_n, before - log_n_before, cost=log_n_before)

    def _features(self, x: Tensor) -> Tensor:
        """Returns centred features (B, d), float64."""
        return self.feature_map(x).double() - self.origin

    # Answers

    def predict_log_proba(self, x: Tensor, *, exact: bool = False) -> Tensor:
        """Returns log-probabilities of the classes (equation 6), (B, C); what waits in the memory takes part.

        Args:
            x: Inputs, (B, *input_shape).
            exact: Whether the covariance is that of all rows, or of the last renewal.
        """
        if not self.n_experts:
            return self._answer_by_kernels(x)
        factor, sums = self.gaussians.answering(exact=exact), self.gaussians.sums()
        parts = [{label: s for (expert, label), s in sums.items() if expert == k} for k in range(self.n_experts)]
        if self.anytime and self.memory:
            memory, y = _stacked(self.memory)
            z = self._features(memory)
            parts.append({c: (float((y == c).sum()), z[y == c].sum(dim=0)) for c in sorted(set(y.tolist()))})
        answers = [self._answer(factor, self._features(x), part) for part in parts]
        counts = torch.tensor([sum(n for n, _ in part.values()) for part in parts], dtype=torch.float64)
        gate = log_gate(torch.stack([density for density, _ in answers], dim=1), counts)
        return mix_log_proba(gate, torch.stack([log_proba for _, log_proba in answers], dim=1))

    def _answer(self, factor: PlainFactor, z: Tensor, part: dict[int, tuple[float, Tensor]]) -> tuple[Tensor, Tensor]:
        """Returns log p(x), (B,), and log p(label | x), (B, C), of one expert, given its sums by label."""
        joint = torch.full((len(z), self.n_classes), -torch.inf, dtype=torch.float64)
        n_samples = sum(n for n, _ in part.values())
        for label, (n, total) in part.items():
            joint[:, label] = factor.log_density(z, n, total) + math.log(n / n_samples)
        log_proba = joint.log_softmax(dim=1).clamp_min(_LOG_FLOOR).log_softmax(dim=1)
        return joint.logsumexp(dim=1) - self.feature_map.log_volume, log_proba

    def _answer_by_kernels(self, x: Tensor) -> Tensor:
        """Answers before there is an expert, by a Gaussian around every sample of the memory."""
        log_proba = torch.full((len(x), max(1, self.n_classes)), -math.log(max(1, self.n_classes))).double()
        if not (self.anytime and self.memory):
            return log_proba
        memory, y = _stacked(self.memory)
        feature_map = self.feature_map if self.feature_map.fitted else IdentityFeatures()
        if not feature_map.fitted:
            feature_map.fit(memory, generator=torch.Generator())
        centres, z = feature_map(memory).double(), feature_map(x).double()
        nearest = [float((centres - c).square().mean(dim=1).sort().values[1]) for c in centres if len(centres) > 1]
        variance = max(1e-3, sum(nearest) / len(nearest)) if nearest else 1.0
        for i in range(len(x)):
            weight = (-0.5 * (centres - z[i]).square().sum(dim=1) / variance).softmax(dim=0)
            shares = torch.stack([weight[y == label].sum() for label in range(self.n_classes)]) + 1e-6
            log_proba[i] = (shares / shares.sum()).log()
        return log_proba


def _stacked(samples: Samples) -> tuple[Tensor, Tensor]:
    return torch.stack([x for x, _ in samples]), torch.stack([y for _, y in samples])
