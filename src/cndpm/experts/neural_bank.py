"""A bank of neural experts that share features through lateral connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from cndpm.experts.bank import Bank
from cndpm.experts.lateral import Features
from cndpm.experts.lineup import Lineup
from cndpm.experts.neural_expert import NeuralExpert, PartTraining
from cndpm.experts.nursery import Nursery
from cndpm.experts.packed import line_up_densities, line_up_predictors
from cndpm.experts.parts import Density, Predictor
from cndpm.experts.provisional import KernelModel
from cndpm.state import State
from cndpm.stepping import Recorder, Routine

__all__ = ["DensityMaker", "NeuralBank", "PredictorMaker"]

Lateral = tuple[Features, Features]
"""What earlier experts offer to a density and to a predictor."""


_SURVEY_ROWS = 250
"""Samples of the memory whose features are computed at once."""


class DensityMaker(Protocol):
    """Makes the density of one expert."""

    def __call__(self, *, first: bool, lateral_widths: tuple[int, ...]) -> Density:
        """`first` is true where the expert stands alone: the first one, the placeholder, all without sharing."""


class PredictorMaker(Protocol):
    """Makes the predictor of one expert."""

    def __call__(self, *, first: bool, lateral_widths: tuple[int, ...], n_classes: int) -> Predictor:
        """As for densities; `n_classes` are known so far."""


class _Column(NamedTuple):
    expert: NeuralExpert
    retired: bool


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

    _packed: list[Lineup] | None
    _evaluation: Routine
    _surveying: list[Routine]
    _updates: dict[tuple[int, bool], Routine]
    _answers: dict[int, Routine]
    _labels: tuple[Tensor, int, Tensor] | None = None
    _known_new: tuple[Tensor, Tensor | None, int, Tensor] | None

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
        self._recorder = Recorder(self._device, self._generator)
        self._beside = self._recorder.aside()
        self._closed = n_classes > 0
        self._n_classes = max(1, n_classes)
        self._born = 0
        self._columns: list[_Column] = []
        self._surveys: dict[int, tuple[Tensor, int, Features]] = {}
        self._nursery: Nursery | None = None
        self._placeholder = self._make_expert(serial=0, standing_alone=True)
        self._line_up()

    # The experts

    @property
    def experts(self) -> list[NeuralExpert]:
        """The experts that answer, in the order of their birth."""
        return [column.expert for column in self._columns if not column.retired]

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
        return sum(column.expert.n_parameters for column in self._columns)

    @property
    def n_numbers_kept(self) -> int:
        return self.n_parameters

    # Evaluation

    @torch.no_grad()
    def log_joint(self, x: Tensor, y: Tensor | None) -> Tensor:
        if not self.n_experts:
            return torch.zeros(len(x), 0)
        lineups = self._lineups  # made before anything runs side by side
        values, *features = self._evaluation(*_given(x, self._on_device(y)))
        log_joint = values.to(self.evidence_device)
        if self._recorder.enabled:
            log_joint, new = log_joint[:, :-1], log_joint[:, -1]
            self._known_new = (x, y, x._version, new)
        for part, lineup in enumerate(lineups):
            survey, features = features[: lineup.n_shared], features[lineup.n_shared :]
            self._surveys[part] = (x, x._version, tuple(survey))
        return log_joint

    @torch.no_grad()
    def log_joint_new(self, x: Tensor, y: Tensor | None) -> Tensor:
        known, self._known_new = self._known_new, None
        if known is not None and known[0] is x and known[1] is y and known[2] == x._version:
            return known[3]
        return self._placeholder.log_joint(x, self._on_device(y), ((), ())).to(self.evidence_device)

    @torch.no_grad()
    def log_density(self, x: Tensor) -> Tensor:
        if not self.n_experts:
            return x.new_zeros(len(x), 0)
        return self._lineups[0].answers(x, self._survey(0, x))

    @torch.no_grad()
    def predictive(self, x: Tensor) -> Tensor:
        if self._make_predictor is None:
            raise ValueError("an unlabelled mixture predicts nothing; ask for its density")
        return self._lineups[1].answers(x, self._survey(1, x))

    @torch.no_grad()
    def predictive_of(self, k: int, x: Tensor) -> Tensor:
        """p(y | x, k) of one expert, (B, C) or (B, 2, n_outputs); the others are asked for features at most."""
        predictor, position = self.experts[k].predictor, self._answering()[k]
        if predictor is None:
            raise ValueError("an unlabelled mixture predicts nothing; ask for its density")
        if position not in self._answers:
            ask = predictor.predictive
            self._answers[position] = self._recorder.routine(lambda x, *lateral: (ask(x, lateral),), draws=False)
        return self._answers[position](x, *self._lineups[1].lateral(position, self._survey(1, x)))[0]

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
        for k, position in enumerate(self._answering()):
            if share[k] > self._min_share:
                # A label belongs to an expert's repertoire once it takes at least half of a sample that bears it.
                self._show(position, y, responsibilities[:, k] >= 0.5)
                self._teach(position, x, self._on_device(y), weights[k])
        self._surveys.clear()

    def start_expert(self, x: Tensor, y: Tensor | None) -> None:
        if self._nursery is not None:
            raise RuntimeError("an expert is in training already; finish it with train_expert first")
        self._born += 1
        expert = self._make_expert(serial=self._born, standing_alone=not self._sharing)
        if self._inheriting and self.n_experts:
            expert.density.inherit(self.experts[self._best_of(x)].density)
        self._nursery = self._enrol(expert, x, self._on_device(y))

    def train_expert(self, max_steps: int) -> bool:
        if self._nursery is None:
            raise RuntimeError("no expert is in training; start one with start_expert")
        if not self._nursery.advance(max_steps):
            return False
        self._nursery.expert.wake()
        self._columns.append(_Column(self._nursery.expert, retired=False))
        self._nursery = None
        self._line_up()
        return True

    def training_progress(self) -> float:
        return self._nursery.progress() if self._nursery is not None else 0.0

    def remove(self, k: int, into: int) -> None:
        position = self._answering()[k]
        expert = self._columns[position].expert
        expert.retire()
        self._columns[position] = _Column(expert, retired=True)
        while self._columns and (self._columns[-1].retired and self._nursery is None):
            self._columns.pop()
        if not self._sharing:
            self._columns = [column for column in self._columns if not column.retired]
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
            "columns": [{"retired": c.retired, "expert": c.expert.state_dict()} for c in self._columns],
            "nursery": self._nursery and self._nursery.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        self._seed, self._n_classes, self._born = state["seed"], state["n_classes"], state["born"]
        self._placeholder = self._make_expert(serial=0, standing_alone=True)
        self._placeholder.load_state_dict(state["placeholder"])
        self._columns, self._nursery = [], None
        for saved in state["columns"]:
            expert = self._restored_expert(saved["expert"], retired=saved["retired"])
            self._columns.append(_Column(expert, saved["retired"]))
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
        first = standing_alone or not self._columns
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
        offered = [self._offered(lineup, x) for lineup in self._lineups] if sleeps else []
        lateral = (offered[0] if offered else (), offered[1] if len(offered) > 1 else ())
        return Nursery(expert, x, y, expert.lessons(x, y, lateral, self._recorder, self._beside))

    def _offered(self, lineup: Lineup, x: Tensor) -> Features:
        """What all columns offer to a new one, a part of the memory at a time."""
        pieces = [lineup.lateral(len(self._columns), lineup.survey(part)) for part in torch.split(x, _SURVEY_ROWS)]
        return tuple(torch.cat(layer) for layer in zip(*pieces, strict=True))

    def _best_of(self, x: Tensor) -> int:
        """The expert whose density explains samples (M, ...) best."""
        return int(torch.cat([self.log_density(part) for part in torch.split(x, _SURVEY_ROWS)]).mean(dim=0).argmax())

    def _feature_widths(self, part: int) -> tuple[int, ...]:
        widths = [
            column.expert.parts[part][0].feature_widths for column in self._columns if len(column.expert.parts) > part
        ]
        return tuple(map(sum, zip(*widths, strict=True)))

    def _answering(self) -> list[int]:
        """The positions of the experts that answer, among all columns."""
        return [position for position, column in enumerate(self._columns) if not column.retired]

    def _line_up(self) -> None:
        """To be called when an expert came, went or changed its shape."""
        self._surveys.clear()
        self._packed = None
        self._known_new = None
        self._evaluation = self._recorder.routine(self._evaluate, draws=False)
        self._updates, self._answers = {}, {}

    def _on_device(self, y: Tensor | None) -> Tensor | None:
        """The labels where the networks are; those of the last batch are asked for more than once."""
        if y is None or y.device == self._device:
            return y
        known = self._labels
        if known is None or known[0] is not y or known[1] != y._version:
            known = self._labels = (y, y._version, y.to(self._device))
        return known[2]

    @property
    def _lineups(self) -> list[Lineup]:
        """The densities and the predictors that answer; lined up when they are first asked."""
        if self._packed is None:
            self._packed = self._made_lineups() if self._answering() else []
            self._surveying = [self._recorder.routine(lineup.survey, draws=False) for lineup in self._packed]
        return self._packed

    def _made_lineups(self) -> list[Lineup]:
        lineups = [line_up_densities([c.expert.density for c in self._columns], **self._order())]
        predictors = [c.expert.predictor for c in self._columns if c.expert.predictor is not None]
        return [*lineups, line_up_predictors(predictors, **self._order())] if predictors else lineups

    def _order(self) -> dict[str, Any]:
        return {"retired": [column.retired for column in self._columns], "sharing": self._sharing}

    def _survey(self, part: int, x: Tensor) -> Features:
        """All columns' features of x; the last batch's are kept until something has been learned."""
        if not self._lineups[part].n_shared:
            return ()
        known = self._surveys.get(part)
        if known is None or known[0] is not x or known[1] != x._version:
            known = self._surveys[part] = (x, x._version, self._surveying[part](x))
        return known[2]

    def _evaluate(self, x: Tensor, y: Tensor | None = None) -> tuple[Tensor, ...]:
        """log p(x, y | k), (batch, K), and behind it what is asked next: all columns' features of x.

        Where steps are recorded, log p(x, y | new) is one column more, so that one recording holds both.
        """
        hypothesis = self._placeholder if self._recorder.enabled else None
        of_x, of_y = self._recorder.side_by_side(
            lambda: self._evaluate_densities(x, hypothesis), lambda: self._evaluate_predictors(x, y, hypothesis)
        )
        values = [px + py for px, py in zip(of_x[0], of_y[0], strict=True)] if of_y[0] else of_x[0]
        return torch.cat([values[0], *(new.unsqueeze(1) for new in values[1:])], dim=1), *of_x[1], *of_y[1]

    def _evaluate_densities(self, x: Tensor, hypothesis: NeuralExpert | None) -> tuple[list[Tensor], Features]:
        survey = self._lineups[0].survey(x)
        known = self._lineups[0].answers(x, survey)
        return [known, hypothesis.density.log_prob(x)] if hypothesis else [known], survey

    def _evaluate_predictors(
        self, x: Tensor, y: Tensor | None, hypothesis: NeuralExpert | None
    ) -> tuple[list[Tensor], Features]:
        if len(self._lineups) < 2:
            return [], ()
        lineup = self._lineups[1]
        survey = lineup.survey(x)
        if y is None:
            return [], survey
        values = [lineup.scores(y, lineup.answers(x, survey))]
        if hypothesis is not None and hypothesis.predictor is not None:
            values.append(hypothesis.predictor.log_prob(y, hypothesis.predictor.predictive(x)))
        return values, survey

    def _show(self, position: int, y: Tensor | None, convinced: Tensor) -> None:
        """Lets an expert see the labels of the rows it is convinced of, (batch,) bool on the host."""
        expert = self._columns[position].expert
        if y is not None and expert.predictor is not None and expert.predictor.is_open:
            expert.predictor.see(y.to(self.evidence_device)[convinced].to(self._device))

    def _teach(self, position: int, x: Tensor, y: Tensor | None, weight: Tensor) -> None:
        """One step of one expert; later ones look at what it has become."""
        offered = [lineup.lateral(position, self._survey(part, x)) for part, lineup in enumerate(self._lineups)]
        features = [feature for of_part in offered for feature in of_part]
        key = (position, y is not None)
        if key not in self._updates:
            self._updates[key] = self._recorder.routine(self._update(*key))
        self._updates[key](x, weight, *_given(y), *features)
        self._surveys.clear()

    def _update(self, position: int, labelled: bool) -> Callable[..., None]:
        """What :meth:`_teach` does, as a function of tensors alone."""
        expert = self._columns[position].expert
        n_of_density = self._lineups[0].n_shared if position else 0

        def update(x: Tensor, weight: Tensor, *others: Tensor) -> None:
            y, features = (others[0], others[1:]) if labelled else (None, others)
            lateral = (features[:n_of_density], features[n_of_density:])

            def learn_density() -> None:
                expert.learn_density(x, weight, lateral[0], self._generator)
                self._lineups[0].refresh(position)

            def learn_predictor() -> None:
                expert.learn_predictor(x, y, weight, lateral[1])
                for lineup in self._lineups[1:]:
                    lineup.refresh(position)

            self._recorder.side_by_side(learn_density, learn_predictor)

        return update


def _given(*tensors: Tensor | None) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor is not None]
