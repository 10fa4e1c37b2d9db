"""What a bank of networks learns of a batch: by whom, how much, and what is counted."""

import pytest
import torch

from asking import make_bank
from cndpm.experts.chunks import Samples
from cndpm.experts.neural.lateral_predictors import Classifier
from cndpm.experts.neural.panel import Lineup
from cndpm.model.settings import CNDPMSettings

SMALL = {"hidden": 4, "hidden_growth": 2, "latent_dim": 2, "density_sleep_steps": 20, "predictor_sleep_steps": 20}


def make(*centres: float, n_classes: int | None = 3, **changes):
    settings = CNDPMSettings.paper(**SMALL).changed(**changes)
    bank = make_bank(settings, input_shape=(6,), n_classes=n_classes, seed=0, device=torch.device("cpu"))
    bank.admit(3)
    for seed, centre in enumerate(centres):
        bank.found(memory(centre, seed), torch.full((9,), seed % 3))
        while bank.train(50) < 1:
            pass
    return bank


def memory(centre: float, seed: int, n: int = 9) -> Samples:
    x = centre + 0.1 * torch.rand(n, 6, generator=torch.Generator().manual_seed(seed))
    return Samples(x)


def weights(bank) -> list[list[torch.Tensor]]:
    return [[p.detach().clone() for part, _ in expert.parts for p in part.parameters()] for expert in bank.experts]


def changed(before, bank) -> list[bool]:
    """Whether each expert's weights are others now."""
    pairs = zip(before, weights(bank), strict=True)
    return [any(not torch.equal(a, b) for a, b in zip(old, new, strict=True)) for old, new in pairs]


def test_an_expert_is_updated_where_its_share_of_the_batch_exceeds_the_least():
    for min_share, expected in ((0.0, [True, True]), (0.15, [True, False])):
        bank = make(0.1, 0.8, min_share=min_share)
        before = weights(bank)
        responsibilities = torch.tensor([[0.9, 0.1]] * 4, dtype=torch.float64)
        bank.learn(memory(0.1, 7, 4), torch.zeros(4, dtype=torch.long), responsibilities)
        assert changed(before, bank) == expected
        assert bank.counts.tolist() == pytest.approx([12.6, 9.4])


def test_an_expert_learns_by_its_own_responsibilities():
    bank = make(0.1, 0.8)
    before = weights(bank)
    nobody_but_the_second = torch.tensor([[0.0, 1.0]] * 4, dtype=torch.float64)
    bank.learn(memory(0.8, 7, 4), torch.zeros(4, dtype=torch.long), nobody_but_the_second)
    assert changed(before, bank) == [False, True]


def test_samples_that_are_not_counted_teach_all_the_same():
    bank = make(0.1)
    before = weights(bank)
    bank.learn(memory(0.1, 7, 4), torch.zeros(4, dtype=torch.long), torch.ones(4, 1).double(), counted=False)
    assert changed(before, bank) == [True] and bank.counts.tolist() == [9.0]


def test_an_expert_that_goes_leaves_its_count_to_another():
    bank = make(0.1, 0.5, 0.8)
    bank.remove(2, into=0)
    assert bank.counts.tolist() == [18.0, 9.0]
    bank.remove(1, into=None)
    assert bank.counts.tolist() == [18.0]


def test_a_label_is_an_experts_own_once_it_takes_half_of_a_sample():
    """A class that was never an expert's own is the least probable under it, however often it came to another."""
    for share, is_known in ((0.4, False), (0.5, True)):
        bank = make(0.1, 0.8, n_classes=None)
        asked = memory(0.1, 8, 3)
        responsibilities = torch.tensor([[share, 1 - share]] * 4, dtype=torch.float64)
        bank.learn(memory(0.1, 7, 4), torch.full((4,), 2), responsibilities)
        log_proba = bank.predictive(asked)[:, 0, 2]
        assert bool((log_proba > -5).all()) is is_known


def test_the_expert_whose_density_explains_samples_best_is_found():
    bank = make(0.05, 0.9, density_sleep_steps=100)
    assert bank.panel.best_of(memory(0.05, 9).x) == 0
    assert bank.panel.best_of(memory(0.9, 9).x) == 1


def test_no_gradient_reaches_earlier_experts():
    bank = make(0.1, 0.8)
    x = memory(0.1, 9).x
    assert all(not feature.requires_grad for part in bank.panel.offered(x) for feature in part)
    first, second = Classifier((6,), 3, hidden=(4,)), Classifier((6,), 3, hidden=(2,), lateral_widths=(4,))
    looped = Lineup([first, second], [False, False], sharing=True)
    loss = second.loss(x, torch.zeros(9, dtype=torch.long), looped.lateral(1, looped.survey(x)))
    loss.sum().backward()
    assert all(p.grad is None for p in first.parameters()) and any(p.grad is not None for p in second.parameters())


def test_densities_and_predictors_learn_beside_the_features_of_their_own_kind():
    """The step of an expert, against one of its parts with the features that its lineups offer."""
    bank, twin = make(0.1, 0.8), make(0.1, 0.8)
    samples, y = memory(0.8, 7, 4), torch.ones(4, dtype=torch.long)
    nobody_but_the_second = torch.tensor([[0.0, 1.0]] * 4, dtype=torch.float64)
    bank.learn(samples, y, nobody_but_the_second)
    lineup, expert = twin.panel.lineups[1], twin.experts[1]
    expert.learn_predictor(samples.x, y, torch.ones(4), lineup.lateral(1, lineup.survey(samples.x)))
    for one, two in zip(bank.experts[1].predictor.parameters(), expert.predictor.parameters(), strict=True):
        torch.testing.assert_close(one, two)


def test_features_that_are_kept_of_a_batch_are_let_go_when_something_was_learned():
    bank = make(0.1, 0.8)
    samples, y = memory(0.8, 7, 5), torch.ones(5, dtype=torch.long)
    bank.evidence(samples, y)
    bank.learn(samples, y, torch.tensor([[1.0, 0.0]] * 5, dtype=torch.float64))
    fresh = Samples(samples.x)
    assert torch.equal(bank.evidence(samples, y).log_known, bank.evidence(fresh, y).log_known)
    assert torch.equal(bank.predictive(samples), bank.predictive(fresh))
