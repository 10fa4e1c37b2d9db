import numpy as np
import pytest
import torch

from cndpm.experiments import RecordError, configure, read_record, run_config
from cndpm.experiments.record_files import PORTRAIT, load_portrait
from cndpm.model.cndpm import CNDPM

FAST = [
    "learner.experts=neural",
    "learner.memory_size=60",
    "learner.log_alpha=-20",
    "learner.hidden=16",
    "learner.hidden_growth=4",
    "learner.n_latent_samples=2",
    "learner.density_sleep_steps=40",
    "learner.predictor_sleep_steps=40",
    "learner.density_lr=0.003",
    "run.evaluations=2",
    "run.max_batches=50",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("portrait") / "run"
    run_config(configure("split-digits", device="cpu", overrides=FAST), path)
    return path


def test_a_finished_mixture_leaves_samples_of_every_expert_and_a_symmetric_similarity(folder):
    portrait = load_portrait(folder)
    n_experts = read_record(folder).summary["n_experts"]
    assert portrait.from_mixture.sum() == 50
    assert set(portrait.expert[~portrait.from_mixture]) == set(range(n_experts))
    assert portrait.x.shape == (len(portrait.y), 1, 8, 8)
    assert portrait.y.min() >= 0
    np.testing.assert_allclose(portrait.similarity, portrait.similarity.T)
    np.testing.assert_allclose(np.diag(portrait.similarity), 1.0)


def test_what_experts_learned_and_what_waits_adds_up_to_what_was_streamed(folder):
    record = read_record(folder)
    progress = [row for row in record.rows if row["event"] == "progress"]
    for row in progress:
        assert sum(row["expert_counts"]) + sum(row["memory_classes"] or []) == pytest.approx(10 * row["step"], abs=10)


def test_the_start_of_a_log_describes_the_stream(folder):
    start = read_record(folder).rows[0]
    assert start["n_batches"] == 50
    assert start["stage_tasks"] == [[0], [1], [2], [3], [4]]
    assert start["task_names"][0] == "digits 0/1"


def test_every_test_sample_of_a_learned_task_is_counted_by_the_gate(folder):
    last = read_record(folder).evaluations[-1]
    counted = [row for row in last["gate_counts"] if row is not None]
    assert len(counted) == last["n_learned_tasks"]
    assert all(len(row) == last["n_experts"] and sum(row) > 0 for row in counted)


def test_a_mixture_without_experts_has_no_portrait(small_settings):
    learner = CNDPM(small_settings(), input_shape=(8,), n_classes=4)
    assert learner.portray(torch.rand(3, 8), torch.tensor([0, 2, 2]), seed=0) is None
    learner.learn(torch.rand(3, 8), torch.tensor([0, 2, 2]))
    assert learner.describe() == {"expert_counts": [], "memory_classes": [1, 0, 2], "n_in_memory": 3}


def test_how_predictors_are_pooled_is_in_every_line_of_progress(tmp_path):
    few = ["learner.companions.sleep_steps=5", "learner.companions.wake_steps=1", "learner.companions.hidden=8"]
    overrides = ["learner.classifier=both", "learner.n_patches=4", "run.evaluations=0", "run.max_batches=15", *few]
    run_config(configure("split-digits", device="cpu", overrides=overrides), tmp_path / "run")
    progress = [row for row in read_record(tmp_path / "run").rows if row["event"] == "progress"]
    assert [len(row["predictor_exponents"]) for row in progress] == [row["n_experts"] for row in progress]
    assert all(0 <= beta <= 2 for pair in progress[-1]["predictor_exponents"] for beta in pair)
    assert progress[-1]["n_experts"] > 0


def test_a_damaged_portrait_is_reported_by_its_path(tmp_path):
    assert load_portrait(tmp_path) is None
    (tmp_path / PORTRAIT).write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(RecordError, match=r"portrait\.npz is damaged"):
        load_portrait(tmp_path)
