"""CN-DPM: a Dirichlet-process mixture of neural experts that grows by itself (sections 3.1 and 3.2 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cndpm.experts.chunks import Samples
from cndpm.experts.features import FeatureMap
from cndpm.experts.pool.class_pool import When
from cndpm.learner import Footprint, Inputs, Learner, Portrait, Prepared
from cndpm.mixture import Merge, similarity
from cndpm.model.answers import Answers, draw_portrait
from cndpm.model.arrivals import Arrivals
from cndpm.model.events import EventLog
from cndpm.model.extremes import Extremes, admit_targets, admit_x
from cndpm.model.limit import LimitedFounding
from cndpm.model.memory import SampleBatch, ShortTermMemory, check_kept
from cndpm.model.places import Places
from cndpm.model.pruning import log_joint, prune
from cndpm.model.settings import CNDPMSettings, CustomDensity, CustomPredictor
from cndpm.model.settings.facts import Facts
from cndpm.model.watch import Watch
from cndpm.state import State, StateError, expect, flag, whole
from cndpm.threads import one_thread

__all__ = ["CNDPM"]

_NEVER = math.log(1e-300)
"""Log-probability of a class that was announced and never came."""


@final
class CNDPM(Learner):
    """Grows a mixture of experts (Algorithm 1): experts learn what they explain, samples that none explains found one.

    It consists of a bank of experts, a novelty that routes samples, a short-term memory and a founding that makes
    experts of full memories; the settings build each of them. Batches pass `arrivals` on their way to the experts.

    Args:
        settings: See :class:`cndpm.model.settings.CNDPMSettings`.
        input_shape: Shape of one sample.
        n_classes: Number of classes where it is known up front; None discovers them as they arrive.
        seed: Determines every random choice.
        device: Where parameters and samples live.
        density: A density class of one's own in place of the VAE.
        predictor: A predictor class of one's own in place of the classifier or regressor.
        feature_map: A feature map of one's own for Gaussian experts, e.g. ``ModuleFeatures(backbone)``.
        n_exemplars: Rows kept to say how new others are; 0 for none, and no `watch`.

    Attributes:
        bank: The experts.
        novelty: Decides which samples are new and which experts learn the others.
        memory: New samples, until an expert is made of them.
        founding: Makes experts of memories, within a limit.
        arrivals: Sets extreme rows aside; shows the rest to `watch` and `places`.
        parts: The density, predictor and feature map of one's own that it was made with.
        events: The log of what happened to the experts.
        n_known_classes: Number of classes met so far, or known up front.
        watch: Says how new a row is; None where no rows are kept for it.
        places: Pools that answer for rows with targets; None where the experts answer themselves.

    Example:
        >>> import torch
        >>> learner = CNDPM(CNDPMSettings(memory_size=50), input_shape=(4,))
        >>> y = torch.arange(200) // 100
        >>> learner.learn_block(torch.randn(200, 4) + 9 * y[:, None], y, batch_size=10)
        >>> learner.n_experts
        2
    """

    summary: ClassVar[str] = "the paper's method: a Dirichlet-process mixture of experts that grows by itself"
    Settings = CNDPMSettings
    settings: CNDPMSettings

    def __init__(
        self,
        settings: CNDPMSettings,
        *,
        input_shape: tuple[int, ...],
        n_classes: int | None = None,
        seed: int = 0,
        device: torch.device | str = "cpu",
        density: CustomDensity | None = None,
        predictor: CustomPredictor | None = None,
        feature_map: FeatureMap | None = None,
        n_exemplars: int = 0,
    ) -> None:
        super().__init__(settings, input_shape=input_shape, n_classes=n_classes, seed=seed, device=device)
        self.parts: dict[str, Any] = {"density": density, "predictor": predictor, "feature_map": feature_map}
        facts = Facts(settings.target, settings.n_outputs, self.input_shape, n_classes, seed, self.device)
        make_pool = settings.representations.build(facts, is_plain=settings.is_plain and feature_map is None)
        facts = replace(facts, keeps_latest=make_pool is not None)
        self.bank = settings.experts.build(facts, **self.parts)
        self.places = None if make_pool is None else Places(make_pool, self._log_weighted)
        self.memory, self._has_labels = ShortTermMemory(settings.memory_size, self.device), settings.target == "classes"
        self.novelty, founding = settings.novelty.build(has_labels=self._has_labels, at_end_of_task=self.consolidate)
        self.events = EventLog()
        self.founding = LimitedFounding(
            founding, self.events, max_experts=settings.most_experts, policy=settings.at_limit, device=self.device
        )
        if self.places is not None:
            self.events.on_removal, self.places.on_rule = self.places.removed, self._report_rule
        self._answers = Answers(self.bank, self.memory, anytime=settings.anytime, device=self.device)
        self.watch, self.n_exemplars = None, n_exemplars
        if n_exemplars:
            self.watch = Watch(self.bank, self.input_shape, settings.target, capacity=n_exemplars, seed=seed)
        self.arrivals = Arrivals(
            self.bank,
            extremes=Extremes() if len(self.input_shape) == 1 else None,
            watch=self.watch,
            places=self.places,
            room=settings.memory_size,
            device=self.device,
        )
        self.experts = self
        self.task_listener = self.novelty.listener
        self._waiting: SampleBatch | None = None
        self.n_known_classes, self._is_exact = n_classes or 0, False

    # Learning

    def learn(self, x: Inputs, y: Tensor | None = None) -> None:
        inputs = x.x if isinstance(x, Prepared) else x
        self.learn_block(x, y, max(1, len(inputs)) if isinstance(inputs, Tensor) and inputs.dim() else 1)

    def learn_block(
        self,
        x: Inputs,
        y: Tensor | None,
        batch_size: int,
        *,
        start: int = 0,
        after_batch: Callable[[int], None] | None = None,
    ) -> None:
        is_whole = isinstance(x, Prepared) and len(x.kept) == 1 and batch_size >= len(x.x) and not start
        prepared: list[Samples] | None = x.kept if is_whole else None  # as the one batch they were asked about
        x, y = self._admit(x, y)
        n, n_threads, has_learned = x.shape[0], torch.get_num_threads(), self._waiting is not None
        with one_thread():
            x = self.arrivals.open(x)
            if self.places is None:
                samples = iter(prepared or self.bank.open(x, batch_size, start=start))
            else:
                rows = x.cpu().numpy().astype(np.float64)
            self.settle()
            if y is not None and self._has_labels:
                self.meet(int(y.numpy().max()) + 1)
            self._is_exact = False
            for begin in range(start, n, batch_size):
                stop = min(begin + batch_size, n)
                targets = None if y is None else y[begin:stop]
                self.events.n_samples += stop - begin
                if self.places is None:
                    batch = self.arrivals.pass_by(SampleBatch(next(samples), targets))
                else:
                    batch = self.arrivals.receive(rows[begin:stop], targets)
                if batch is not None:
                    self._learn(batch)
                    has_learned = True
                if after_batch is not None:
                    torch.set_num_threads(n_threads)  # what is called is not ours
                    after_batch(stop)
                    torch.set_num_threads(1)
        if has_learned:
            self.events.follow(self.n_experts)

    def _learn(self, batch: SampleBatch | None) -> None:
        """Learns one batch (lines 3 to 20 of Algorithm 1).

        New samples that find no room in the memory are routed again once it has been slept on.
        """
        while batch is not None:
            evidence = self.bank.evidence(*batch)
            is_new, responsibilities = self.novelty.route(evidence, batch.y if self._has_labels else None)
            if not is_new.all():
                self.bank.learn(*batch, responsibilities)
                self.events.learned.append((self.events.n_samples, responsibilities.numpy().sum(axis=0)))
                if (drift := self.bank.margin_drift()) is not None:
                    self.novelty.follow(drift)
            if not is_new.any():
                if self.memory.size:
                    self.founding.review(self.bank, self.memory, self.novelty)
                break
            self._waiting = batch = self.memory.add(batch.rows(is_new))
            self._sleep_if_due()
        self._waiting = None

    def _sleep_if_due(self) -> None:
        # A sleep that was interrupted need not have a full memory.
        while self.memory.size >= self.memory.capacity or self.bank.train(0) < 1:
            self._found(self.founding.sleep)

    def _found(self, way: Callable[..., SampleBatch | None]) -> None:
        """Makes an expert of the memory, in one of founding's ways, and finds its place."""
        waiting = self.memory.batch() if len(self.memory) else None
        made_of = way(self.bank, self.memory, self.novelty, self._report)
        places, y = self.places, None if made_of is None else made_of.y
        if places is not None and waiting is not None and y is not None and self.n_experts > len(places.of_experts):
            self.events.follow(self.n_experts)
            places.founded(waiting.samples.x.cpu().double().numpy(), y.numpy())

    def settle(self) -> None:
        """Finishes work that was interrupted: a sleep, and samples that had to wait for it."""
        self._sleep_if_due()
        if self._waiting is not None:
            self._learn(self._waiting)

    @one_thread()
    def catch_up(self) -> None:
        """Has the experts learn the rows that wait for each other."""
        self.settle()
        self._learn(self.arrivals.release())
        self.events.follow(self.n_experts)

    @one_thread()
    def consolidate(self) -> None:
        """Sleeps now on the samples in the memory, whether it is full or not; it is empty afterwards."""
        self.catch_up()
        while len(self.memory):
            self._found(self.founding.consolidate)
        self.arrivals.settle()

    def finish(self) -> None:
        """Makes answers exact from now on, until more is learned."""
        self.catch_up()
        self._is_exact = True
        self.arrivals.settle()

    # Answers

    @property
    def n_experts(self) -> int:
        """Number of experts that are ready."""
        return len(self.bank.counts)

    @property
    def counts(self) -> Tensor:
        """Samples that each expert has learned, (n_experts,), float64."""
        return self.bank.counts

    def prepare(self, x: Tensor) -> Prepared:
        x = admit_x(x, self.input_shape)
        return Prepared(x, list(self.bank.open(x)))

    def predict_log_proba(
        self, x: Inputs, *, exact: bool = False, when: When = "now", since: Sequence[int] = ()
    ) -> Tensor:
        """Returns log-probabilities of the classes, (batch, n_classes).

        Args:
            x: Inputs, (batch, *input_shape), or prepared ones.
            exact: Whether what experts share is brought up to date first, which may be costly. Otherwise it is as old
                as its last renewal, which follows a schedule, while what is an expert's own is up to date.
            when: "now" asks for the rule that holds now, "any" as if any time of the stream were equally likely,
                "next" for the rows that come next, which the labels before tell something of. They are the same where
                the experts answer themselves.
            since: Labels of rows that have come and were not learned yet, for "next".
        """
        n = max(1, self.n_known_classes)
        if (told := self._told_by_pools(x, when, since, for_classes=True)) is not None:
            return told if told.shape[1] == n else torch.nn.functional.pad(told, (0, n - told.shape[1]), value=_NEVER)
        return self._answers.predict_log_proba(self._asked(x), n, exact=exact or self._is_exact)

    def predict_for(self, x: Inputs, when: Literal["next", "any"], *, values: bool = False) -> Tensor:
        return self.predict_moments(x, when=when) if values else self.predict_log_proba(x, when=when)

    def predict_moments(self, x: Inputs, *, exact: bool = False, when: When = "now") -> Tensor:
        """Returns mean and variance of every target, (batch, 2, n_outputs), for target='values'.

        Args:
            x: Inputs, (batch, *input_shape), or prepared ones.
            exact: See :meth:`predict_log_proba`.
            when: See :meth:`predict_log_proba`.
        """
        if (told := self._told_by_pools(x, when, (), for_classes=False)) is not None:
            return told
        return self._answers.predict_moments(self._asked(x), exact=exact or self._is_exact)

    def _told_by_pools(self, x: Inputs, when: When, since: Sequence[int], *, for_classes: bool) -> Tensor | None:
        """Returns what pools answer, (batch, ...); None where there are none, or they cannot answer that yet."""
        if type(when) not in (str, np.str_) or when not in ("now", "next", "any"):
            raise ValueError(f"when is 'now', 'next' or 'any'; got {when if type(when) is str else type(when)!r}")
        places = self.places
        if places is None or not places.is_ready or places.pools[0].for_classes != for_classes:
            return None
        rows = x.x if isinstance(x, Prepared) else admit_x(x, self.input_shape)
        return torch.from_numpy(places.answer(rows.cpu().numpy().astype(np.float64), when, since)).to(self.device)

    @property
    def describes_x(self) -> bool:
        return self.bank.density_of != "features"

    def log_prob(self, x: Inputs, *, exact: bool = False) -> Tensor:
        return self._answers.log_prob(self._asked(x), exact=exact or self._is_exact)

    def expert_log_proba(self, x: Inputs) -> Tensor:
        """Returns the log-probability that each expert is responsible for x alone, (batch, n_experts)."""
        return self._answers.expert_log_proba(self._asked(x), exact=self._is_exact)

    def responsible_log_proba(self, x: Inputs) -> Tensor:
        """Returns the log-probability that each expert or, last, the memory answers for x, (batch, n_experts + 1)."""
        return self._answers.responsible(self._asked(x), exact=self._is_exact)

    def expert_predict_log_proba(self, x: Inputs) -> Tensor:
        """Returns log-probabilities of the classes by each expert, (batch, n_experts, n_classes)."""
        return self._answers.expert_predictive(self._asked(x), exact=self._is_exact)

    def log_joint(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Returns log p(x, y | k) as routing sees it, (n, n_experts).

        Args:
            x: The data, (n, *input_shape).
            y: Its targets, (n, ...), or None.
        """
        return log_joint(self.bank, self._given(x, y))

    def sample(self, n: int, *, seed: int = 0, expert: int | None = None) -> tuple[Tensor, Tensor | None, Tensor]:
        """Draws (x, y) pairs (appendix G): an expert by its count, x from its density, y from its predictor.

        Args:
            n: Number of samples.
            seed: Determines the draws; the learner itself is not changed.
            expert: Draws from this expert alone.

        Returns:
            x (n, *input_shape), y (n,) or (n, n_outputs) or None, and the index of the expert of each, (n,).
        """
        return self._answers.sample(n, seed=seed, expert=expert)

    # Pruning

    @one_thread()
    def similarity(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Returns the cosine similarity of the experts' log-likelihoods of given data, (n_experts, n_experts).

        Args:
            x: The data, (n, *input_shape).
            y: Its targets, (n, ...), or None.
        """
        return similarity(self.log_joint(x, y))

    @one_thread()
    def prune(self, x: Tensor, y: Tensor | None = None, *, threshold: float = 0.9) -> list[Merge]:
        """Removes experts that are redundant on given data; see :func:`cndpm.model.pruning.prune`.

        Args:
            x: The data, (n, *input_shape).
            y: Its targets.
            threshold: Pairs of experts that are less similar are left alone.

        Returns:
            The merges, in the numbering of the experts before pruning.
        """
        self.events.follow(self.n_experts)
        parts = (self.bank, self.novelty, self.events, self._given(x, y))
        return prune(*parts, threshold=threshold, classes=self._has_labels)

    # What is kept

    def footprint(self) -> Footprint:
        kept = self.bank.footprint()
        n_samples, n_bytes = kept.memory_samples + len(self.memory), kept.memory_bytes + self.memory.n_bytes
        return self.arrivals.added_to(replace(kept, memory_samples=n_samples, memory_bytes=n_bytes))

    def describe(self) -> dict[str, Any]:
        """Returns ``expert_counts``, ``memory_classes``, samples in the memory by class, ``n_in_memory``, and more.

        See :meth:`cndpm.model.arrivals.Arrivals.describe`, and that of the bank.
        """
        y = self.memory.batch().y if len(self.memory) else None
        classes = None if y is None or y.is_floating_point() else torch.bincount(y).tolist()
        counts = [round(n, 2) for n in self.counts.tolist()]
        own = {"expert_counts": counts, "memory_classes": classes, "n_in_memory": len(self.memory)}
        return {**own, **self.bank.describe(), **self.arrivals.describe()}

    @torch.no_grad()
    def portray(self, x: Tensor, y: Tensor | None, *, seed: int) -> Portrait | None:
        """Draws a portrait; None while there is no expert.

        Args:
            x: The data, (n, *input_shape).
            y: Its targets, (n, ...), or None.
            seed: Determines the draws; the learner itself is not changed.
        """
        if not self.n_experts:
            return None
        alike, shape = self.similarity(x, y), self.input_shape
        return draw_portrait(self._answers, similarity=alike, counts=self.counts, input_shape=shape, seed=seed)

    def state_dict(self) -> State:
        self.events.follow(self.n_experts)
        return {
            "bank": self.bank.state_dict(),
            "memory": self.memory.state_dict(),
            "novelty": self.novelty.state_dict(),
            **self.arrivals.state_dict(),
            "n_known_classes": self.n_known_classes,
            "waiting": None if self._waiting is None else [self._waiting.samples.x.clone(), self._waiting.y],
            "is_exact": self._is_exact,
            "events": self.events.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        expect(state, {"n_known_classes": whole(self.n_classes or 0, self.n_classes or 1 << 31), "is_exact": flag()})
        facts = (self.settings.target, self.settings.n_outputs, state["n_known_classes"])
        check_kept(state["memory"], self.input_shape, facts)  # those of merged models may exceed the capacity
        if state["waiting"] is not None:
            check_kept(dict(zip("xy", state["waiting"], strict=True)), self.input_shape, facts)
        if len(state["latest"]) and tuple(state["latest"].shape[1:]) != self.input_shape:
            raise StateError(f"'latest' must be rows of {self.input_shape}; got {tuple(state['latest'].shape)}")
        self.bank.load_state_dict(state["bank"])
        self.memory.load_state_dict(state["memory"])
        self.novelty.load_state_dict(state["novelty"])
        if self.novelty.n_judged not in (None, self.n_experts):
            raise StateError(f"novelty is of {self.novelty.n_judged} experts; there are {self.n_experts}")
        self.arrivals.load_state_dict(state, self.n_experts, lambda kept: check_kept(kept, self.input_shape, facts))
        self.n_known_classes, self._is_exact, self._waiting = state["n_known_classes"], state["is_exact"], None
        self.events.load_state_dict(state["events"], n_experts=self.n_experts)
        if state["waiting"] is not None:
            x, y = state["waiting"]
            self._waiting = SampleBatch(Samples(x.to(self.device)), None if y is None else y.cpu())

    # Inside

    def _admit(self, x: Inputs, y: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Checks inputs, unless they were checked when they were prepared, and targets."""
        x, settings = x.x if isinstance(x, Prepared) else admit_x(x, self.input_shape), self.settings
        return x, admit_targets(y, x.shape[0], settings.target, settings.n_outputs, self.n_classes)

    def _given(self, x: Tensor, y: Tensor | None) -> SampleBatch:
        x, y = self._admit(x, y)
        return SampleBatch(Samples(x.to(self.device)), y)

    def _asked(self, x: Inputs) -> Iterable[Samples]:
        asked: Iterable[Samples] = x.kept if isinstance(x, Prepared) else self.bank.open(admit_x(x, self.input_shape))
        return asked

    def _log_weighted(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns log N_k + log p(x | k) of rows (n, d), (n, K)."""
        if not len(x):
            return np.zeros((0, self.n_experts))
        rows = torch.from_numpy(x.astype(np.float32)).to(self.device)
        with torch.no_grad(), one_thread():
            log_density = [self.bank.log_density(samples, exact=False).cpu() for samples in self.bank.open(rows)]
        return (torch.cat(log_density).double() + self.counts.log()).numpy()

    def meet(self, n_classes: int) -> None:
        """Makes room for class indices below `n_classes`."""
        if n_classes > self.n_known_classes:
            self.n_known_classes = n_classes
            self.bank.admit(n_classes)

    def _report_rule(self, kind: str, place: int) -> None:
        assert self.places is not None
        self.events.rule(kind, self.places.of_experts.index(place) if place in self.places.of_experts else 0)

    def _report(self, fraction: float) -> None:
        if self.on_progress is not None:
            self.on_progress("sleep", fraction)
