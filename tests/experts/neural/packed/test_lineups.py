"""All experts at once against one after the other."""

import pytest
import torch

from asking import found, log_density, log_joint, n_experts, predictive
from cndpm.experts.chunks import Samples
from cndpm.experts.neural.lateral_predictors import Classifier, Regressor
from cndpm.experts.neural.lesson import LessonSchedule
from cndpm.experts.neural.lineup import LoopedLineup
from cndpm.experts.neural.neural_bank import NeuralBank
from cndpm.experts.neural.neural_expert import PartTraining
from cndpm.experts.neural.packed import lineups
from cndpm.experts.neural.packed.lineups import PackedPredictors, PackedVAEs
from cndpm.experts.neural.vae import VAE

SHAPE = (1, 3, 4)
TRAINING = PartTraining(lr=1e-2, sleep=LessonSchedule(max_steps=5, batch_size=8))


class OwnVAE(VAE):
    """A subclass, which is never packed."""


class OwnClassifier(Classifier):
    """A subclass, which is never packed."""


class OwnRegressor(Regressor):
    """A subclass, which is never packed."""


def make_bank(density, predictor, *, sharing=True, likelihood="unit-gaussian", bound="elbo"):
    def make_density(*, first, lateral_widths):
        hidden = (6, 5) if first else (3, 2)
        return density(
            SHAPE,
            hidden=hidden,
            decoder_hidden=(5, 6),
            latent_dim=3,
            n_samples=4,
            n_train_samples=2,
            likelihood=likelihood,
            bound=bound,
            lateral_widths=lateral_widths,
        )

    def make_predictor(*, first, lateral_widths, n_classes):
        n_outputs = 2 if issubclass(predictor, Regressor) else n_classes
        hidden = (6, 5) if first else (3, 2)
        return predictor(SHAPE, n_outputs, hidden=hidden, lateral_widths=lateral_widths, temperature=0.5)

    return NeuralBank(
        make_density, make_predictor, density_training=TRAINING, predictor_training=TRAINING, sharing=sharing
    )


def data(seed, n, *, regression=False):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, *SHAPE, generator=generator)
    return x, torch.randn(n, 2, generator=generator) if regression else torch.randint(0, 4, (n,), generator=generator)


def grow(bank, n_experts=4, *, regression=False):
    for seed in range(n_experts):
        x, y = data(seed, 12, regression=regression)
        if not regression:
            bank.admit(int(y.max()) + 1)
        found(bank, x, y)
    return bank


def twins(*, sharing=True, regression=False, **density):
    """The same experts, packed and one by one."""
    kinds = (Regressor, OwnRegressor) if regression else (Classifier, OwnClassifier)
    packed = grow(make_bank(VAE, kinds[0], sharing=sharing, **density), regression=regression)
    looped = grow(make_bank(OwnVAE, kinds[1], sharing=sharing, **density), regression=regression)
    assert [type(lineup) for lineup in packed.panel.lineups] == [PackedVAEs, PackedPredictors]
    assert [type(lineup) for lineup in looped.panel.lineups] == [LoopedLineup, LoopedLineup]
    return packed, looped


def assert_alike(packed, looped, *, regression=False):
    x, y = data(99, 9, regression=regression)
    torch.testing.assert_close(log_density(packed, x), log_density(looped, x))
    torch.testing.assert_close(predictive(packed, x), predictive(looped, x))
    # Compared as the networks compute: evidence is float64 of what they round to float32.
    torch.testing.assert_close(log_joint(packed, x, y).float(), log_joint(looped, x, y).float())


@pytest.mark.parametrize("sharing", [True, False])
@pytest.mark.parametrize("regression", [True, False])
def test_packed_answers_equal_those_of_the_experts_one_by_one(sharing, regression):
    assert_alike(*twins(sharing=sharing, regression=regression), regression=regression)


@pytest.mark.parametrize("likelihood", ["bernoulli", "pixel-gaussian", "gaussian", "logistic"])
@pytest.mark.parametrize("bound", ["elbo", "importance-weighted"])
def test_packed_answers_are_right_for_every_likelihood_and_bound(likelihood, bound):
    assert_alike(*twins(likelihood=likelihood, bound=bound))


@pytest.mark.parametrize("most_outputs", [1 << 28, 3 * 4 * 7 * 12])  # all four experts at once, or three and one
def test_likelihoods_with_parameters_of_their_own_are_evaluated_together(most_outputs, monkeypatch):
    monkeypatch.setattr(lineups, "_MOST_OUTPUTS", most_outputs)
    bank, _ = twins(likelihood="pixel-gaussian")
    lineup = bank.panel.lineups[0]
    lineup.batched = True  # as on a GPU
    lineup.own = [torch.stack(tensors) for tensors in zip(*map(lineup._own, lineup.vaes), strict=True)]
    x, _ = data(5, 7)
    one_by_one = [
        expert.density.log_prob(x, lineup.lateral(k, lineup.survey(x))) for k, expert in enumerate(bank.experts)
    ]
    torch.testing.assert_close(log_density(bank, x), torch.stack(one_by_one, dim=1))


def test_packed_answers_follow_what_experts_learn_awake():
    packed, looped = twins()
    x, y = data(7, 6)
    responsibilities = torch.tensor([[0.5, 0.2, 0.3, 0.0]] * 5 + [[0.0] * 4], dtype=torch.float64)
    for bank in (packed, looped):
        for _ in range(3):
            samples = Samples(x)
            bank.evidence(samples, y)
            bank.learn(samples, y, responsibilities)
    assert_alike(packed, looped)


def test_packed_answers_stay_right_when_experts_retire_and_classes_come():
    packed, looped = twins()
    for bank in (packed, looped):
        bank.remove(1, into=0)
        bank.admit(7)
        grow(bank, 1)
    assert n_experts(packed) == n_experts(looped) == 4
    assert_alike(packed, looped)


def test_features_that_are_kept_of_a_batch_are_let_go_when_something_was_learned():
    bank, _ = twins()
    x, y = data(3, 5)
    samples = Samples(x)
    bank.evidence(samples, y)
    bank.learn(samples, y, torch.tensor([[1.0, 0, 0, 0]], dtype=torch.float64).expand(5, 4))
    assert torch.equal(bank.evidence(samples, y).log_known, bank.evidence(Samples(x), y).log_known)
    assert torch.equal(bank.predictive(samples), predictive(bank, x))
