"""Gaussians and networks of the same experts, against each alone and a plain computation."""

from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits

import asking
from asking import log_joint, make_bank, n_experts, predictive
from cndpm.checks import CHECKS, LearnerCase
from cndpm.checks.promises import check_save_and_load
from cndpm.experts.chunks import Samples
from cndpm.experts.combined import CombinedBank
from cndpm.experts.features import ModuleFeatures
from cndpm.mixture.pooling import exponent_grid, pool_log_proba
from cndpm.model.cndpm import CNDPM
from cndpm.model.settings import CNDPMSettings
from cndpm.state import State, StateError, load_state, save_state

COMPANIONS = {
    "hidden": 16,
    "lr": 3e-3,
    "sleep_steps": 30,
    "batch_size": 16,
    "wake_steps": 2,
    "n_recent": 30,
    "average": 5.0,
    "horizon": 60.0,
}
SMALL = {
    "experts": "gaussian",
    "log_alpha": "auto",
    "classifier": "both",
    "memory_size": 40,
    "n_patches": 2,
    "companions": COMPANIONS,
}
DEVICE = torch.device("cpu")


@pytest.fixture(scope="module")
def tasks() -> list[tuple[torch.Tensor, torch.Tensor]]:
    x, y = load_digits(return_X_y=True)
    x, y = (torch.tensor(x).float() / 16).reshape(-1, 1, 8, 8), torch.tensor(y)
    return [(x[y // 2 == t][:140], y[y // 2 == t][:140]) for t in range(2)]


def make(**changes: object) -> CombinedBank:
    settings = CNDPMSettings(**{**SMALL, "companions": {**COMPANIONS, **changes}})
    bank = make_bank(settings, input_shape=(1, 8, 8), n_classes=None, seed=0, device=DEVICE)
    assert isinstance(bank, CombinedBank)
    return bank


def found(bank: CombinedBank, x: torch.Tensor, y: torch.Tensor) -> None:
    bank.admit(int(y.max()) + 1)
    asking.found(bank, x, y)


def trained(tasks, **changes: object) -> CombinedBank:
    bank = make(**changes)
    for x, y in tasks:
        found(bank, x[:40], y[:40])
        for i in range(40, 120, 10):
            learn(bank, x[i : i + 10], y[i : i + 10])
    return bank


def learn(bank: CombinedBank, x: torch.Tensor, y: torch.Tensor) -> None:
    """As samples of the newest expert."""
    responsibilities = torch.zeros(len(x), len(bank.counts), dtype=torch.float64)
    responsibilities[:, -1] = 1.0
    asking.learn(bank, x, y, responsibilities)


def learner(**changes: object) -> CNDPM:
    return CNDPM(CNDPMSettings(**SMALL).changed(**changes), input_shape=(1, 8, 8), n_classes=None, seed=3)


def assert_same(a: State, b: State) -> None:
    for name in a:
        if isinstance(a[name], dict):
            assert_same(a[name], b[name])
        elif isinstance(a[name], list):
            assert_same(dict(enumerate(a[name])), dict(enumerate(b[name])))
        else:
            assert torch.equal(a[name], b[name]) if isinstance(a[name], torch.Tensor) else a[name] == b[name], name
    assert a.keys() == b.keys()


def test_evidence_is_the_log_loss_of_every_batch_before_it_was_learned(tasks):
    bank, grid = make(), exponent_grid(2)
    (x, y), keep = tasks[0], 1 - 1 / 60
    found(bank, x[:40], y[:40])
    expected = [0.0] * len(grid)
    for i in range(40, 80, 10):
        with torch.no_grad():
            by_gaussians = bank.gaussians.routing_predictive(Samples(x[i : i + 10]))
            each = torch.stack([by_gaussians, predictive(bank.networks, x[i : i + 10]).double()], dim=2)
        for h, beta in enumerate(grid):
            for t in range(10):
                own = torch.log_softmax(beta[0] * each[t, 0, 0] + beta[1] * each[t, 0, 1], dim=0)
                expected[h] = keep * expected[h] + float(own[y[i + t]])
        learn(bank, x[i : i + 10], y[i : i + 10])
    weight = torch.tensor(expected, dtype=torch.float64).softmax(0)
    torch.testing.assert_close(bank.exponents[0], weight @ grid)


def test_experts_are_chosen_by_the_gaussians_as_if_they_were_alone(tasks):
    both, alone = learner(), learner(classifier="gaussian")
    for x, y in tasks:
        for i in range(0, 140, 10):
            both.learn(x[i : i + 10], y[i : i + 10])
            alone.learn(x[i : i + 10], y[i : i + 10])
    x = torch.cat([x for x, _ in tasks])
    assert both.n_experts == alone.n_experts >= 2
    assert torch.equal(both.expert_log_proba(x), alone.expert_log_proba(x))
    assert not torch.equal(both.predict_log_proba(x), alone.predict_log_proba(x))


def test_the_answer_pools_both_with_the_exponents_of_each_expert(tasks):
    bank = trained(tasks)
    x = tasks[0][0][120:]
    each = torch.stack([predictive(bank.gaussians, x), predictive(bank.networks, x).double()], dim=2)
    torch.testing.assert_close(predictive(bank, x), pool_log_proba(each, bank.exponents))
    assert bank.exponents.shape == (2, 2)
    assert bank.describe()["predictor_exponents"] == [[round(b, 4) for b in row] for row in bank.exponents.tolist()]


def test_a_network_that_learned_nothing_gets_no_say(tasks):
    """Its labels are as good as drawn at random: one step with a vanishing learning rate."""
    bank = trained(tasks, lr=1e-9, sleep_steps=1)
    x, y = tasks[1][0][120:], tasks[1][1][120:]
    answers = predictive(bank, x)[:, 1].argmax(1)
    assert float((answers == predictive(bank.gaussians, x)[:, 1].argmax(1)).double().mean()) >= 0.95
    assert float((answers == y).double().mean()) >= 0.9


def test_gaussians_that_know_nothing_leave_the_answer_to_the_network(tasks):
    """One feature without meaning: only the network can tell the digits apart."""
    settings = CNDPMSettings(**SMALL | {"companions": COMPANIONS | {"sleep_steps": 200}})
    blind = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 1, bias=False))
    torch.nn.init.constant_(blind[1].weight, 1 / 64)
    bank = make_bank(
        settings, input_shape=(1, 8, 8), n_classes=None, seed=0, device=DEVICE, feature_map=ModuleFeatures(blind)
    )
    assert isinstance(bank, CombinedBank)
    x, y = tasks[0]
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x, y = x[order], y[order]
    found(bank, x[:40], y[:40])
    for i in range(40, 120, 10):
        learn(bank, x[i : i + 10], y[i : i + 10])
    right = (predictive(bank, x[120:])[:, 0].argmax(1) == y[120:]).double().mean()
    alone = (predictive(bank.gaussians, x[120:])[:, 0].argmax(1) == y[120:]).double().mean()
    assert float(right) > float(alone)
    assert bank.exponents[0, 1] > bank.exponents[0, 0]


def test_a_bank_saved_in_the_middle_of_sleep_goes_on_to_the_same_bits(tasks, tmp_path):
    bank, (x, y) = trained(tasks[:1]), tasks[1]
    bank.admit(int(y.max()) + 1)
    bank.found(Samples(x[:40]), y[:40])
    assert bank.train(7) < 1
    save_state(tmp_path / "state", bank.state_dict(), kind="bank")
    other = make()
    other.load_state_dict(load_state(tmp_path / "state", kind="bank"))
    assert 1 > other.train(0) == bank.train(0) > 0
    for each in (bank, other):
        while each.train(5) < 1:
            pass
        learn(each, x[40:50], y[40:50])
    assert_same(bank.state_dict(), other.state_dict())


@pytest.mark.parametrize("n_experts", [0, 2])
def test_recent_samples_of_more_or_fewer_experts_are_refused(tasks, n_experts):
    state = trained(tasks[:1], n_recent=30).state_dict()
    x, y, responsibilities = state["recent"]["rows"]
    state["recent"]["rows"] = [x, y, responsibilities[:, :1].repeat(1, n_experts)]
    with pytest.raises(StateError, match=r"'responsibilities' must have the shape \(n=30, experts=1\)"):
        make(n_recent=30).load_state_dict(state)


def test_answers_and_questions_change_nothing(tasks):
    bank = trained(tasks)
    before = bank.state_dict()
    for exact in (True, False):
        predictive(bank, tasks[0][0], exact=exact)
    log_joint(bank, *tasks[1])
    bank.describe()
    assert_same(bank.state_dict(), before)


def test_a_removed_expert_takes_network_and_evidence_with_it(tasks):
    bank = trained(tasks)
    x, y = tasks[1]
    kept = bank.exponents[1]
    of_second = predictive(bank.networks, x)[:, 1]
    bank.remove(0, into=1)
    assert n_experts(bank) == n_experts(bank.networks) == 1
    assert torch.equal(bank.exponents[0], kept)
    torch.testing.assert_close(predictive(bank.networks, x)[:, 0], of_second)
    learn(bank, x[:10], y[:10])
    restored = make()
    restored.load_state_dict(bank.state_dict())
    assert_same(restored.state_dict(), bank.state_dict())


def test_a_batch_that_a_network_predicted_well_is_not_practised(tasks):
    eager, content = make(content=0.0), make(content=100.0)
    x, y = tasks[0]
    for bank in (eager, content):
        found(bank, x[:40], y[:40])
        learn(bank, x[40:50], y[40:50])
    assert_same(eager.gaussians.state_dict(), content.gaussians.state_dict())
    assert torch.equal(eager.exponents, content.exponents)
    slept = make()
    found(slept, x[:40], y[:40])
    assert_same(content.networks.state_dict(), slept.networks.state_dict())
    assert not torch.equal(predictive(eager.networks, x), predictive(slept.networks, x))


def test_samples_that_nobody_is_responsible_for_teach_nothing(tasks):
    bank, (x, y) = trained(tasks), tasks[0]
    before = bank.state_dict()
    asking.learn(bank, x[:5], y[:5], torch.zeros(5, 2))
    assert_same(bank.state_dict(), before)


def test_everything_kept_is_counted(tasks):
    model = learner()
    for x, y in tasks:
        for i in range(0, 140, 10):
            model.learn(x[i : i + 10], y[i : i + 10])
    bank, footprint = model.bank, model.footprint()
    assert isinstance(bank, CombinedBank)
    assert footprint.memory_samples == len(model.memory) + len(bank.recent) > len(model.memory)
    assert footprint.n_parameters == bank.gaussians.footprint().n_parameters + bank.networks.footprint().n_parameters
    assert footprint.memory_bytes == footprint.memory_samples * (64 * 4 + 8)


@pytest.mark.parametrize("check", CHECKS, ids=[check.__name__ for check in CHECKS])
@pytest.mark.parametrize("sharing", [True, False])
def test_the_learner_keeps_the_contract(check, sharing):
    companions = COMPANIONS | {"n_recent": 8, "sharing": sharing}
    settings = CNDPMSettings(**SMALL | {"memory_size": 12, "log_alpha": -60.0, "companions": companions})
    check(LearnerCase(CNDPM, settings, memory_bound=20))


def test_gaussians_alone_resume_to_the_same_bits():
    settings = CNDPMSettings(**SMALL).changed(memory_size=12, log_alpha=-60.0, classifier="gaussian")
    check_save_and_load(LearnerCase(CNDPM, settings))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"experts": "neural"}, "classifier is a setting of experts='gaussian'; got experts='neural'"),
        ({"target": "none"}, "needs target='classes'; got target='none'"),
        ({"target": "values"}, "needs target='classes'; got target='values'"),
    ],
)
def test_networks_beside_gaussians_need_gaussians_and_labels(changes, message):
    with pytest.raises(ValueError, match=message):
        CNDPMSettings(classifier="both", **changes)


def test_patch_features_describe_no_image():
    assert make().density_of == "features"
