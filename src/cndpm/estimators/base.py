"""The estimator that classifier, regressor and density derive from: parameters, input, device, learner.

Calls are whole or have no effect, and may come from many threads: see :mod:`cndpm.estimators.guarded`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar, dataclass_transform

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from cndpm.devices import resolve_device
from cndpm.estimators.arrays import whole_number
from cndpm.estimators.explanation import mixture_html
from cndpm.estimators.guarded import answers, changes
from cndpm.estimators.journal import Step, consolidate, learning, pruning
from cndpm.estimators.missing import Completions, log_mean_over, mean_over
from cndpm.estimators.parameters import (
    SEPARATOR,
    changed_settings,
    check_names,
    check_parameters,
    check_unchanged,
    feature_map_of,
    leaves,
    validated_settings,
)
from cndpm.estimators.reading import Reading
from cndpm.estimators.saved import Saved
from cndpm.estimators.weights import FEW, few_in_order, times_learned
from cndpm.mixture import Merge
from cndpm.model.cndpm import CNDPM
from cndpm.model.events import Event
from cndpm.model.merging import with_same_representation
from cndpm.model.settings import PAPER, CNDPMSettings, CustomDensity, CustomPredictor
from cndpm.model.watch import Watch
from cndpm.names import UnknownNameError

__all__ = ["Estimator"]

E = TypeVar("E", bound="Saved")

Times = NDArray[np.int64] | None
"""How often each sample is learned, (n,); None where each is once."""

_SEEDS = np.iinfo(np.int32).max

_ALWAYS = ("batch_size", "class_weight", "false_alarm_rate", "verbose")
"""Parameters that may change while a model learns; they count from the next call on."""


def _describes_x(estimator: Estimator) -> bool:
    """Returns True where the experts of a fitted estimator model x itself; else raises AttributeError.

    They model features of it, then, which is why the method that asks is not there.
    """
    if hasattr(estimator, "learner_") and not estimator.learner_.describes_x:
        raise AttributeError(
            f"the experts of this {type(estimator).__name__} model features of x, not x itself, so x has no density. "
            "Use settings={'features': 'identity'}, neural experts or CNDPMDensity."
        )
    return True


def _signature(estimator: type) -> inspect.Signature:
    made = inspect.signature(estimator.__init__)  # type: ignore[misc]
    return made.replace(parameters=list(made.parameters.values())[1:])


@dataclass_transform(kw_only_default=True)
def declared(estimator: type[E]) -> type[E]:
    """Makes the fields of an estimator, and of those that it derives from, the parameters of its constructor.

    Its docstring gets the arguments of `Estimator` behind its own.
    """
    made = dataclass(kw_only=True, eq=False, repr=False)(estimator)
    made.__signature__ = _signature(made)
    if made.__doc__ and "memory_size:" not in made.__doc__:
        arguments = (Estimator.__doc__ or "").partition("Args:")[2].partition("\n\n")[0]
        made.__doc__ = made.__doc__.replace("\n\n    Example:", f"{arguments}\n\n    Example:", 1)
    return made


@declared
class Estimator(Reading):
    """Holds parameters and a learner, whatever y is; abstract.

    Args:
        memory_size: Samples gathered before a new expert is made of them.
        log_alpha: Log concentration: how readily data counts as new; "auto" is set by the model as it learns.
        batch_size: Samples that `fit` and `partial_fit` learn at once.
        input_shape: Shape of one sample where it is not a row, e.g. ``(1, 28, 28)``; X may come flat or in shape.
        density: A density class of one's own, for neural experts.
        predictor: A predictor class of one's own, for neural experts; densities have none.
        features: A frozen torch module or a function of arrays, on whose outputs Gaussian experts work. A pretrained
            network by name is a setting: ``settings={"features": "backbone"}``.
        settings: Any other setting, by name: see :class:`cndpm.model.settings.CNDPMSettings`.
        n_exemplars: Rows kept as examples of what is known, by which `novelty` judges others; 0 keeps none.
        n_projected: Numbers that sparse rows of more columns are projected to.
        device: "auto", "cpu", "cuda" or another torch device.
        random_state: Seed of every random choice.
        verbose: Whether calls that learn for more than a second say on standard error how far they are.

    Example:
        >>> import numpy as np
        >>> from cndpm import CNDPMDensity
        >>> CNDPMDensity(random_state=0).fit(np.random.default_rng(0).normal(size=(60, 2))).n_experts_
        1
    """

    memory_size: int = 500
    log_alpha: float | Literal["auto"] = "auto"
    batch_size: int = 10
    input_shape: tuple[int, ...] | None = None
    density: CustomDensity | None = None
    predictor: CustomPredictor | None = None
    features: nn.Module | Callable[[Any], Any] | None = None
    settings: dict[str, Any] | None = None
    n_exemplars: int = 1000
    n_projected: int = 256
    device: str = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__signature__ = _signature(cls)  # what tools see of a class is its __new__ otherwise

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Refuses names that are no parameters, with those that look alike."""
        check_names(cls, given)
        made: Self = super().__new__(cls)
        return made

    # What was learned

    @property
    @answers
    def n_experts_(self) -> int:
        """Number of experts made so far."""
        check_is_fitted(self, "learner_")
        return self.learner_.n_experts

    @property
    @answers
    def counts_(self) -> NDArray[np.float64]:
        """Samples that each expert has learned, (n_experts,)."""
        check_is_fitted(self, "learner_")
        return self.learner_.counts.cpu().numpy()

    @property
    @answers
    def events_(self) -> list[Event]:
        """The latest 1,000 events of the experts in order, with the sample's number: founded, returned and so on."""
        check_is_fitted(self, "learner_")
        return list(self.learner_.events.events)

    @answers
    def novelty(self, X: ArrayLike | Tensor) -> NDArray[np.float64]:
        """Returns how new each row is, (n,).

        It is the negative log of the share of known rows that look at least as strange: 0 for the most ordinary, above
        log 20 = 3.0 for one known row in twenty, above log 100 = 4.6 for one in a hundred, whatever the data and at any
        time. Known rows are `n_exemplars` of those learned: half of them the latest, half chosen at random.
        """
        x, ways = self._asked(X)
        return mean_over(ways, self._watch().novelty(x))

    @available_if(_describes_x)  # type: ignore[untyped-decorator]
    @answers
    def score_samples(self, X: ArrayLike | Tensor) -> NDArray[np.float64]:
        """Returns the log density of each sample under the mixture, (n,): low where it is unlike anything learned.

        Not there where the experts model features of x, not x itself, as those of the default do.
        """
        x, ways = self._asked(X)
        return log_mean_over(ways, self.learner_.log_prob(x).cpu().numpy())

    @changes
    def consolidate(self) -> Self:
        """Sleeps now on whatever the memory holds, and brings all that answers depend on up to date.

        What was provisional becomes an expert where it earns one. Answers are exact until more is learned.
        """
        check_is_fitted(self, "learner_")
        self._apply(Step(lambda learner, _: consolidate(learner)))
        return self

    @changes
    def prune(self, X: ArrayLike | Tensor, y: Any = None, *, threshold: float = 0.9) -> list[Merge]:
        """Removes experts that are redundant on given data and returns the merges, in the numbering before.

        Args:
            X: (n, n_features), or (n, *input_shape).
            y: (n,) labels that were met before; targets, (n,) or (n, n_outputs); ignored by densities.
            threshold: Pairs of experts that are less similar are left alone; see :func:`cndpm.model.pruning.prune`.
        """
        check_is_fitted(self, "learner_")
        x, targets = self._read_pair(X, y, reset=False)
        merges: list[Merge] = self._apply(pruning(x, self._known_targets(targets), threshold))
        return merges

    @answers
    def sample(self, n_samples: int = 1, *, random_state: int = 0) -> tuple[NDArray[np.float32], NDArray[Any]]:
        """Draws samples from the mixture, in the shape of the input, and their labels, targets or, without, experts.

        Args:
            n_samples: Number of samples.
            random_state: Determines the draws; the model is not changed.
        """
        check_is_fitted(self, "learner_")
        n = whole_number(n_samples, "n_samples", least=1, most=1 << 31)
        seed = whole_number(random_state, "random_state", least=0, most=(1 << 63) - 1)
        x, y, experts = self.learner_.sample(n, seed=seed)
        return x.cpu().numpy(), self._drawn(y, experts)

    @classmethod
    def paper(cls, *, log_alpha: float = -400.0, settings: dict[str, Any] | None = None, **parameters: Any) -> Self:
        """Makes an estimator with the paper's configuration: neural experts, a fixed concentration, experts alone.

        Args:
            log_alpha: Log concentration; the paper's values reach from -450 to 410, one for each dataset.
            settings: Further settings; the defaults are those of Split-MNIST.
            parameters: As for the class.
        """
        papers = {name: value for name, value in PAPER.items() if name != "novelty"}
        return cls(log_alpha=log_alpha, settings=changed_settings(papers, settings or {}), **parameters)

    # Parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the parameters; where `deep`, settings that were given also by their own names (settings__NAME)."""
        params: dict[str, Any] = super().get_params(deep=deep)
        is_given = deep and isinstance(self.settings, dict)
        return params | (leaves(self.settings or {}, "settings") if is_given else {})

    def set_params(self, **params: Any) -> Self:
        """Sets parameters, and settings by their own names (settings__NAME).

        Once learning has begun only `batch_size` may change; for others the next `partial_fit` raises.
        """
        known, own = self._get_param_names(), f"settings{SEPARATOR}"
        nested = {name.removeprefix(own): value for name, value in params.items() if name.startswith(own)}
        plain = {name: value for name, value in params.items() if not name.startswith(own)}
        for name in plain:
            if name not in known:
                settings = [own + setting for setting in CNDPMSettings.names() if setting == name]
                raise UnknownNameError(f"parameter of {type(self).__name__} called", name, settings or known)
        if nested:
            plain["settings"] = changed_settings(plain.get("settings", self.settings), nested)
        self.__dict__.update(plain)  # all at once
        return self

    @answers
    def _html_repr(self) -> str:
        """Shows the parameters and, once fitted, the experts in a notebook."""
        shown: str = super()._html_repr()
        if not hasattr(self, "learner_"):
            return shown
        memory = (len(self.learner_.memory), self.learner_.memory.capacity)
        return shown + mixture_html(type(self).__name__, self.counts_.tolist(), memory=memory)

    @answers
    def with_same_representation(self) -> Self:
        """Returns a model that has learned nothing but represents samples as this one does, for :func:`cndpm.merge`.

        What the first memory fixes, such as fitted features, is taken over, and so are labels met so far.
        """
        check_is_fitted(self, "learner_")
        learner = with_same_representation(self.learner_)
        blank: Self = clone(self)
        exported = self._exported()
        counts = [0] * len(exported.get("labels", ()))
        blank._import({**exported, "learner": learner.state_dict(), "label_counts": counts})
        return blank

    # Inside

    def _check(self, *, anew: bool) -> None:
        """Checks all parameters, before anything changes; those that learning began with have been checked then."""
        if not anew and self._is_as_begun():
            return
        check_parameters(self.get_params(deep=False))
        check_random_state(self.random_state)
        self._settings()
        if not anew:
            check_unchanged(self._begun_with, vars(self))

    def _is_as_begun(self) -> bool:
        """Returns whether parameters are the very ones that learning began with, and the others plain and in range."""
        now = vars(self)
        for name, then in self._begun_with.items():
            if now[name] is not then and (name != "settings" or now[name] != then):
                return False
        size, rate = self.batch_size, now.get("false_alarm_rate", 0.5)
        return type(size) is int and size >= 1 and type(rate) is float and 0 < rate < 1

    def _settings(self, n_outputs: int = 1) -> CNDPMSettings:
        facts = {"target": self._target} | ({"n_outputs": n_outputs} if self._target == "values" else {})
        return validated_settings(self.settings, facts, memory_size=self.memory_size, log_alpha=self.log_alpha)

    def _make_learner(
        self, *, n_classes: int | None = None, n_outputs: int = 1, settings: CNDPMSettings | None = None
    ) -> CNDPM:
        self._begun_with = {
            name: deepcopy(value) if name == "settings" else value
            for name, value in self.get_params(deep=False).items()
            if name not in _ALWAYS
        }
        return self._new_learner(settings or self._settings(n_outputs), n_classes)

    def _new_learner(self, settings: CNDPMSettings, n_classes: int | None) -> CNDPM:
        begun = self._begun_with
        return CNDPM(
            settings,
            input_shape=self._input_shape(),
            n_classes=n_classes,
            seed=self._seed,
            device=resolve_device(begun["device"]),
            density=begun["density"],
            predictor=begun["predictor"],
            feature_map=feature_map_of(begun["features"]),
            n_exemplars=begun["n_exemplars"],
        )

    def _restored_learner(self) -> CNDPM:
        return self._new_learner(self._learner.settings, self._learner.n_classes)

    def _teach(self, X: Any, y: Any = None, sample_weight: Any = None, **given: Any) -> Self:
        """Learns the next samples of the stream, or the first."""
        if not hasattr(self, "learner_"):
            self._adopt(self._fresh(X, y, sample_weight, **given))
            return self
        self._check(anew=False)
        self._go_on(*self._weighted(sample_weight, *self._read_pair(X, y, reset=False)), **given)
        return self

    def _known_targets(self, targets: Any) -> Any:
        """Returns targets that were read as the learner takes them, none of them new."""
        return targets

    def _go_on(self, x: Tensor, targets: Any, times: Times) -> None:
        """Learns samples that are read and weighted."""
        self._learn(x, targets, times)

    def _teach_anew(self, X: Any, y: Any = None, sample_weight: Any = None, *, is_table: bool = True) -> Self:
        """Forgets everything, learns samples as a stream, and consolidates."""
        fresh = self._fresh(X, y, sample_weight, is_table=is_table)
        consolidate(fresh.learner_)
        self._adopt(fresh)
        return self

    def _fresh(self, X: Any, y: Any, sample_weight: Any, *, is_table: bool = False, **given: Any) -> Self:
        """Returns another estimator that has learned these samples and nothing else."""
        self._check(anew=True)
        fresh = self._blank()
        x, targets = fresh._read_pair(X, y, reset=True)
        fresh._start()
        x, targets, times = fresh._weighted(sample_weight, x, targets, is_table=is_table)
        targets = fresh._begin(targets, times, **given)
        learning(x, targets, fresh.batch_size, times, verbose=bool(self.verbose)).run(fresh._learner, None)
        return fresh

    def _start(self) -> None:
        """Fixes the seed, once, before the first batch; a generator that was given moves on when all is learned."""
        given = self.random_state
        random = deepcopy(given) if isinstance(given, np.random.RandomState) else check_random_state(given)
        self._seed = int(random.randint(_SEEDS))

    def _adopt(self, fresh: Self) -> None:
        random = self.random_state if isinstance(self.random_state, np.random.RandomState) else None
        before = None if random is None else random.get_state()
        try:
            if random is not None:
                random.randint(_SEEDS)
            super()._adopt(fresh)
        except BaseException:
            if random is not None and before is not None:
                random.set_state(before)
            raise

    def _watch(self) -> Watch:
        if self.learner_.watch is None:
            raise ValueError("n_exemplars=0 keeps no rows that others could be compared with; take 1000, the default")
        return self.learner_.watch

    def _responsible(self, x: Tensor, ways: Completions | None) -> dict[str, Any]:
        """Returns the expert most probably responsible for each row, its probability, and how new the row is."""
        shares = log_mean_over(ways, self.learner_.responsible_log_proba(x).cpu().numpy())
        expert, share = shares.argmax(axis=1), shares.max(axis=1)
        expert[(expert == self.n_experts_) | np.isinf(share)] = -1
        novelty = np.full(len(x), np.nan) if self.learner_.watch is None else self.learner_.watch.novelty(x)
        return {"expert": expert, "expert_proba": np.exp(share), "novelty": mean_over(ways, novelty)}

    def _weighted(self, sample_weight: Any, x: Tensor, y: Any, *, is_table: bool = False) -> tuple[Tensor, Any, Times]:
        """Returns samples, and how often each is learned by its weight; a first call must leave something to learn.

        Of a table weights are relative, and the order counts for nothing where it has few rows.
        """
        times: Times = None
        if sample_weight is not None:
            n_before = self._learner.events.n_samples if "_learner" in vars(self) else 0
            times = times_learned(sample_weight, x.numpy(), seed=self._seed, n_before=n_before, is_table=is_table)
            if not times.any() and "_learner" not in vars(self):
                raise ValueError("sample_weight leaves nothing to learn: all weights are next to 0. Raise one of them.")
            are_few = times.sum() <= FEW
            x, y = _taken(x, y, np.repeat(np.arange(len(times)), times if are_few else times > 0))
            times = None if are_few else times[times > 0]
        if is_table and times is None and (order := few_in_order(x.numpy(), y, seed=self._seed)) is not None:
            x, y = _taken(x, y, order)
        return x, y, times

    def _learn(self, x: Tensor, y: Tensor | None, times: Times = None, **attributes: Any) -> None:
        """Learns the next samples, with the attributes that go with them; nothing where weights leave none."""
        if x.shape[0]:
            self._apply(learning(x, y, self.batch_size, times, verbose=bool(self.verbose)), **attributes)


def _taken(x: Tensor, y: Any, at: NDArray[np.int64]) -> tuple[Tensor, Any]:
    """Returns the samples at some positions, and their targets."""
    return x[torch.from_numpy(at)], [y[i] for i in at] if isinstance(y, list) else y[at]
