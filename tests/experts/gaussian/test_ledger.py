import numpy as np
import pytest
import torch
from cndpm.experts.gaussian.rows import FeatureRows
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.experts.features import IdentityFeatures
from cndpm.experts.gaussian import GaussianBank
from cndpm.experts.gaussian.factor import Whitened
from cndpm.experts.gaussian.ledger import Ledger

D = 40


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def opened(n: int, n_components: int, seed: int) -> tuple[Ledger, FeatureRows, torch.Tensor]:
    rows, anchors = numbers(n, D, seed=seed), numbers(n_components + 2, D, seed=seed + 1)
    whole = FeatureRows(rows)
    window = Whitened(rows + 1, rows)
    return Ledger(whole, 0, window, anchors[:-2] * 2, anchors), whole, anchors


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 30), n_components=st.integers(1, 5), n_batches=st.integers(0, 4), seed=st.integers(0, 99))
def test_products_and_sums_are_those_of_anchors_that_moved_with_every_batch(n, n_components, n_batches, seed):
    ledger, whole, anchors = opened(n, n_components, seed)
    rows, moved, sums = whole.z, anchors.clone(), anchors[:-2] * 2
    for i in range(n_batches):
        place, weights = slice(i * n // 4, (i + 1) * n // 4), numbers(n, n_components, seed=seed + 2 + i).abs()
        ledger.add(place, weights[place].numpy())
        moved[:-2] += weights[place].T @ rows[place]
        sums += weights[place].T @ (rows[place] + 1)
    squares, inner, to_mean, lengths = ledger.products(slice(0, n))
    np.testing.assert_allclose(squares, rows.square().sum(dim=1))
    np.testing.assert_allclose(inner, rows @ moved.T, atol=1e-9)
    np.testing.assert_allclose(to_mean, moved @ moved[-1], atol=1e-9)
    np.testing.assert_allclose(lengths, moved.square().sum(dim=1), atol=1e-9)
    torch.testing.assert_close(ledger.anchors(), moved)
    torch.testing.assert_close(ledger.sums(), sums)


def test_rows_of_another_whole_have_no_place():
    ledger, whole, _ = opened(20, 2, 0)
    assert ledger.place(whole.part(slice(5, 9))) == slice(5, 9)
    assert ledger.place(FeatureRows(whole.z)) is None


def samples(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = numbers(n, D, seed=seed).float()
    y = (x[:, 0] > 0).long()
    return x + y[:, None], y


def empty(*, ahead: bool = False) -> GaussianBank:
    """A bank; `ahead` as on a GPU."""
    bank = GaussianBank(IdentityFeatures(), n_classes=2)
    bank._goes_ahead, bank._look_ahead = ahead, 35 if ahead else 500
    return bank


def founded(*, ahead: bool = False) -> GaussianBank:
    bank = empty(ahead=ahead)
    bank.start_expert(*samples(90, 1))
    bank.train_expert(1)
    return bank


def taught(bank: GaussianBank, first: int, last: int, *, announced: bool = True, looking: bool = False) -> list:
    """Evidence of batches of 7 of a stream, each before it was learned."""
    x, y = samples(210, 2)
    evidence = []
    for start in range(7 * first, 7 * last, 7):
        batch = x[start : start + 7], y[start : start + 7]
        if announced:
            bank.announce(batch[0])
        evidence.append(torch.cat([bank.log_joint(*batch), bank.log_joint_new(*batch)[:, None]], dim=1))
        bank.learn(*batch, torch.full((7, 1), 0.75, dtype=torch.float64))
        if looking:
            bank.predictive(x[:9]), bank.log_joint(x[start + 3 : start + 30], y[start + 3 : start + 30])
            bank.log_joint(*samples(5, 3)), bank.state_dict()
    return evidence


def same_bits(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_bits(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_bits, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_batches_that_are_foreseen_have_the_evidence_of_those_that_are_not():
    plain, ahead = founded(), founded(ahead=True)
    for a, b in zip(taught(plain, 0, 30, announced=False), taught(ahead, 0, 30), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-7)
    torch.testing.assert_close(plain._gaussians.statistics.sums, ahead._gaussians.statistics.sums)
    x, _ = samples(40, 5)
    torch.testing.assert_close(plain.predictive(x), ahead.predictive(x))


@pytest.mark.parametrize("ahead", [False, True])
def test_looking_changes_no_bit_of_what_follows(ahead):
    quiet, watched = founded(ahead=ahead), founded(ahead=ahead)
    assert same_bits(taught(quiet, 0, 30), taught(watched, 0, 30, looking=True))
    assert same_bits(quiet.state_dict(), watched.state_dict())


@pytest.mark.parametrize("ahead", [False, True])
def test_a_bank_that_stops_within_a_window_goes_on_to_the_bit(ahead):
    whole = founded(ahead=ahead)
    evidence = taught(whole, 0, 30)
    for stop in (1, 4, 9, 20):
        first, second = founded(ahead=ahead), empty(ahead=ahead)
        taught(first, 0, stop)
        second.load_state_dict(first.state_dict())
        assert same_bits(second.state_dict(), first.state_dict())
        assert same_bits(taught(second, stop, 30), evidence[stop:])
        assert same_bits(second.state_dict(), whole.state_dict())


def test_a_bank_that_goes_on_with_other_data_forgets_its_window():
    first, second = founded(), empty()
    taught(first, 0, 4)
    second.load_state_dict(first.state_dict())
    x, y = samples(30, 8)
    for bank in (first, second):
        bank.announce(x)
        bank.learn(x, y, torch.ones(30, 1, dtype=torch.float64))
    assert same_bits(second.state_dict(), first.state_dict())
