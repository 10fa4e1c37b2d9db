import pytest
import torch

from asking import log_density, log_joint, n_experts
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import load_state, save_state

SETTINGS = CNDPMSettings.paper(
    target="none",
    selection="gaussian",
    features="identity",
    density_sleep_steps=30,
    hidden=8,
    hidden_growth=4,
    latent_dim=2,
    n_latent_samples=2,
    likelihood="gaussian",
    log_alpha="auto",
    memory_size=100,
)


def cloud(centre: float, n: int, seed: int) -> torch.Tensor:
    return centre + torch.randn(n, 4, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def learner() -> CNDPM:
    learner = CNDPM(SETTINGS, input_shape=(4,))
    for centre in (0.0, 30.0, -30.0):
        for i in range(30):
            learner.learn(cloud(centre, 10, seed=i))
    return learner


def test_gaussians_find_the_experts_and_networks_describe_them(learner):
    selector, describer = learner.bank.selector, learner.bank.describer
    assert learner.n_experts == n_experts(selector) == n_experts(describer) == 3
    x = cloud(30.0, 20, seed=500)
    assert torch.equal(log_joint(learner.bank, x, None), log_joint(selector, x, None))
    assert torch.equal(log_density(learner.bank, x), log_density(describer, x))
    assert (log_joint(selector, x, None).argmax(dim=1) == 1).all()


def test_both_learn_the_same_samples(learner):
    statistics = learner.bank.selector.ready().counts
    torch.testing.assert_close(statistics.sum(), learner.counts.sum())
    assert learner.counts.sum() + len(learner.memory) == 900


def test_what_is_kept_is_the_sum_of_both(learner):
    footprint, bank = learner.footprint(), learner.bank
    assert footprint.n_parameters == bank.selector.footprint().n_parameters + bank.describer.footprint().n_parameters
    assert footprint.n_numbers_kept > footprint.n_parameters


def test_samples_come_from_the_describer(learner):
    x, y, expert = learner.sample(5, seed=0, expert=2)
    assert x.shape == (5, 4)
    assert y is None
    assert (expert == 2).all()


def test_pruning_removes_the_expert_from_both():
    learner = CNDPM(SETTINGS, input_shape=(4,))
    for centre in (0.0, 30.0):
        for i in range(20):
            learner.learn(cloud(centre, 10, seed=i))
    learner.bank.remove(0, into=1)
    assert n_experts(learner.bank.selector) == n_experts(learner.bank.describer) == 1


@pytest.mark.parametrize("n_before", [5, 15, 45])
def test_a_learner_restored_from_a_file_goes_on_with_the_same_bits(tmp_path, n_before):
    batches = [cloud(30.0 * (i // 20), 10, seed=i) for i in range(60)]
    whole, restored = CNDPM(SETTINGS, input_shape=(4,)), CNDPM(SETTINGS, input_shape=(4,), seed=7)
    for i, x in enumerate(batches):
        if i == n_before:
            save_state(tmp_path / "state", whole.state_dict(), kind="learner")
        whole.learn(x)
    restored.load_state_dict(load_state(tmp_path / "state", kind="learner"))
    for x in batches[n_before:]:
        restored.learn(x)
    x = cloud(30.0, 50, seed=99)
    assert torch.equal(restored.log_prob(x), whole.log_prob(x))
    assert torch.equal(restored.log_joint(x, None), whole.log_joint(x, None))


def test_labels_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match="selection='gaussian' is for unlabelled streams"):
        SETTINGS.changed(target="classes")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_same_experts_are_found():
    learner = CNDPM(SETTINGS, input_shape=(4,), device="cuda")
    for centre in (0.0, 30.0, -30.0):
        for i in range(30):
            learner.learn(cloud(centre, 10, seed=i).cuda())
    assert learner.n_experts == 3
    assert learner.log_prob(cloud(30.0, 20, seed=500).cuda()).isfinite().all()
