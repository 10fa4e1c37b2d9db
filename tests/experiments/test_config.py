"""Configuration: what is resolved, saved and refused."""

import json

import pytest

from cndpm.experiments.config import RunConfig, configure, differing_keys
from cndpm.experiments.learners import LEARNERS
from cndpm.experiments.presets import PRESETS, preset_settings
from cndpm.experts.neural.autoregressive import AutoregressiveDensity
from cndpm.names import UnknownNameError
from cndpm.streams import scenario_names
from cndpm.validation import ConfigError


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_configuration_of_every_learner_survives_json(learner):
    config = configure("split-digits", learner=learner, device="cpu", seed=4, epochs=2)
    again = RunConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config
    assert type(again.settings) is LEARNERS[learner].Settings


def test_a_learner_of_ones_own_is_configured_by_its_own_settings_and_survives_json(tmp_path, monkeypatch):
    (tmp_path / "configured.py").write_text(
        "from cndpm.baselines.reservoir import Reservoir\n"
        "class Mine(Reservoir):\n    class Settings(Reservoir.Settings):\n        own: int = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    config = configure("split-digits", learner="configured:Mine", device="cpu", overrides=["learner.own=7"])
    assert config.settings.own == 7
    assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    learner = config.build_learner(config.scenario.build())
    assert type(learner).__name__ == "Mine"


def test_overrides_win_over_the_preset():
    config = configure("split-mnist", preset="paper", device="cpu", overrides=["learner.log_alpha=-600"])
    assert config.settings.novelty.log_alpha == -600
    assert config.settings.memory_size == 500


def test_streams_without_test_sets_are_answered_ahead_unless_that_is_refused():
    assert configure("drift-flip", device="cpu").run.prequential
    assert not configure("drift-flip", device="cpu", overrides=["run.prequential=false"]).run.prequential
    assert not configure("split-digits", device="cpu").run.prequential
    assert configure("split-digits", device="cpu", prequential=True).run.prequential


def test_scenario_fields_can_be_overridden_at_any_depth():
    overrides = ["scenario.transform.size=16", "scenario.label_noise=0.1"]
    config = configure("split-digits", learner="finetune", device="cpu", overrides=overrides)
    assert (config.scenario.transform.size, config.scenario.label_noise) == (16, 0.1)


def test_unlabelled_scenarios_tell_the_mixture_so():
    for preset in ("default", "paper"):
        assert configure("split-mnist-gen", preset=preset, device="cpu").settings.target == "none"


def test_every_preset_is_valid_for_its_learner_and_scenario():
    for preset, learners in PRESETS.items():
        for learner, scenarios in learners.items():
            for scenario in set(scenarios) - {"*"}:
                assert scenario in scenario_names()
                config = configure(scenario, learner=learner, preset=preset, device="cpu")
                expected = config.settings.merge({}, scenarios[scenario])
                assert config.settings.merge(config.settings.model_dump(), expected) == config.settings.model_dump()


@pytest.mark.parametrize(
    ("scenario", "log_alpha", "memory_size", "density_steps"),
    [
        ("split-mnist", -400, 500, 8000),
        ("split-mnist-gen", 410, 1000, 12000),
        ("mnist-svhn", 0, 500, 8000),
        ("split-cifar10", -450, 1000, 4000),
        ("split-cifar100", -300, 1000, 4000),
    ],
)
def test_the_papers_settings_are_the_published_ones(scenario, log_alpha, memory_size, density_steps):
    settings = preset_settings("paper", "cndpm", scenario)
    found = (settings["log_alpha"], settings["memory_size"], settings["density_sleep_steps"])
    assert found == (log_alpha, memory_size, density_steps)


@pytest.mark.parametrize("scenario", ["split-mnist", "split-cifar10"])
def test_the_fast_preset_differs_from_the_papers_in_training_only(scenario):
    paper, fast = (preset_settings(name, "cndpm", scenario) for name in ("paper", "fast"))
    changed = {key for key in fast if fast[key] != paper.get(key)}
    networks = {"architecture", "hidden", "hidden_growth", "latent_dim", "n_latent_samples", "sharing"}
    assert not changed & {*networks, "memory_size", "temperature", "min_share"}
    assert 4 * decoded_asleep(fast) <= decoded_asleep(paper)
    assert fast["predictor_sleep_steps"] * 3 < paper["predictor_sleep_steps"]


def decoded_asleep(settings):
    """Codes that a density decodes in one sleep: what most of its time goes into."""
    n_latent = settings.get("n_train_latent_samples", settings["n_latent_samples"])
    return settings["density_sleep_steps"] * settings["sleep_batch_size"] * n_latent


def test_a_preset_that_has_nothing_for_a_scenario_says_what_it_has():
    with pytest.raises(ConfigError, match="split-cifar10, split-mnist"):
        preset_settings("fast", "cndpm", "mnist-svhn")


def test_a_variation_takes_the_settings_of_what_it_varies():
    assert preset_settings("paper", "cndpm", "gradual-split-mnist") == preset_settings("paper", "cndpm", "split-mnist")


def test_a_preset_without_this_scenario_says_which_it_has():
    with pytest.raises(ConfigError, match="split-cifar100"):
        preset_settings("paper", "cndpm", "split-digits")


def test_the_default_preset_has_settings_for_every_scenario():
    assert preset_settings("default", "cndpm", "split-digits")["memory_size"] == 100
    assert preset_settings("default", "cndpm", "split-fashion") == {}


@pytest.mark.parametrize("scenario", ["split-cifar10", "split-cifar100"])
def test_every_learner_that_replays_samples_has_the_same_settings_on_colour_images(scenario):
    replaying = [name for name, learner in LEARNERS.items() if "augmentation" in learner.Settings.model_fields]
    given = {name: preset_settings("default", name, scenario) for name in replaying if name != "iid-offline"}
    assert len(given) == 9
    assert all(settings == given["reservoir"] != {} for settings in given.values())


def test_a_preset_leaves_learners_it_does_not_list_as_they_are():
    assert preset_settings("paper", "finetune", "split-digits") == {}


def test_unknown_presets_are_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="default"):
        preset_settings("defalt", "finetune", "split-mnist")


@pytest.mark.parametrize("options", [{"epochs": 0}, {"fraction": 2.0}, {"batch_size": 0}, {"seed": -1}])
def test_values_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=r"got|greater|less"):
        configure("split-digits", learner="finetune", device="cpu", **options)


def test_five_experts_of_the_default_for_generation_have_fewer_parameters_than_the_papers():
    settings = configure("split-mnist-gen", device="cpu").settings
    sizes = settings.experts.density
    density = AutoregressiveDensity((1, 28, 28), channels=sizes.density_channels, n_blocks=sizes.density_blocks)
    of_network = sum(parameter.numel() for parameter in density.parameters())
    of_gaussian = 1 + 128 + 128 * 129 // 2
    assert 5 * (of_network + of_gaussian) + 2 * 128 + 2 < 970_000


def test_differing_keys_are_dotted_names():
    a = {"x": 1, "y": {"z": 2, "w": [1]}, "only": None}
    assert differing_keys(a, json.loads(json.dumps(a))) == []
    assert differing_keys(a, {"x": 2, "y": {"z": 2, "w": [2]}}) == ["x", "y.w"]
