"""Experts of rows whose scale changes."""

import pytest
import torch

from cndpm.experts.chunks import Samples
from cndpm.experts.features import FourierFeatures
from cndpm.experts.gaussian import GaussianBank, RangedGaussianBank
from cndpm.state import StateError


def rows(n, seed=0, factor=1.0):
    x = torch.randn(n, 5, generator=torch.Generator().manual_seed(seed))
    return factor * x, (x[:, 0] > 0).long()


def found(bank, x, y):
    bank.found(Samples(x), y)
    assert bank.train(1) == 1


def bank_of(*factors, kind=RangedGaussianBank):
    bank = kind(FourierFeatures(40), n_classes=2)
    for k, factor in enumerate(factors):
        x, y = rows(300, seed=k, factor=factor)
        if k:
            assert bank.adapt(x)
        found(bank, x, y)
    return bank


def test_in_one_range_it_routes_as_the_plain_bank_does_to_the_bit():
    x, y = rows(50, seed=9)
    answers = []
    for kind in (GaussianBank, RangedGaussianBank):
        bank = bank_of(1.0, kind=kind)
        bank.learn(Samples(x), y, torch.ones(50, 1).double())
        answers.append(bank.evidence(Samples(x), y))
    assert all(torch.equal(mine, plain) for mine, plain in zip(*answers, strict=True))


def test_it_does_not_foretell_how_well_it_would_answer_which_pools_do_in_its_place():
    plain, ranged = (bank_of(1.0, kind=kind)._gaussians.choice for kind in (GaussianBank, RangedGaussianBank))
    assert plain._accuracy_judged_at and not ranged._accuracy_judged_at
    assert ranged.classes == pytest.approx(10**0.5 * ranged.density)  # half a decade more, as with few samples


def test_rows_of_a_new_range_are_known_to_nobody():
    bank = bank_of(1.0)
    x, y = rows(300, seed=3, factor=4.0)
    assert not bank.adapt(rows(300, seed=4)[0])
    before = bank.evidence(Samples(x), y).log_known
    assert bank.adapt(x)
    is_new = bank.range_of(Samples(x)) == 1
    after = bank.evidence(Samples(x), y).log_known
    assert before.min() > -1e5 and is_new.float().mean() > 0.95 and after[is_new].max() < -9e5
    assert not bank.adapt(x)


def test_experts_answer_for_the_ranges_they_have_learned():
    bank = bank_of(1.0, 4.0)
    for factor, k in ((1.0, 0), (4.0, 1)):
        x, y = rows(400, seed=7, factor=factor)
        gate = bank.log_density(Samples(x)).argmax(dim=1)
        mine = gate == k
        assert mine.float().mean() > 0.95
        answers = bank.predictive(Samples(x))[:, k].argmax(dim=1)
        assert (answers == y)[mine].float().mean() > 0.9


def test_a_chunk_that_was_seen_before_a_range_began_is_seen_anew():
    """Features and whitened rows of a chunk are computed ahead."""
    bank, fresh = bank_of(1.0), bank_of(1.0)
    x, y = rows(300, seed=3, factor=4.0)
    chunk = Samples(x)
    bank.evidence(chunk, y), bank.log_density(chunk, exact=True), bank.log_density(chunk, exact=False)
    for each in (bank, fresh):
        assert each.adapt(x)
    assert torch.equal(bank.evidence(chunk, y).log_known, fresh.evidence(Samples(x), y).log_known)
    for exact in (True, False):
        assert torch.equal(bank.log_density(chunk, exact=exact), fresh.log_density(Samples(x), exact=exact))


def test_a_memory_says_nothing_of_ranges_that_none_of_it_is_of():
    bank = bank_of(1.0, 4.0)
    memory, y = rows(20, seed=5, factor=4.0)
    waiting = bank.provisional(Samples(memory), y)
    narrow = rows(200, seed=6)[0]
    narrow = narrow[bank.range_of(Samples(narrow)) == 0]
    assert waiting.log_density(Samples(narrow)).max() < -1e5
    assert waiting.log_density(Samples(memory)).max() > -1e5


def test_the_units_of_a_range_are_those_of_its_first_expert():
    x, y = rows(300, seed=3, factor=4.0)
    bank = bank_of(1.0)
    bank.adapt(x)
    assert bank.ranges.scales[1].tolist() == pytest.approx(x[-25:].std(dim=0, correction=0).tolist(), rel=1e-4)
    mine = x[bank.range_of(Samples(x)) == 1]
    found(bank, x, y)
    assert bank.ranges.scales[1].tolist() == pytest.approx(mine.std(dim=0, correction=0).tolist(), rel=1e-4)


def test_an_expert_that_takes_another_over_knows_its_ranges():
    bank = bank_of(1.0, 4.0)
    bank.remove(0, into=1)
    assert bank.knows.tolist() == [[True, True]]


def test_merged_banks_keep_experts_of_different_ranges_apart():
    first, second = bank_of(1.0), RangedGaussianBank(FourierFeatures(40), n_classes=2)
    second.adopt(first.representation())
    x, y = rows(300, seed=0)
    found(second, x, y)
    wide, labels = rows(300, seed=3, factor=4.0)
    assert second.adapt(wide)
    found(second, wide, labels)
    first.extend(second)
    assert first.knows.tolist() == [[True, False], [True, False], [False, True]]
    alike = first.affinity()
    assert alike[0, 1] > -1e6 and max(alike[0, 2], alike[1, 2]) < -1e11
    explained = first.explained(torch.full((3,), -1e9).double(), [0, 1, 1])
    assert explained[0, 2] == explained[2, 0] == 0 and explained[1, 0] > 0
    first.unite([[0, 1], [2]])
    assert first.knows.tolist() == [[True, False], [False, True]]


def test_the_bank_is_restored_to_the_bit():
    bank, other = bank_of(1.0, 4.0), RangedGaussianBank(FourierFeatures(40), n_classes=2)
    state = bank.state_dict()
    other.load_state_dict(state)
    x, y = rows(60, seed=8, factor=4.0)
    for each in (bank, other):
        each.learn(Samples(x[:30]), y[:30], torch.tensor([[0.0, 1.0]]).double().expand(30, -1))
    assert torch.equal(bank.evidence(Samples(x), y).log_known, other.evidence(Samples(x), y).log_known)
    state["knows"] = state["knows"][:1]
    with pytest.raises(StateError, match="knows"):
        other.load_state_dict(state)
