"""Convolutional experts: the paper's sizes, and lateral connections that go one way."""

import pytest
import torch

from asking import found, learn, log_density, log_joint, make_bank, predictive
from cndpm.experts.neural.lateral import LateralCNN, LateralResNet, mirrored_decoder
from cndpm.model.settings import CNDPMSettings

SMALL = {
    "architecture": "resnet",
    "channels": 4,
    "channel_growth": 2,
    "density_channels": 4,
    "density_channel_growth": 2,
    "latent_dim": 3,
    "n_latent_samples": 2,
    "density_sleep_steps": 2,
    "predictor_sleep_steps": 2,
    "sleep_batch_size": 4,
}


def bank_of(n_experts, *, input_shape, n_classes, **settings):
    bank = make_bank(
        CNDPMSettings.paper(**settings),
        input_shape=input_shape,
        n_classes=n_classes,
        seed=0,
        device=torch.device("cpu"),
    )
    generator = torch.Generator().manual_seed(0)
    for _ in range(n_experts):
        x = torch.rand(4, *input_shape, generator=generator)
        found(bank, x, torch.randint(0, n_classes, (4,), generator=generator))
    return bank


@pytest.mark.parametrize(
    ("n_experts", "n_classes", "settings", "millions"),
    [
        (5, 10, {"latent_dim": 64}, "4.60"),
        (20, 100, {"latent_dim": 64}, "19.2"),
        (2, 10, {"architecture": "resnet18", "channels": 32, "channel_growth": 32, "latent_dim": 32}, "7.80"),
    ],
)
def test_experts_have_as_many_parameters_as_the_paper_reports(n_experts, n_classes, settings, millions):
    no_training = {"density_sleep_steps": 0, "predictor_sleep_steps": 0}
    bank = bank_of(n_experts, input_shape=(3, 32, 32), n_classes=n_classes, **settings, **no_training)
    decimals = len(millions.split(".")[1])
    assert f"{bank.footprint().n_parameters / 1e6:.{decimals}f}" == millions


@pytest.mark.parametrize("make", [LateralCNN, LateralResNet])
def test_a_column_shows_as_many_features_as_it_says(make):
    first = make((3, 16, 8), 4)
    second = make((3, 16, 8), 2, lateral_widths=first.widths)
    x = torch.rand(5, 3, 16, 8)
    lateral = first(x, ())
    own = second(x, lateral)
    assert tuple(feature.shape[1] for feature in own) == second.widths
    assert second.top(own, lateral).shape == (5, second.out_features)


def test_the_decoder_ends_where_the_encoder_began():
    assert mirrored_decoder((3, 16, 8), 4, 6)(torch.rand(5, 6)).shape == (5, 3 * 16 * 8)


def test_a_shape_that_cannot_be_halved_twice_is_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"divisible by 4; got \(3, 30, 32\).*architecture='mlp'"):
        LateralCNN((3, 30, 32), 4)


def test_answers_from_known_features_equal_those_computed_alone():
    bank = bank_of(3, input_shape=(3, 16, 16), n_classes=4, **SMALL)
    x = torch.rand(5, 3, 16, 16)
    for lineup, answers in zip(bank.panel.lineups, (log_density(bank, x), predictive(bank, x)), strict=True):
        survey = lineup.survey(x)
        for k, part in enumerate(lineup.parts):
            torch.testing.assert_close(part.answer(x, None, lineup.lateral(k, survey)), answers[:, k])


def test_learning_changes_later_experts_and_never_earlier_ones():
    bank = bank_of(3, input_shape=(3, 16, 16), n_classes=4, **SMALL)
    x, y = torch.rand(6, 3, 16, 16), torch.arange(6) % 4
    before = log_joint(bank, x, y)
    learn(bank, x, y, torch.tensor([[0.0, 1.0, 0.0]] * 6, dtype=torch.float64))
    changed = ~torch.isclose(before, log_joint(bank, x, y)).all(dim=0)
    assert changed.tolist() == [False, True, True]


def test_a_saved_bank_goes_on_with_the_same_bits():
    bank = bank_of(2, input_shape=(3, 16, 16), n_classes=4, **SMALL)
    other = bank_of(0, input_shape=(3, 16, 16), n_classes=4, **SMALL)
    other.load_state_dict(bank.state_dict())
    x, y = torch.rand(6, 3, 16, 16), torch.arange(6) % 4
    for one in (bank, other):
        learn(one, x, y, torch.full((6, 2), 0.5, dtype=torch.float64))
    assert torch.equal(log_joint(bank, x, y), log_joint(other, x, y))


@pytest.mark.parametrize(
    ("input_shape", "architecture"),
    [((1, 28, 28), "mlp"), ((3, 32, 32), "resnet"), ((8,), "mlp"), ((3, 30, 30), "mlp"), ((3, 8, 8), "mlp")],
)
def test_the_architecture_follows_the_shape_of_a_sample(input_shape, architecture):
    assert CNDPMSettings.paper().experts.architecture.resolved(input_shape).kind == architecture
