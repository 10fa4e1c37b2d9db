"""The configuration of one run: typed, documented, ranges checked, unknown names refused, saved with the run.

    config = configure("split-mnist", learner="cndpm", preset="paper", seed=3, overrides=["learner.log_alpha=-600"])

Sections that ``--set`` can reach: ``scenario`` (the recipe), ``learner`` (the learner's own settings) and ``run``
(evaluation, checkpoints, logging).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError

from cndpm.experiments.learners import LEARNERS, learner_class
from cndpm.experiments.overrides import ConfigError, describe_errors, parse_overrides, validate, validate_changed
from cndpm.experiments.presets import preset_settings
from cndpm.learner import Learner, LearnerSettings, MixtureLearner, TaskBasedLearner
from cndpm.model.expert_mixture import ExpertMixture
from cndpm.names import UnknownNameError
from cndpm.streams import Scenario, Stream, load_scenario

__all__ = ["SECTIONS", "RunConfig", "RunSettings", "completed", "configure", "resolve_device"]

SECTIONS = ("scenario", "learner", "run")
_ENDLESS = "this stream is endless; say when to stop with --set run.max_batches=N"
_SCENARIO_OPTIONS = ("epochs", "repeats", "fraction", "batch_size", "class_order")


class RunSettings(BaseModel):
    """How a run is watched and kept; none of it changes what is learned.

    Attributes:
        evaluations: Evaluations spread evenly over the stream, beside one at the end of every stage.
        evaluation_samples: Evaluate on a fixed subsample of this size, except at the end; None: on all test data.
        evaluation_batch_size: Samples evaluated at once.
        log_points: Lines of progress (experts, parameters, memory, time) spread evenly over the stream.
        checkpoint_seconds: A checkpoint at least this often, between batches, beside one when all is learned.
        max_batches: Ends the stream early; endless streams need it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    evaluations: int = Field(default=10, ge=0)
    evaluation_samples: int | None = Field(default=None, ge=1)
    evaluation_batch_size: int = Field(default=500, ge=1)
    log_points: int = Field(default=100, ge=1)
    checkpoint_seconds: float = Field(default=60.0, ge=0)
    max_batches: int | None = Field(default=None, ge=1)


class RunConfig(BaseModel):
    """Everything that determines a run. Two runs with the same configuration learn the same, bit by bit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: Scenario
    learner: str
    preset: str
    settings: SerializeAsAny[LearnerSettings]
    run: RunSettings = RunSettings()
    seed: int = Field(default=0, ge=0)
    device: str = "cpu"

    @property
    def is_task_based(self) -> bool:
        """Whether the learner's type asks to be told where tasks begin and end."""
        return issubclass(learner_class(self.learner), TaskBasedLearner)

    @property
    def is_mixture(self) -> bool:
        """Whether the learner's type can say which of its experts answers."""
        return issubclass(learner_class(self.learner), MixtureLearner)

    @property
    def is_expert_mixture(self) -> bool:
        """Whether the learner's type has experts with counts and a memory, and can be drawn from."""
        return issubclass(learner_class(self.learner), ExpertMixture)

    def build_learner(self, stream: Stream) -> Learner:
        """The learner, before it has seen anything."""
        return learner_class(self.learner)(
            self.settings,
            input_shape=stream.input_shape,
            n_classes=stream.n_classes,
            seed=self.seed,
            device=self.device,
        )

    def n_batches(self, stream: Stream) -> int:
        """How many batches the run takes from the stream."""
        limits = [n for n in (stream.n_batches, self.run.max_batches) if n is not None]
        if not limits:
            raise ConfigError(_ENDLESS)
        return min(limits)

    def to_json(self) -> dict[str, Any]:
        """The whole configuration as plain values."""
        values: dict[str, Any] = self.model_dump(mode="json")
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunConfig:
        """Reads what :meth:`to_json` returned, e.g. the configuration in a record."""
        kind = learner_class(values["learner"]).Settings
        settings = validate(kind, kind.from_record(values["settings"]), "learner")
        return validate(cls, {**values, "settings": settings}, "config")


def completed(values: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded configuration with what has come since at its default, which means what was done before.

    One that this version cannot read, e.g. of a learner that is not registered here, is returned as it is.
    """
    try:
        return RunConfig.from_json(values).to_json()
    except (ValueError, KeyError, TypeError):
        return dict(values)


def configure(
    scenario: str,
    *,
    learner: str = "cndpm",
    preset: str = "default",
    seed: int = 0,
    device: str = "auto",
    overrides: Iterable[str] = (),
    **options: Any,
) -> RunConfig:
    """Resolves names, presets and overrides into one configuration.

    Args:
        scenario: Name of a scenario, or the path of a scenario file.
        learner: Name of a learner.
        preset: Name of the settings to start from.
        seed: Determines the stream and the learner.
        device: "auto" is the GPU if there is one.
        overrides: ``SECTION.FIELD=VALUE``, applied last.
        **options: Of the scenario: epochs, repeats, fraction, batch_size, class_order; None leaves its own value.

    Raises:
        UnknownNameError: A name does not exist; the nearest are suggested.
        ConfigError: A value is not allowed.
    """
    sections = parse_overrides(overrides, SECTIONS)
    recipe = _resolve_scenario(scenario, options, sections["scenario"])
    if learner not in LEARNERS:
        raise UnknownNameError("learner", learner, LEARNERS)
    run = validate(RunSettings, sections["run"], "run")
    if recipe.endless and run.max_batches is None:
        raise ConfigError(_ENDLESS)
    preset_values = preset_settings(preset, learner, recipe.name, labelled=recipe.labelled)
    return RunConfig(
        scenario=recipe,
        learner=learner,
        preset=preset,
        settings=validate_changed(learner_class(learner).Settings, preset_values, sections["learner"]),
        run=run,
        seed=seed,
        device=resolve_device(device),
    )


def resolve_device(name: str) -> str:
    """The device meant by `name`, checked to be there."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device must be auto, cpu, cuda or cuda:N; got {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {name!r} was asked for, but torch sees no GPU here; use --device cpu")
    return name


def _resolve_scenario(name: str, options: Mapping[str, Any], overrides: dict[str, Any]) -> Scenario:
    chosen = {**options, **{key: value for key, value in overrides.items() if key in _SCENARIO_OPTIONS}}
    try:
        recipe = load_scenario(name, **{key: value for key, value in chosen.items() if value is not None})
    except ValidationError as error:
        raise ConfigError(describe_errors(error, "scenario")) from None
    fields = {key: value for key, value in overrides.items() if key not in _SCENARIO_OPTIONS}
    return validate(Scenario, LearnerSettings.merge(recipe.model_dump(), fields), "scenario") if fields else recipe
