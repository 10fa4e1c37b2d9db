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
