"""The settings of CN-DPM as a whole, and those of novelty: how it is decided that data is new."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from cndpm.model.founding import AlwaysFound, EarnedFounding, Founding
from cndpm.model.learned_level import LearnedLevel
from cndpm.model.novelty import FixedLevel, Novelty, TaskLabels
from cndpm.model.settings.facts import Section, Target
from cndpm.model.settings.features import AutoFeatures
from cndpm.model.settings.gaussian import GaussianExperts, GaussiansAlone, GaussiansAndNetworks
from cndpm.model.settings.network_kinds import OwnPredictor
from cndpm.model.settings.neural import GaussianSelection, NeuralExperts
from cndpm.model.settings.pool_kinds import AutoRepresentations, OneRepresentation, PooledRepresentations
from cndpm.model.settings.setting_tree import places
from cndpm.model.settings.spelling import nest

__all__ = ["PAPER", "CNDPMSettings"]


PAPER: Mapping[str, Any] = {"experts": "neural", "novelty": {"kind": "fixed", "log_alpha": -400.0}, "anytime": False}
"""What the paper does otherwise; all else that neural experts need is its Split-MNIST classification by default."""


Parts = tuple[Novelty, Founding]


class AutoNovelty(Section):
    """Has the model set its own level of novelty as it learns, and found experts that earn their place."""

    kind: Literal["auto"] = Field(default="auto", description="the concentration is set by the model as it learns")
    novelty_rate: float = Field(default=0.01, ge=1e-9, lt=0.5, description="how often a known sample may be called new")
    novelty_window: int = Field(default=10, ge=1, le=1_000_000, description="consecutive samples judged together")

    def build(self, *, has_labels: bool, at_end_of_task: Callable[[], None]) -> Parts:
        """Makes the parts that decide which samples are new and found experts."""
        level = LearnedLevel(novelty_rate=self.novelty_rate, window=self.novelty_window)
        return level, EarnedFounding(for_labels=has_labels)


class FixedNovelty(Section):
    """Follows the paper: one concentration, set by hand; every full memory becomes an expert."""

    kind: Literal["fixed"] = Field(default="fixed", description="the concentration is set by hand, as in the paper")
    log_alpha: float = Field(
        default=-400.0, allow_inf_nan=False, description="log concentration: how readily data is new"
    )

    def build(self, *, has_labels: bool, at_end_of_task: Callable[[], None]) -> Parts:
        return FixedLevel(self.log_alpha), AlwaysFound()


class TaskNovelty(Section):
    """Has task labels tell in training which samples are new (appendix E of the paper)."""

    kind: Literal["tasks"] = Field(default="tasks", description="task labels tell in training; for cndpm-tasks")

    def build(self, *, has_labels: bool, at_end_of_task: Callable[[], None]) -> Parts:
        return TaskLabels(at_end_of_task), AlwaysFound()


class CNDPMSettings(Section):
    """Everything that can be set about CN-DPM.

    The defaults serve without tuning: closed-form experts, a concentration of the model's own, answers from the first
    batch. :meth:`paper` is the paper's configuration. Settings of a kind that is not chosen are refused.

    Example:
        >>> CNDPMSettings().experts.kind
        'gaussian'
        >>> settings = CNDPMSettings(experts="neural", latent_dim=8, log_alpha=-600)
        >>> settings.experts.density.latent_dim, settings.novelty.log_alpha
        (8, -600.0)
        >>> nested = {"kind": "neural", "density": {"kind": "vae", "latent_dim": 8}}
        >>> settings == CNDPMSettings(experts=nested, novelty={"kind": "fixed", "log_alpha": -600})
        True
    """

    target: Target = Field(
        default="classes", description="what y is: class indices, real values (regression), or absent (density only)"
    )
    n_outputs: int = Field(default=1, ge=1, description="number of real-valued targets, for target='values'")
    memory_size: int = Field(default=500, ge=1, description="capacity M of the short-term memory, in samples")
    max_experts: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        default="auto", description="the most experts there may be; 'auto': as many as take half of the device's memory"
    )
    at_limit: Literal["merge", "refuse"] = Field(
        default="merge",
        description="what happens there: the two most similar experts become one, or no more are founded; both warn",
    )
    anytime: bool = Field(default=True, description="whether what waits in the memory takes part in predictions")
    novelty: AutoNovelty | FixedNovelty | TaskNovelty = Field(
        default=AutoNovelty(), discriminator="kind", description="how it is decided that data is new"
    )
    experts: GaussianExperts | NeuralExperts = Field(
        default=GaussianExperts(), discriminator="kind", description="what an expert is"
    )
    representations: AutoRepresentations | OneRepresentation | PooledRepresentations = Field(
        default=AutoRepresentations(), discriminator="kind", description="what answers for rows with targets"
    )

    @property
    def most_experts(self) -> int | None:
        """The most experts there may be; None for as many as the memory of their device allows."""
        return None if self.max_experts == "auto" else self.max_experts

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Returns the paper's settings of Split-MNIST classification, with changes in any spelling.

        Example:
            >>> CNDPMSettings.paper(log_alpha=-600).novelty
            FixedNovelty(kind='fixed', log_alpha=-600.0)
        """
        return cls.model_validate(cls.merge(PAPER, changes))

    def changed(self, **changes: Any) -> Self:
        """Returns these settings with changes in any spelling; a section whose kind changes starts anew.

        Example:
            >>> CNDPMSettings(memory_size=100).changed(features="fourier").memory_size
            100
        """
        return self.model_validate(self.merge(self.model_dump(), changes))

    @property
    def is_plain(self) -> bool:
        """Whether experts, features and novelty are those of the default."""
        experts = self.experts
        return (
            isinstance(experts, GaussianExperts)
            and isinstance(experts.features, AutoFeatures)
            and isinstance(experts.classifier, GaussiansAlone)
            and isinstance(self.novelty, AutoNovelty)
            and self.anytime
        )

    @classmethod
    def merge(cls, base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        """Returns nested settings, not yet validated, with changes applied, both in any spelling.

        Args:
            base: Settings that need not be complete.
            changes: They win. A section whose kind they change starts anew.
        """
        return nest(cls, changes, nest(cls, base))

    @classmethod
    def names(cls) -> list[str]:
        """Returns the names of all settings that can be given alone, of all kinds."""
        return [name for name, found in places(cls).items() if any(place.by_name for place in found)]

    @classmethod
    def respelt(cls, values: dict[str, Any]) -> dict[str, Any]:
        if "log_alpha" not in values or ("novelty" in values and values["log_alpha"] != "auto"):
            return values
        log_alpha = values.pop("log_alpha")
        chosen = "auto" if log_alpha == "auto" else {"kind": "fixed", "log_alpha": log_alpha}
        return {**values, "novelty": _agreeing(values.get("novelty", chosen), chosen)}

    @model_validator(mode="after")
    def _outputs_are_values(self) -> Self:
        if self.n_outputs != 1 and self.target != "values":
            raise ValueError(
                f"n_outputs is for target='values'; got n_outputs={self.n_outputs} and target={self.target!r}. "
                "Set target='values', or leave it out."
            )
        return self

    @model_validator(mode="after")
    def _gaussians_suit_the_target(self) -> Self:
        if not isinstance(self.experts, GaussianExperts):
            return self
        if isinstance(self.experts.classifier, GaussiansAndNetworks) and self.target != "classes":
            raise ValueError(
                "classifier='both' puts networks beside Gaussians for class labels: it needs target='classes'; got "
                f"target={self.target!r}. Leave classifier out."
            )
        if self.experts.covariance != "auto" and self.target == "values":
            raise ValueError(
                f"covariance={self.experts.covariance!r} is for target='classes' or 'none'; got target='values', where "
                "every expert has its own. Leave it out."
            )
        return self

    @model_validator(mode="after")
    def _networks_suit_the_target(self) -> Self:
        if not isinstance(self.experts, NeuralExperts):
            return self
        if isinstance(self.experts.selection, GaussianSelection) and self.target != "none":
            raise ValueError(
                f"selection='gaussian' is for unlabelled streams (target='none'); got target={self.target!r}. "
                "With labels, experts='gaussian' select and answer by themselves."
            )
        if isinstance(self.experts.predictor, OwnPredictor) and self.target == "none":
            raise ValueError(
                "predictor_class is for labelled streams; got target='none', where nothing is predicted. Leave it out."
            )
        return self


def _agreeing(novelty: Any, chosen: Any) -> Any:
    """Returns `novelty` where ``log_alpha="auto"`` says the same."""
    kind = novelty.get("kind", "auto") if isinstance(novelty, Mapping) else getattr(novelty, "kind", novelty)
    if chosen == "auto" and kind != "auto":
        raise ValueError(f"log_alpha='auto' means novelty='auto'; got novelty={kind!r} too. Leave one of them out.")
    return novelty
