import math

import pytest
import torch
from sklearn.datasets import load_digits

from asking import found, learn, log_density, log_joint, log_leave_one_out, log_new, n_experts, predictive
from cndpm.experts.chunks import Samples
from cndpm.experts.features import FourierFeatures, IdentityFeatures, NotInvertibleError, PatchFeatures
from cndpm.experts.gaussian import GaussianBank
from cndpm.experts.gaussian.factor import log_elliptical
from cndpm.state import load_state, save_state

MAPS = {"identity": IdentityFeatures, "fourier": lambda: FourierFeatures(96), "patches": lambda: PatchFeatures(4)}


@pytest.fixture(scope="module")
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return (torch.tensor(x).float() / 16).reshape(-1, 1, 8, 8)[order], torch.tensor(y)[order]


def task(digits, t: int, part: slice) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = digits
    chosen = (y // 2) == t
    return x[chosen][part], y[chosen][part]


def trained(digits, n_tasks: int = 5, **options) -> GaussianBank:
    bank = GaussianBank(options.pop("feature_map", None) or IdentityFeatures(), n_classes=10, **options)
    for t in range(n_tasks):
        found(bank, *task(digits, t, slice(0, 100)))
        x, y = task(digits, t, slice(100, 250))
        responsibilities = torch.zeros(len(x), n_experts(bank))
        responsibilities[:, -1] = 1
        for start in range(0, len(x), 10):
            learn(bank, x[start : start + 10], y[start : start + 10], responsibilities[start : start + 10])
    return bank


@pytest.mark.parametrize(("name", "least"), [("identity", 0.92), ("fourier", 0.9), ("patches", 0.95)])
def test_five_experts_together_classify_ten_digits(digits, name, least):
    bank = trained(digits, feature_map=MAPS[name]())
    right = 0
    for t in range(5):
        x, y = task(digits, t, slice(250, None))
        joint = (log_density(bank, x)[..., None] + predictive(bank, x)).logsumexp(dim=1)
        right += int((joint.argmax(dim=1) == y).sum())
    n = sum(len(task(digits, t, slice(250, None))[1]) for t in range(5))
    assert right / n > least


def test_only_a_map_that_keeps_x_gives_a_density_of_x():
    assert {name: GaussianBank(make()).density_of for name, make in MAPS.items()} == {
        "identity": "x by sums",
        "fourier": "features",
        "patches": "features",
    }


@pytest.mark.parametrize("covariance", ["shared", "own"])
def test_unseen_labels_have_a_small_defined_probability(digits, covariance):
    bank = trained(digits, n_tasks=1, covariance=covariance)
    x, _ = task(digits, 0, slice(250, 270))
    known = log_joint(bank, x, torch.zeros(len(x), dtype=torch.long))
    for label in (7, 5000):
        unseen = log_joint(bank, x, torch.full((len(x),), label))
        assert torch.isfinite(unseen).all()
        assert (unseen < known - 1e5).all()
    seven = torch.full((len(x),), 7)
    assert (log_new(bank, x, seven) > log_joint(bank, x, seven)[:, 0]).all()


def test_density_is_the_joint_summed_over_labels(digits):
    bank = trained(digits, n_tasks=2, covariance="own")
    x, _ = task(digits, 1, slice(250, 260))
    joints = torch.stack([log_joint(bank, x, torch.full((len(x),), label)) for label in range(4)])
    torch.testing.assert_close(joints.logsumexp(dim=0), log_density(bank, x))


def test_predictive_is_normalised(digits):
    bank = trained(digits, n_tasks=3)
    x, _ = task(digits, 1, slice(250, 260))
    predicted = predictive(bank, x)
    assert predicted.shape == (10, 3, 10)
    torch.testing.assert_close(predicted.exp().sum(dim=-1), torch.ones(10, 3, dtype=torch.float64))


@pytest.mark.parametrize("covariance", ["shared", "own"])
def test_a_merged_expert_knows_what_both_knew(digits, covariance):
    merged = trained(digits, n_tasks=2, covariance=covariance, shrinkage=0.01, tail=math.inf)
    merged.remove(1, into=0)
    assert n_experts(merged) == 1
    together = GaussianBank(IdentityFeatures(), n_classes=10, covariance=covariance, shrinkage=0.01, tail=math.inf)
    together.feature_map.load_state_dict(merged.feature_map.state_dict())
    parts = [task(digits, t, slice(0, 250)) for t in range(2)]
    x, y = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
    if covariance == "shared":
        found(together, x, y)
        torch.testing.assert_close(log_density(merged, x[:20]), log_density(together, x[:20]), rtol=1e-8, atol=1e-6)
    predicted = predictive(merged, x).squeeze(1).argmax(dim=1)
    assert float((predicted == y).float().mean()) > 0.95


def test_a_zero_row_teaches_nobody(digits):
    bank = trained(digits, n_tasks=2)
    x, y = task(digits, 3, slice(0, 10))
    before = log_density(bank, x)
    learn(bank, x, y, torch.zeros(10, 2))
    assert torch.equal(log_density(bank, x), before)


# The 192 features of patches are too many for covariances of their own.
BANKS = [(name, "shared") for name in MAPS] + [(name, "own") for name in MAPS if name != "patches"]


@pytest.mark.parametrize(("name", "covariance"), BANKS)
def test_a_restored_bank_continues_to_the_bit(digits, tmp_path, name, covariance):
    bank = trained(digits, n_tasks=2, feature_map=MAPS[name](), covariance=covariance)
    x, y = task(digits, 2, slice(0, 60))
    bank.found(Samples(x), y)
    save_state(tmp_path / "bank", bank.state_dict(), kind="bank")
    restored = GaussianBank(MAPS[name](), n_classes=10, covariance=covariance)
    restored.load_state_dict(load_state(tmp_path / "bank", kind="bank"))
    x, y = task(digits, 2, slice(60, 130))
    for each in (bank, restored):
        assert each.train(0) == 0.0
        assert each.train(1) == 1.0
        for start in range(0, 70, 10):
            learn(each, x[start : start + 10], y[start : start + 10], torch.eye(3)[[2]].expand(10, 3))
    assert torch.equal(log_joint(bank, x, y), log_joint(restored, x, y))
    assert torch.equal(predictive(bank, x), predictive(restored, x))


def test_samples_of_an_opened_block_are_judged_and_learned_as_those_that_come_alone(digits):
    plain, opened = (trained(digits, n_tasks=1, feature_map=PatchFeatures(4)) for _ in range(2))
    x, y = task(digits, 0, slice(250, 290))
    weights = torch.ones(10, 1, dtype=torch.float64)
    for i, samples in enumerate(opened.open(x, 10)):
        part = slice(10 * i, 10 * i + 10)
        known = opened.evidence(samples, y[part]).log_known
        opened.learn(samples, y[part], weights)
        torch.testing.assert_close(plain.evidence(Samples(x[part]), y[part]).log_known, known, rtol=1e-5, atol=1e-2)
        learn(plain, x[part], y[part], weights)
    torch.testing.assert_close(log_joint(plain, x, y), log_joint(opened, x, y), rtol=1e-5, atol=1e-2)


def test_unlabelled_experts_tell_their_digits_apart(digits):
    bank = GaussianBank(IdentityFeatures())
    for t in range(2):
        found(bank, task(digits, t, slice(0, 200))[0], None)
    for t in range(2):
        x, _ = task(digits, t, slice(200, None))
        assert float((log_joint(bank, x, None).argmax(dim=1) == t).float().mean()) > 0.9


def test_samples_come_from_the_expert(digits):
    bank = trained(digits, n_tasks=2)
    x, y = bank.sample(1, 200, torch.Generator().manual_seed(0))
    assert x.shape == (200, 1, 8, 8)
    assert set(y.tolist()) == {2, 3}
    assert float((log_density(bank, x).argmax(dim=1) == 1).float().mean()) > 0.95


def test_sampling_through_patches_is_refused(digits):
    bank = trained(digits, n_tasks=1, feature_map=PatchFeatures(2))
    with pytest.raises(NotInvertibleError, match="PatchFeatures"):
        bank.sample(0, 3, torch.Generator())


def test_numbers_kept_count_the_covariance_once(digits):
    bank = trained(digits, n_tasks=2)
    d, components = 64, 4
    kept = bank.footprint()
    assert kept.n_parameters == d * (d + 1) // 2 + components * (d + 1) + d
    assert kept.n_numbers_kept == kept.n_parameters + 2 * 10 + 2 * d
    assert kept.n_experts == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda bank: log_density(bank, torch.zeros(1, 1, 8, 8)), "no expert yet"),
        (lambda bank: found(bank, torch.zeros(0, 3), torch.zeros(0)), "empty memory"),
        (lambda bank: found(bank, torch.zeros(2, 3), torch.zeros(2)), "integers"),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises((RuntimeError, ValueError), match=message):
        call(GaussianBank(IdentityFeatures()))


