"""A bank of neural experts that share features through lateral connections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Self

import torch
from torch import Tensor, nn

from cndpm.devices import restore_generator
from cndpm.experts.bank import Bank, DensityOf, Evidence
from cndpm.experts.chunks import Samples, open_block
from cndpm.experts.kernels import KernelModel
from cndpm.experts.neural.lateral import Features
from cndpm.experts.neural.neural_expert import ExpertInTraining, NeuralExpert, PartTraining
from cndpm.experts.neural.panel import AT_ONCE, Panel, Seat
from cndpm.experts.neural.parts import DensityMaker, PredictorMaker
from cndpm.experts.neural.scaling import Scalings
from cndpm.learner import Footprint
from cndpm.state import State, expect, tensor, whole
from cndpm.threads import spread
from cndpm.training.recorded_steps import StepRecorder

_N_PLACES = 100
"""About how often a convolutional weight is used for one image."""

_N_PASSES = 10
"""About how often a weight is used in a step: forwards and backwards, for some latent samples."""


class NeuralBank(Bank):
    """Experts made of networks; without a maker of predictors, an unlabelled mixture.

    The hypothesis "new" is an expert drawn once from the initialisation and never trained (settings of the release). An
    expert that is pruned while later ones look at its features stays as a retired column: it answers no more. The
    number of classes is 0 when they are discovered. A new density may begin as a copy of the one that explains its
    memory best (`inheriting`), but not with `sharing`, where later densities have another shape. `standardise` scales
    inputs and real-valued targets by the statistics of the first memory. An expert is updated when its share of a batch
    exceeds `min_share`.
    """

    is_additive = False
    density_of: DensityOf = "x by networks"

    def __init__(
        self,
        make_density: DensityMaker,
        make_predictor: PredictorMaker | None,
        *,
        density_training: PartTraining,
        predictor_training: PartTraining,
        n_classes: int = 0,
        sharing: bool = True,
        inheriting: bool = False,
        standardise: bool = False,
        min_share: float = 0.0,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        if sharing and inheriting:
            raise ValueError("experts that share features differ in shape, so none can inherit; turn one of both off")
        self._make_density = make_density
        self._make_predictor = make_predictor
        self._training = (density_training, predictor_training)
        self.sharing, self._inheriting = sharing, inheriting
        self._min_share = min_share
        self._seed, self._device = seed, torch.device(device)
        self._generator = torch.Generator(self._device).manual_seed(seed)
        self._recorder = StepRecorder(self._device, self._generator)
        self._closed, self.n_classes = n_classes > 0, max(1, n_classes)
        self._born = 0
        self._counts = torch.zeros(0, dtype=torch.float64)
        self._scalings = Scalings(wanted=standardise, device=self._device)
        self._seats: list[Seat] = []
        self._in_training: ExpertInTraining | None = None
        self._placeholder = self._make_expert(serial=0, standing_alone=True)
        self._n_products = sum(_n_products(part) for part, _ in self._placeholder.parts)
        self.panel = self._made_panel()

    # The experts

    @property
    def experts(self) -> list[NeuralExpert]:
        """The experts that answer, in the order of their birth."""
        return [seat.expert for seat in self._seats if not seat.retired]

    @property
    def counts(self) -> Tensor:
        return self._counts.clone()

    def open(self, x: Tensor, batch_size: int | None = None, *, start: int = 0) -> Iterator[Samples]:
        x = x.to(self._device)
        self._placeholder.density.check(x)
        size = AT_ONCE if batch_size is None else batch_size  # a chunk each: networks change with every step
        return open_block(x, size, chunk_size=size, start=start)

    # Evaluation

    @torch.no_grad()
    def evidence(self, samples: Samples, y: Tensor | None) -> Evidence:
        with self._spread(len(samples)):
            log_joint, log_new = self.panel.evidence(self._scalings.inputs(samples), self._scalings.targets(y))
        return Evidence(self._counts.log() + log_joint.double(), log_new.double())

    @torch.no_grad()
    def log_density(self, samples: Samples, *, exact: bool = True) -> Tensor:
        if not len(self._counts):
            return samples.x.new_zeros(len(samples), 0)
        with self._spread(len(samples)):
            log_density = self.panel.answers(0, self._scalings.inputs(samples))
        return self._scalings.log_density(log_density)

    @torch.no_grad()
    def predictive(self, samples: Samples, *, exact: bool = True) -> Tensor:
        if self._make_predictor is None:
            raise ValueError("an unlabelled mixture predicts nothing; ask for its density")
        with self._spread(len(samples)):
            return self._scalings.predictive(self.panel.answers(1, self._scalings.inputs(samples)))

    @torch.no_grad()
    def predictive_of(self, k: int, samples: Samples) -> Tensor:
        """Returns p(y | x, k) of one expert, (B, C) or (B, 2, n_outputs); the others give features at most."""
        predictor = self.experts[k].predictor
        if predictor is None:
            raise ValueError("an unlabelled mixture predicts nothing; ask for its density")
        position = self.panel.answering[k]
        with self._spread(len(samples)):
            return self._scalings.predictive(self.panel.answer_of(position, predictor, self._scalings.inputs(samples)))

    def provisional(self, samples: Samples, y: Tensor | None, *, exact: bool = True) -> KernelModel:
        scaling, density = self._scalings.of_inputs(samples.x), self._placeholder.density
        targets = None if y is None else y.to(self._device)
        if scaling is None:
            return KernelModel(density.kernel_log_prob, samples.x, targets, self.n_classes)
        centres, log_volume = scaling(samples.x).view_as(samples.x), scaling.log_volume

        def kernel(x: Tensor, _: Tensor) -> Tensor:
            return density.kernel_log_prob(scaling(x).view_as(x), centres) - log_volume

        return KernelModel(kernel, samples.x, targets, self.n_classes)

    # Learning

    def admit(self, n_classes: int) -> None:
        if self._closed or n_classes <= self.n_classes:
            return
        self.n_classes = n_classes
        waiting = [self._in_training.expert] if self._in_training else []
        for expert in [*self.experts, *waiting, self._placeholder]:
            expert.admit(n_classes)
        self._line_up()

    def learn(self, samples: Samples, y: Tensor | None, responsibilities: Tensor, *, counted: bool = True) -> None:
        if counted:
            self._counts = self._counts + responsibilities.sum(dim=0)
        samples, targets = self._scalings.inputs(samples), self._scalings.targets(y)
        # In the precision of the networks: a weight that vanishes in it teaches nothing.
        responsibilities = responsibilities.to(samples.x.dtype)
        share = (responsibilities.sum(dim=0) / len(samples)).tolist()
        learned = responsibilities.sum(dim=1) > 0
        if not learned.all():
            rows = learned.nonzero().squeeze(1)
            samples, responsibilities = Samples(samples.x[rows.to(self._device)]), responsibilities[rows]
            y, targets = (None, None) if y is None or targets is None else (y[rows], targets[rows.to(self._device)])
        weights = responsibilities.t().to(self._device).contiguous()
        for k, position in enumerate(self.panel.answering):
            if share[k] > self._min_share:
                # A label belongs to an expert's repertoire once it takes at least half of a sample that bears it.
                self._show(position, y, responsibilities[:, k] >= 0.5)
                with self._spread(len(samples)):
                    self.panel.teach(position, samples, targets, weights[k])

    def found(self, samples: Samples, y: Tensor | None) -> None:
        if self._in_training is not None:
            raise RuntimeError("an expert is in training already; finish it with train() first")
        self._scalings.fit(samples.x, y)
        x = self._scalings.inputs(samples).x
        self._born += 1
        expert = self._make_expert(serial=self._born, standing_alone=not self.sharing)
        if self._inheriting and len(self._counts):
            expert.density.inherit(self.experts[self.panel.best_of(x)].density)
        self._in_training = self._enrol(expert, x, self._scalings.targets(y))

    def train(self, max_steps: int) -> float:
        if self._in_training is None:
            return 1.0
        with self._spread(self._training[0].sleep.batch_size):
            is_ready = max_steps > 0 and self._in_training.advance(max_steps)
        if not is_ready:
            return min(self._in_training.progress(), 1 - 1e-9)
        self._in_training.expert.wake()
        self._seats.append(Seat(self._in_training.expert, retired=False))
        self._counts = torch.cat([self._counts, torch.tensor([float(len(self._in_training.x))], dtype=torch.float64)])
        self._in_training = None
        self._line_up()
        return 1.0

    def remove(self, k: int, into: int | None) -> None:
        position = self.panel.answering[k]
        expert = self._seats[position].expert
        expert.retire()
        self._seats[position] = Seat(expert, retired=True)
        while self._seats and (self._seats[-1].retired and self._in_training is None):
            self._seats.pop()
        if not self.sharing:
            self._seats = [seat for seat in self._seats if not seat.retired]
        if into is not None:
            self._counts[into] += self._counts[k]
        self._counts = torch.cat([self._counts[:k], self._counts[k + 1 :]])
        self._line_up()

    @torch.no_grad()
    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        expert = self.experts[k]
        x = expert.density.sample(n, generator)
        x = self._scalings.undo(x)
        if expert.predictor is None:
            return x, None
        return x, expert.predictor.draw(self.predictive_of(k, Samples(x)), generator)

    # State

    def footprint(self) -> Footprint:
        n_parameters = sum(seat.expert.n_parameters for seat in self._seats)
        return Footprint(n_parameters, n_parameters + len(self._counts), n_experts=len(self._counts))

    def state_dict(self) -> State:
        return {
            **self.representation(),
            "born": self._born,
            "counts": self._counts.clone(),
            "generator": self._generator.get_state(),
            "columns": [{"retired": seat.retired, "expert": seat.expert.state_dict()} for seat in self._seats],
            "in_training": self._in_training and self._in_training.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        n_experts = sum(not saved["retired"] for saved in state["columns"])
        forms = {"seed": whole(), "n_classes": whole(1, 1 << 31), "born": whole(), "counts": tensor(n_experts)}
        expect(state, {**forms, "generator": tensor("bytes", dtype=torch.uint8)})
        self._seed, self.n_classes, self._born = state["seed"], state["n_classes"], state["born"]
        self._counts = state["counts"].to("cpu", copy=True)
        self._scalings.load_state_dict(state["scalings"])
        self._placeholder = self._make_expert(serial=0, standing_alone=True)
        self._placeholder.load_state_dict(state["placeholder"])
        self._seats, self._in_training = [], None
        for saved in state["columns"]:
            expert = self._restored_expert(saved["expert"], retired=saved["retired"])
            self._seats.append(Seat(expert, saved["retired"]))
        self._line_up()
        if saved := state["in_training"]:
            y = saved["y"].to(self._device) if saved["y"] is not None else None
            expert = self._restored_expert(saved["expert"], retired=False)
            self._in_training = self._enrol(expert, saved["x"].to(self._device), y)
            for lesson, progress in zip(self._in_training.lessons, saved["lessons"], strict=True):
                lesson.load_state_dict(progress)
        restore_generator(self._generator, state["generator"])

    def representation(self) -> State:
        scalings, placeholder = self._scalings.state_dict(), self._placeholder.state_dict()
        return {"seed": self._seed, "n_classes": self.n_classes, "scalings": scalings, "placeholder": placeholder}

    # Merging: networks are no sums, so they are put side by side, for pruning to choose among

    def _extend(self, other: Self) -> None:
        if self.sharing and len(other.counts) and len(self.counts):
            raise ValueError(
                "networks with lateral connections look at all that came before them, so those of two models cannot be "
                "put side by side; learn with sharing=False to merge later"
            )
        self.admit(other.n_classes)
        other.admit(self.n_classes)
        for expert in other.experts:
            self._seats.append(Seat(self._restored_expert(expert.state_dict(), retired=False), retired=False))
        self._counts = torch.cat([self._counts, other.counts])
        self._born += other._born
        self._line_up()

    def explained(self, levels: Tensor, sources: Sequence[int]) -> Tensor:
        return torch.eye(len(self._counts), dtype=torch.float64)

    def relabel(self, mapping: Sequence[int], n_classes: int) -> None:
        if list(mapping) != list(range(len(mapping))):
            raise ValueError(
                "networks keep their classes in order, and these models met them in different orders; name them all in "
                "the same order when learning begins: partial_fit(X, y, classes=...)"
            )
        self.admit(n_classes)

    # Inside

    def _make_expert(self, *, serial: int, standing_alone: bool) -> NeuralExpert:
        """Makes an expert that is a function of the seed and its serial number alone."""
        first = standing_alone or not self._seats
        widths = [() if first else self._feature_widths(part) for part in (0, 1)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed * 1_000_003 + serial)
            density = self._make_density(first=first, lateral_widths=widths[0]).to(self._device)
            predictor = None
            if self._make_predictor is not None:
                predictor = self._make_predictor(first=first, lateral_widths=widths[1], n_classes=self.n_classes)
                predictor = predictor.to(self._device)
        return NeuralExpert(density, predictor, *self._training)

    def _restored_expert(self, state: State, *, retired: bool) -> NeuralExpert:
        expert = self._make_expert(serial=0, standing_alone=not self.sharing)
        if retired:
            expert.retire()
        expert.load_state_dict(state)
        return expert

    def _enrol(self, expert: NeuralExpert, x: Tensor, y: Tensor | None) -> ExpertInTraining:
        """Computes the features of earlier experts, once for the whole sleep, and makes the lessons."""
        sleeps = any(training.sleep.max_steps for training in self._training)
        lateral: tuple[Features, Features] = self.panel.offered(x) if sleeps else ((), ())
        return ExpertInTraining(expert, x, y, expert.lessons(x, y, lateral, self._recorder))

    def _feature_widths(self, part: int) -> tuple[int, ...]:
        widths = [seat.expert.parts[part][0].feature_widths for seat in self._seats if len(seat.expert.parts) > part]
        return tuple(map(sum, zip(*widths, strict=True)))

    def _line_up(self) -> None:
        """Makes a new panel; to be called when an expert came, went or changed its shape."""
        self.panel.dissolve()
        self.panel = self._made_panel()

    def _made_panel(self) -> Panel:
        return Panel(self._seats, self._placeholder, sharing=self.sharing, recorder=self._recorder)

    def _spread(self, n_samples: int) -> AbstractContextManager[None]:
        """Allows all threads where a step of one expert on so many samples is worth it."""
        return spread(self._n_products * n_samples)

    def _show(self, position: int, y: Tensor | None, convinced: Tensor) -> None:
        """Lets an expert see the labels of the rows it is convinced of, (batch,) bool on the host."""
        expert = self._seats[position].expert
        if y is not None and expert.predictor is not None and expert.predictor.is_open:
            expert.predictor.see(y[convinced].to(self._device))


def _n_products(part: nn.Module) -> int:
    """Returns about how many multiplications a step takes for one sample."""
    return sum(p.numel() * (_N_PLACES if p.dim() == 4 else 1) for p in part.parameters()) * _N_PASSES
