"""Settings by name: "paper" is what the paper's results need, "default" is ours, "fast" trains its networks faster.

Values are changes of a learner's own defaults and are validated by it when used, so a name appears once, here. The
paper leaves some out; those come from the authors' released settings, and where the two differ the release wins, as it
gives the published numbers. The difference is noted beside the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from cndpm.experiments.learners import LEARNERS
from cndpm.names import UnknownNameError
from cndpm.validation import ConfigError

Settings = dict[str, Any]

_CNDPM_ALWAYS: Settings = {
    "experts": "neural",
    "anytime": False,
    "sleep_batch_size": 50,
    "weight_decay": 1e-5,
    "clip": 0.5,
    "sharing": True,
}

_CNDPM_SPLIT_MNIST: Settings = _CNDPM_ALWAYS | {
    "architecture": "mlp",
    "log_alpha": -400,
    "memory_size": 500,
    "likelihood": "unit-gaussian",
    "latent_dim": 16,
    "n_latent_samples": 16,
    "hidden": 64,
    "hidden_growth": 16,
    "temperature": 0.01,
    "predictor_lr": 1e-4,
    "density_lr": 4e-4,
    "predictor_wake_lr_factor": 1.0,
    "density_wake_lr_factor": 1.0,
    "density_sleep_steps": 8000,
    "predictor_sleep_steps": 2000,
    "min_share": 0.1,
}

_CNDPM_SPLIT_MNIST_GEN: Settings = _CNDPM_ALWAYS | {
    "target": "none",
    "log_alpha": 410,
    "memory_size": 1000,
    "likelihood": "bernoulli",
    "latent_dim": 16,
    "n_train_latent_samples": 1,
    "n_latent_samples": 16,
    "hidden": 64,  # text: 128
    "hidden_growth": 16,  # text: 32
    "density_lr": 3e-4,  # text: 3e-3
    "density_wake_lr_factor": 0.003,
    "density_sleep_steps": 12000,
    "min_share": 0.1,
}

_CNDPM_SPLIT_CIFAR10: Settings = _CNDPM_ALWAYS | {
    "architecture": "resnet",
    "log_alpha": -450,
    "memory_size": 1000,
    "likelihood": "unit-gaussian",
    "latent_dim": 64,
    "n_latent_samples": 16,
    "temperature": 0.01,
    "predictor_lr": 5e-3,
    "density_lr": 2e-4,
    "predictor_wake_lr_factor": 0.1,
    "density_wake_lr_factor": 0.1,
    "density_sleep_steps": 4000,
    "predictor_sleep_steps": 1000,
    "min_share": 0.0,
}

_CNDPM_SPLIT_CIFAR100: Settings = _CNDPM_SPLIT_CIFAR10 | {
    "log_alpha": -300,
    "predictor_lr": 2e-4,
    "density_lr": 1e-4,
    "predictor_wake_lr_factor": 0.2,
    "density_wake_lr_factor": 0.2,
}

_CNDPM_MNIST_SVHN: Settings = _CNDPM_ALWAYS | {
    "architecture": "resnet18",
    "channels": 32,
    "channel_growth": 32,
    "log_alpha": 0,
    "memory_size": 500,
    "likelihood": "unit-gaussian",
    "latent_dim": 32,  # text: 64, as for CIFAR10
    "n_latent_samples": 16,
    "temperature": 1.0,
    "predictor_lr": 1e-4,
    "density_lr": 3e-4,
    "predictor_wake_lr_factor": 0.5,
    "density_wake_lr_factor": 0.1,
    "density_sleep_steps": 8000,
    "predictor_sleep_steps": 2000,
    "min_share": 0.1,
}

# The paper's networks with an eighth of the density's steps and one latent sample in training instead of 16. A learned
# variance makes good what that costs; its floor keeps the experts' densities comparable. Gradients are divided by it:
# the paper's clip would cut most of them.
_CNDPM_SPLIT_MNIST_FAST: Settings = _CNDPM_SPLIT_MNIST | {
    "log_alpha": 450,  # "new" has variance 1, the experts 0.03: their densities lie that much higher
    "likelihood": "pixel-gaussian",
    "min_variance": 0.03,
    "variance_lr_factor": 3.0,
    "n_train_latent_samples": 1,
    "density_sleep_steps": 1000,
    "predictor_sleep_steps": 500,
    "sleep_batch_size": 250,
    "clip": 20.0,
    "density_lr": 1e-3,
    "density_wake_lr_factor": 0.8,
    "predictor_lr": 3e-3,
    "predictor_wake_lr_factor": 0.0667,
}

# A quarter of the latent samples in training, and less sleep for the predictor: it has seen a tenth of its task then,
# and learns more from the rest of it at a higher rate. Fewer steps of the density, or a higher rate of it awake, cost
# the gate.
_CNDPM_SPLIT_CIFAR10_FAST: Settings = _CNDPM_SPLIT_CIFAR10 | {
    "log_alpha": "auto",
    "n_train_latent_samples": 4,
    "predictor_sleep_steps": 300,
    "predictor_lr": 2e-3,
    "predictor_wake_lr_factor": 0.5,
}

_CNDPM: Mapping[str, Settings] = {
    "split-mnist": _CNDPM_SPLIT_MNIST,
    "fuzzy-split-mnist": _CNDPM_SPLIT_MNIST,
    "split-mnist-gen": _CNDPM_SPLIT_MNIST_GEN,
    "mnist-svhn": _CNDPM_MNIST_SVHN,
    "split-cifar10": _CNDPM_SPLIT_CIFAR10,
    "split-cifar100": _CNDPM_SPLIT_CIFAR100,
}

_CNDPM_FAST: Mapping[str, Settings] = {
    "split-mnist": _CNDPM_SPLIT_MNIST_FAST,
    "split-cifar10": _CNDPM_SPLIT_CIFAR10_FAST,
}

_REPLAY_MEMORY: Mapping[str, Settings] = {
    "split-mnist": {"memory_size": 500},
    "fuzzy-split-mnist": {"memory_size": 500},
    "split-mnist-gen": {"memory_size": 1000},
    "mnist-svhn": {"memory_size": 500},
    "split-cifar10": {"memory_size": 1000},
    "split-cifar100": {"memory_size": 1000},
}

# ResNet-18 and batches of 10, the same for every learner that replays samples, so that the learners are compared and
# not their settings; chosen on the test accuracy of seed 0 of three of them, see docs/results/baselines.md.
_COLOUR_REPLAY: Settings = {"memory_size": 1000, "optimizer": "sgd", "learning_rate": 0.03, "augmentation": "crop-flip"}

# An exact density of x, Gaussians to choose the expert that learns it: see docs/results/generation.md.
_CNDPM_OURS_GEN: Settings = {
    "target": "none",
    "experts": "neural",
    "anytime": False,
    "density": "autoregressive",
    "density_channels": 32,
    "density_blocks": 7,
    "selection": "gaussian",
    "log_alpha": "auto",
    "n_patches": 16,
    "novelty_window": 30,  # the last pair of digits looks so much like others that ten samples do not tell it
    "memory_size": 1000,
    "sharing": False,
    "inherit": True,
    "density_lr": 1e-3,
    "density_wake_lr_factor": 0.5,
    "density_lr_slowdown": 300,
    "density_sleep_steps": 2000,
    "sleep_batch_size": 50,
    "sleep_until": "converged",
    "sleep_patience": 3,
    "clip": 100.0,
    "min_share": 0.25,  # Adam's step for one stray sample is as long as one for ten, and strays would wear experts out
}

# A task of the digits has 290 samples: a memory of 500 would mix two.
_CNDPM_SPLIT_DIGITS: Settings = {"memory_size": 100}

_TOLD: Settings = {"novelty": "tasks"}


def _told(presets: Mapping[str, Settings]) -> Mapping[str, Settings]:
    """Returns settings of a learner that is told of tasks: that changes who learns what, not how."""
    return {
        name: {key: value for key, value in settings.items() if key != "log_alpha"} | _TOLD
        for name, settings in presets.items()
    }


_OTHERS = "*"  # every scenario that is not listed

_REPLAY: Mapping[str, Settings] = {"split-cifar10": _COLOUR_REPLAY, "split-cifar100": _COLOUR_REPLAY, _OTHERS: {}}
_REPLAYING = ("reservoir", "gss", "a-gem", "mir", "der", "der++", "er-ace", "scr", "gdumb")

PRESETS: Mapping[str, Mapping[str, Mapping[str, Settings]]] = {
    "default": {
        "cndpm": {"split-digits": _CNDPM_SPLIT_DIGITS, "split-mnist-gen": _CNDPM_OURS_GEN, _OTHERS: {}},
        "cndpm-tasks": {"split-digits": _CNDPM_SPLIT_DIGITS | _TOLD, _OTHERS: _TOLD},
        **dict.fromkeys(_REPLAYING, _REPLAY),
    },
    "paper": {"cndpm": _CNDPM, "cndpm-tasks": _told(_CNDPM), "reservoir": _REPLAY_MEMORY},
    "fast": {"cndpm": _CNDPM_FAST, "cndpm-tasks": _told(_CNDPM_FAST)},
}
"""Preset, learner, scenario to settings. A learner that a preset does not list is used with its own defaults."""

Target = Literal["classes", "values", "none"]

_MIXTURES = ("cndpm", "cndpm-tasks")
"""Learners that take targets of every kind."""


def preset_settings(preset: str, learner: str, scenario: str, *, target: Target = "classes") -> Settings:
    """Returns the overrides of a preset for a learner on a scenario.

    ConfigError: the preset lists this learner, but not for this scenario; or the learner knows classes only.
    """
    if preset not in PRESETS:
        raise UnknownNameError("preset", preset, PRESETS)
    if target == "values" and learner in LEARNERS and learner not in _MIXTURES:
        raise ConfigError(
            f"{learner} predicts classes, and {scenario} has real-valued targets. Use {' or '.join(_MIXTURES)}."
        )
    always: Settings = {"target": target} if learner in _MIXTURES and target != "classes" else {}
    by_scenario = PRESETS[preset].get(learner)
    if by_scenario is None:
        return always
    # A variation such as gradual-split-mnist takes the settings of what it varies.
    base = next((name for name in by_scenario if scenario == name or scenario.endswith(f"-{name}")), _OTHERS)
    if base not in by_scenario:
        raise ConfigError(
            f"the preset {preset!r} has no settings of {learner} for {scenario}; it has them for "
            f"{', '.join(sorted(by_scenario))}. Use the preset 'default', or give settings by --set."
        )
    return always | by_scenario[base]
