"""Commands on the published datasets, where CNDPM_DATA says they lie."""

import os

import pytest

DATA = os.environ.get("CNDPM_DATA")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(DATA is None, reason="CNDPM_DATA is not set")]


def test_fine_tuning_forgets_split_mnist_as_the_paper_found(cndpm):
    outcome = cndpm("run", "split-mnist", "--learner", "finetune", "--data-dir", DATA, "--quiet", "--json")
    assert outcome.json["accuracy"] == pytest.approx(19.43, abs=1.0)
    assert outcome.json["n_parameters"] == 478_410
    assert outcome.json["runs"][0]["forgetting"] > 95


def test_replay_keeps_split_mnist_as_the_paper_found(cndpm):
    arguments = ("--learner", "reservoir", "--preset", "paper", "--data-dir", DATA, "--quiet", "--json")
    outcome = cndpm("run", "split-mnist", *arguments)
    assert outcome.json["accuracy"] == pytest.approx(85.69, abs=6.0)
    assert outcome.json["memory_samples"] == 500


@pytest.mark.parametrize(
    ("scenario", "n_experts", "options"),
    [
        ("split-mnist", 5, ("--fraction", "0.06", "--repeats", "2")),
        ("mnist-svhn", 2, ("--fraction", "0.02", "--set", "learner.architecture=mlp")),
    ],
)
def test_neural_experts_set_their_concentration_on_every_stream_alike(cndpm, scenario, n_experts, options):
    """The paper's networks after a short sleep: log α is -400 and 0 by hand."""
    short = {
        "log_alpha": "auto", "memory_size": 150, "density_sleep_steps": 300, "n_train_latent_samples": 1,
        "n_latent_samples": 2,
    }  # fmt: skip
    settings = [part for name, value in short.items() for part in ("--set", f"learner.{name}={value}")]
    watching = ("--set", "run.evaluations=0", "--set", "run.evaluation_samples=100", "--quiet", "--json")
    outcome = cndpm("run", scenario, "--preset", "paper", "--data-dir", DATA, *options, *settings, *watching)
    assert outcome.json["n_experts"] == n_experts
