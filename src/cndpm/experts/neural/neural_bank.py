"""A bank of neural experts that share features through lateral connections."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.kernels import KernelModel
from cndpm.experts.neural.lateral import Features
from cndpm.experts.neural.neural_expert import NeuralExpert, PartTraining
from cndpm.experts.neural.nursery import Nursery
from cndpm.experts.neural.panel import Panel, Seat
from cndpm.experts.neural.parts import Density, Predictor
from cndpm.state import State
from cndpm.training.recorded_steps import StepRecorder

__all__ = ["DensityMaker", "NeuralBank", "PredictorMaker"]


class DensityMaker(Protocol):
    """Makes the density of one expert."""

    def __call__(self, *, first: bool, lateral_widths: tuple[int, ...]) -> Density:
        """`first` is true where the expert stands alone: the first one, the placeholder, all without sharing."""


class PredictorMaker(Protocol):
    """Makes the predictor of one expert."""

    def __call__(self, *, first: bool, lateral_widths: tuple[int, ...], n_classes: int) -> Predictor:
        """As for densities; `n_classes` are known so far."""


class NeuralBank(Bank):
    """Experts made of networks.

    The hypothesis "new" is an expert drawn once from the initialisation and never trained (settings of the release).
    An expert that is pruned while later ones look at its features stays as a retired column: it answers no more.

    Args:
        make_density: Makes a density.
        make_predictor: Makes a predictor; None for an unlabelled mixture.
        density_training: How densities learn.
        predictor_training: How predictors learn.
        n_classes: Number of classes where it is known up front; 0 when they are discovered.
        sharing: Whether experts look at the features of earlier ones.
        inheriting: Whether a new density begins as a copy of the one that explains its memory best; not with sharing,
            where later densities have another shape.
        min_share: An expert is updated when its share of the batch exceeds this.
        seed: Determines initialisations, batches and noise.
        device: Where everything lives.
    """

    _labels: tuple[Tensor, int, Tensor] | None = None

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
        min_share: float = 0.0,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        if sharing and inheriting:
            raise ValueError("experts that share features differ in shape, so none can inherit; turn one of both off")
        self._make_density = make_density
        self._make_predictor = make_predictor
        self._training = (density_training, predictor_training)
        self._sharing = sharing
        self._inheriting = inheriting
        self._min_share = min_share
        self._seed = seed
        self._device = torch.device(device)
        self._generator = torch.Generator(self._device).manual_seed(seed)
        self._recorder = StepRecorder(self._device, self._generator)
        self._beside = self._recorder.aside()
        self._closed = n_classes > 0
        self._n_classes = max(1, n_classes)
        self._born = 0
        self._seats: list[Seat] = []
        self._nursery: Nursery | None = None
        self._placeholder = self._make_expert(serial=0, standing_alone=True)
        self.panel = self._made_panel()

    # The experts

    @property
    def experts(self) -> list[NeuralExpert]:
        """The experts that answer, in the order of their birth."""
        return [seat.expert for seat in self._seats if not seat.retired]

    @property
    def n_experts(self) -> int:
        return len(self.experts)

    @property
    def evidence_device(self) -> torch.device:
        """The host: to decide about ten samples takes a dozen launches on a GPU, and a wait for each answer."""
        return torch.device("cpu")

    @property
    def in_training(self) -> bool:
        return self._nursery is not None

    @property
    def n_parameters(self) -> int:
        return sum(seat.expert.n_parameters for seat in self._seats)

    @property
    def n_numbers_kept(self) -> int:
        return self.n_parameters

    # Evaluation

    @torch.no_grad()
    def log_joint(self, x: Tensor, y: Tensor | None) -> Tensor:
        return self.panel.log_joint(x, self._on_device(y)) if self.n_experts else torch.zeros(len(x), 0)

    @torch.no_grad()
    def log_joint_new(self, x: Tensor, y: Tensor | None) -> Tensor:
        return self.panel.log_joint_new(x, self._on_device(y))

    @torch.no_grad()
    def log_density(self, x: Tensor) -> Tensor:
        return self.panel.answers(0, x) if self.n_experts else x.new_zeros(len(x), 0)

    @torch.no_grad()
    def predictive(self, x: Tensor) -> Tensor:
        if self._make_predictor is None:
            raise ValueError("an unlabelled mixture predicts nothing; ask for its density")
        return self.panel.answers(1, x)

    @torch.no_grad()
    def predictive_of(self, k: int, x: Tensor) -> Tensor:
        """p(y | x, k) of one expert, (B, C) or (B, 2, n_outputs); the others are asked for features at most."""
        predictor = self.experts[k].predictor
        if predictor is None:
            raise ValueError("an unlabelled mixture predicts nothing; ask for its density")
        return self.panel.answer_of(self.panel.answering[k], predictor, x)

    def check(self, x: Tensor) -> None:
        self._placeholder.density.check(x)

    def provisional(self, x: Tensor, y: Tensor | None) -> KernelModel:
        return KernelModel(self._placeholder.density.kernel_log_prob, x, self._on_device(y), self._n_classes)

    # Learning

    def admit(self, y: Tensor) -> None:
        if self._closed:
            return
        n_classes = int(y.max()) + 1 if len(y) else 0
        if n_classes > self._n_classes:
            self._n_classes = n_classes
            waiting = [self._nursery.expert] if self._nursery else []
            for expert in [*self.experts, *waiting, self._placeholder]:
                expert.admit(n_classes)
            self._line_up()

    def learn(self, x: Tensor, y: Tensor | None, responsibilities: Tensor) -> None:
        # In the precision of the networks: a weight that vanishes in it teaches nothing.
        responsibilities = responsibilities.to(self.evidence_device, x.dtype)
        share = (responsibilities.sum(dim=0) / len(x)).tolist()
        learned = responsibilities.sum(dim=1) > 0
        if not learned.all():
            rows = learned.nonzero().squeeze(1)
            x, y, responsibilities = x[rows], y[rows] if y is not None else None, responsibilities[rows]
        weights = responsibilities.t().to(self._device).contiguous()
        for k, position in enumerate(self.panel.answering):
            if share[k] > self._min_share:
                # A label belongs to an expert's repertoire once it takes at least half of a sample that bears it.
                self._show(position, y, responsibilities[:, k] >= 0.5)
                self.panel.teach(position, x, self._on_device(y), weights[k])
        self.panel.forget()

    def start_expert(self, x: Tensor, y: Tensor | None) -> None:
        if self._nursery is not None:
            raise RuntimeError("an expert is in training already; finish it with train_expert first")
        self._born += 1
        expert = self._make_expert(serial=self._born, standing_alone=not self._sharing)
        if self._inheriting and self.n_experts:
            expert.density.inherit(self.experts[self.panel.best_of(x)].density)
        self._nursery = self._enrol(expert, x, self._on_device(y))

    def train_expert(self, max_steps: int) -> bool:
        if self._nursery is None:
            raise RuntimeError("no expert is in training; start one with start_expert")
        if not self._nursery.advance(max_steps):
            return False
        self._nursery.expert.wake()
        self._seats.append(Seat(self._nursery.expert, retired=False))
        self._nursery = None
        self._line_up()
        return True

    def training_progress(self) -> float:
        return self._nursery.progress() if self._nursery is not None else 0.0

    def remove(self, k: int, into: int) -> None:
        position = self.panel.answering[k]
        expert = self._seats[position].expert
        expert.retire()
        self._seats[position] = Seat(expert, retired=True)
        while self._seats and (self._seats[-1].retired and self._nursery is None):
            self._seats.pop()
        if not self._sharing:
            self._seats = [seat for seat in self._seats if not seat.retired]
        self._line_up()

    @torch.no_grad()
    def sample(self, k: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        expert = self.experts[k]
        x = expert.density.sample(n, generator)
        if expert.predictor is None:
            return x, None
        return x, expert.predictor.draw(self.predictive_of(k, x), generator)

    # State

    def state_dict(self) -> State:
        return {
            "seed": self._seed,
            "n_classes": self._n_classes,
            "born": self._born,
            "generator": self._generator.get_state(),
            "placeholder": self._placeholder.state_dict(),
            "columns": [{"retired": seat.retired, "expert": seat.expert.state_dict()} for seat in self._seats],
            "nursery": self._nursery and self._nursery.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        self._seed, self._n_classes, self._born = state["seed"], state["n_classes"], state["born"]
        self._placeholder = self._make_expert(serial=0, standing_alone=True)
        self._placeholder.load_state_dict(state["placeholder"])
        self._seats, self._nursery = [], None
        for saved in state["columns"]:
            expert = self._restored_expert(saved["expert"], retired=saved["retired"])
            self._seats.append(Seat(expert, saved["retired"]))
        self._line_up()
        if saved := state["nursery"]:
            y = saved["y"].to(self._device) if saved["y"] is not None else None
            expert = self._restored_expert(saved["expert"], retired=False)
            self._nursery = self._enrol(expert, saved["x"].to(self._device), y)
            self._nursery.load_progress(saved)
        self._generator.set_state(state["generator"].cpu())

    # Inside

    def _make_expert(self, *, serial: int, standing_alone: bool) -> NeuralExpert:
        """An expert that is a function of the seed and its serial number, and of nothing else."""
        first = standing_alone or not self._seats
        widths = [() if first else self._feature_widths(part) for part in (0, 1)]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed * 1_000_003 + serial)
            density = self._make_density(first=first, lateral_widths=widths[0]).to(self._device)
            predictor = None
            if self._make_predictor is not None:
                predictor = self._make_predictor(first=first, lateral_widths=widths[1], n_classes=self._n_classes)
                predictor = predictor.to(self._device)
        return NeuralExpert(density, predictor, *self._training)

    def _restored_expert(self, state: State, *, retired: bool) -> NeuralExpert:
        expert = self._make_expert(serial=0, standing_alone=not self._sharing)
        if retired:
            expert.retire()
        expert.load_state_dict(state)
        return expert

    def _enrol(self, expert: NeuralExpert, x: Tensor, y: Tensor | None) -> Nursery:
        """The features of earlier experts are computed once for the whole sleep: nothing changes them."""
        sleeps = any(training.sleep.max_steps for training in self._training)
        lateral: tuple[Features, Features] = self.panel.offered(x) if sleeps else ((), ())
        return Nursery(expert, x, y, expert.lessons(x, y, lateral, self._recorder, self._beside))

    def _feature_widths(self, part: int) -> tuple[int, ...]:
        widths = [seat.expert.parts[part][0].feature_widths for seat in self._seats if len(seat.expert.parts) > part]
        return tuple(map(sum, zip(*widths, strict=True)))

    def _line_up(self) -> None:
        """To be called when an expert came, went or changed its shape."""
        self.panel.dissolve()
        self.panel = self._made_panel()

    def _made_panel(self) -> Panel:
        return Panel(self._seats, self._placeholder, sharing=self._sharing, recorder=self._recorder)

    def _on_device(self, y: Tensor | None) -> Tensor | None:
        """The labels where the networks are; those of the last batch are asked for more than once."""
        if y is None or y.device == self._device:
            return y
        known = self._labels
        if known is None or known[0] is not y or known[1] != y._version:
            known = self._labels = (y, y._version, y.to(self._device))
        return known[2]

    def _show(self, position: int, y: Tensor | None, convinced: Tensor) -> None:
        """Lets an expert see the labels of the rows it is convinced of, (batch,) bool on the host."""
        expert = self._seats[position].expert
        if y is not None and expert.predictor is not None and expert.predictor.is_open:
            expert.predictor.see(y.to(self.evidence_device)[convinced].to(self._device))
