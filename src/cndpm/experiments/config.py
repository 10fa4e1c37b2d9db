"""The configuration of one run: typed, documented, ranges checked, unknown names refused, saved with the run.

    config = configure("split-mnist", learner="cndpm", preset="paper", seed=3, overrides=["learner.log_alpha=-600"])

Sections that ``--set`` can reach: ``scenario`` (the recipe), ``learner`` (the learner's own settings) and ``run``
(evaluation, checkpoints, logging).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from cndpm.devices import resolve_device
from cndpm.experiments.learners import learner_class
from cndpm.experiments.overrides import parse_overrides, validate_changed
from cndpm.experiments.presets import preset_settings
from cndpm.experiments.schedule import ENDLESS
from cndpm.learner import Learner, LearnerSettings
from cndpm.streams import DriftScenario, Scenario, Stream, load_scenario
from cndpm.validation import ConfigError, validate

__all__ = ["RunConfig", "RunSettings", "configure"]

SECTIONS = ("scenario", "learner", "run")
"""The sections of a configuration, in the order in which they are resolved."""

_SCENARIO_OPTIONS = ("epochs", "repeats", "fraction", "batch_size", "class_order")


class RunSettings(BaseModel):
    """Settings of how a run is watched and kept; none of them changes what is learned, beyond rounding.

    Attributes:
        evaluations: Evaluations spread evenly over the stream, beside one at the end of every stage.
        evaluation_samples: Evaluate on a fixed subsample of this size, except at the end; None: on all test data.
        evaluation_batch_size: Samples evaluated at once.
        log_points: Lines of progress (experts, parameters, memory, time) spread evenly over the stream.
        checkpoint_seconds: A checkpoint at least this often, between batches, beside one when all is learned.
        max_batches: Ends the stream early; streams without a known end need it.
        prequential: Every batch is answered before it is learned, and the answers are scored. It is then learned by
            itself instead of in a block, which rounds otherwise.
        prequential_window: Samples of a window of these scores; None: 100, or more where that makes over 200 windows.

    Example:
        >>> RunSettings(evaluations=3).checkpoint_seconds
        60.0
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    evaluations: int = Field(default=10, ge=0)
    evaluation_samples: int | None = Field(default=None, ge=1)
    evaluation_batch_size: int = Field(default=500, ge=1)
    log_points: int = Field(default=100, ge=1)
    checkpoint_seconds: float = Field(default=60.0, ge=0)
    max_batches: int | None = Field(default=None, ge=1)
    prequential: bool = False
    prequential_window: int | None = Field(default=None, ge=1)


class RunConfig(BaseModel):
    """Everything that determines a run. Two runs with the same configuration learn the same, bit by bit.

    Attributes:
        scenario: The recipe of the stream.
        learner: Name of the learner, or ``package.module:Class``.
        preset: Name of the settings it started from.
        settings: The learner's own settings.
        run: How the run is watched and kept.
        seed: Determines the stream and the learner.
        device: Where data and learner live.

    Example:
        >>> config = configure("split-digits", learner="finetune", device="cpu")
        >>> learner = config.build_learner(config.scenario.build(seed=config.seed))
        >>> type(learner).__name__, learner.n_classes
        ('FineTune', 10)
        >>> RunConfig.from_json(config.to_json()) == config
        True
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: Scenario | DriftScenario
    learner: str
    preset: str
    settings: SerializeAsAny[LearnerSettings]
    run: RunSettings = RunSettings()
    seed: int = Field(default=0, ge=0)
    device: str = "cpu"

    def build_learner(self, stream: Stream) -> Learner:
        """Makes the learner for a stream; it has seen nothing yet."""
        return learner_class(self.learner)(
            self.settings,
            input_shape=stream.input_shape,
            n_classes=stream.n_classes,
            seed=self.seed,
            device=self.device,
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the whole configuration as plain values."""
        return self.model_dump(mode="json")

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> RunConfig:
        """Reads what :meth:`to_json` returned, e.g. the configuration in a record."""
        kind = learner_class(values["learner"]).Settings
        settings = validate(kind, values["settings"], "learner")
        return validate(cls, {**values, "settings": settings}, "config")


def differing_keys(a: dict[str, Any], b: dict[str, Any], prefix: str = "") -> list[str]:
    """Returns the dotted names of all values that differ between two trees of plain values."""
    names = []
    for key in sorted(a.keys() | b.keys()):
        left, right = a.get(key), b.get(key)
        if isinstance(left, dict) and isinstance(right, dict):
            names += differing_keys(left, right, f"{prefix}{key}.")
        elif left != right:
            names.append(f"{prefix}{key}")
    return names


def configure(
    scenario: str,
    *,
    learner: str = "cndpm",
    preset: str = "default",
    seed: int = 0,
    device: str = "auto",
    overrides: Iterable[str] = (),
    prequential: bool = False,
    **options: Any,
) -> RunConfig:
    """Resolves names, presets and overrides into one configuration.

    Args:
        scenario: Name of a scenario, or the path of a scenario file.
        learner: Name of a learner, or ``package.module:Class`` for one of one's own.
        preset: Name of the settings to start from.
        seed: Determines the stream and the learner.
        device: "auto" is the GPU if there is one.
        overrides: ``SECTION.FIELD=VALUE``, applied last.
        prequential: Whether every batch is answered before it is learned, as it is anyway where a scenario has no test
            sets; the override ``run.prequential=false`` prevents that.
        **options: Of the scenario: epochs, repeats, fraction, batch_size, class_order, validation; None leaves its own
            value.

    Raises:
        UnknownNameError: A name does not exist; the nearest are suggested.
        ObjectNameError: A learner of one's own cannot be imported.
        ConfigError: A value is not allowed.

    Example:
        >>> config = configure("split-digits", learner="reservoir", device="cpu", overrides=["learner.memory_size=50"])
        >>> config.settings.memory_size, config.scenario.batch_size, config.run.evaluations
        (50, 10, 10)
    """
    sections = parse_overrides(overrides, SECTIONS)
    recipe = _resolve_scenario(scenario, options, sections["scenario"])
    cls = learner_class(learner)
    ahead = {"prequential": prequential or not recipe.has_tests}
    run = validate(RunSettings, ahead | sections["run"], "run")
    if recipe.endless and run.max_batches is None:
        raise ConfigError(ENDLESS)
    preset_values = preset_settings(preset, learner, recipe.name, target=recipe.target)
    return RunConfig(
        scenario=recipe,
        learner=learner,
        preset=preset,
        settings=validate_changed(cls.Settings, preset_values, sections["learner"]),
        run=run,
        seed=seed,
        device=resolve_device(device),
    )


def _resolve_scenario(name: str, options: Mapping[str, Any], overrides: dict[str, Any]) -> Scenario | DriftScenario:
    chosen = {**options, **{key: value for key, value in overrides.items() if key in _SCENARIO_OPTIONS}}
    recipe = load_scenario(name, **{key: value for key, value in chosen.items() if value is not None})
    fields = {key: value for key, value in overrides.items() if key not in _SCENARIO_OPTIONS}
    return validate(type(recipe), LearnerSettings.merge(recipe.model_dump(), fields), "scenario") if fields else recipe