@pytest.mark.parametrize("covariance", ["shared", "own"])
def test_leaving_one_out_equals_learning_the_others(digits, covariance):
    bank = trained(digits, n_tasks=1, covariance=covariance, shrinkage=0.01)
    x, y = task(digits, 1, slice(0, 30))
    left_out = log_leave_one_out(bank, x, y)
    # An oracle that leaves sample 0 out: its group's predictive density after the others, by the bank's own components.
    gaussians, same = bank.ready(), (y == y[0]) & (torch.arange(30) > 0)
    gaussians.add_components(1)
    if covariance == "shared":
        factor = gaussians.routing()
        rows = factor.whiten(gaussians.statistics.shift(bank.feature_map(x)))
        kappa = factor.kappa + same.sum().double()
        mean = (factor.kappa * factor.mean + rows[same].sum(dim=0)) / kappa
        distance = (rows[0] - mean).square().sum()
        density = log_elliptical(distance, factor.log_det, len(mean), 1 + 1 / kappa, factor.tail)
    else:
        weights = torch.zeros(30, len(gaussians.counts), dtype=torch.float64)
        weights[same, -1] = 1
        gaussians.found(bank.feature_map(x), weights)
        density = gaussians.log_prob(Samples(x[:1]))[0, -1]
    expected = density + torch.log(same.sum() / 29.0) - bank.feature_map.log_volume
    assert float(left_out[0]) == pytest.approx(float(expected), rel=1e-6)


def test_a_known_sample_among_new_ones_is_better_left_to_its_expert(digits):
    bank = trained(digits, n_tasks=1)
    x, y = task(digits, 1, slice(0, 100))
    stray_x, stray_y = task(digits, 0, slice(250, 255))
    x, y = torch.cat([x, stray_x]), torch.cat([y, stray_y])
    known = log_joint(bank, x, y)[:, 0] > log_leave_one_out(bank, x, y)
    assert not known[:100].any()
    assert known[100:].all()


def test_a_provisional_model_has_a_column_for_every_class_that_is_met():
    x, y = torch.randn(30, 2, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 2
    bank = GaussianBank(IdentityFeatures(), n_classes=2)
    bank.found(Samples(x), y)
    bank.train(1)
    memory, asked = Samples(x[:5] + 9), Samples(x[:3])
    for n_classes in (2, 5):
        bank.admit(n_classes)
        assert bank.provisional(memory, y[:5], exact=False).predictive(asked).shape == (3, n_classes)
