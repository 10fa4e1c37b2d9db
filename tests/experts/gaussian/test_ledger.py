import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asking import found, predictive
from cndpm.experts.chunks import Samples, open_block
from cndpm.experts.features import IdentityFeatures
from cndpm.experts.gaussian import GaussianBank
from cndpm.experts.gaussian.factor import Whitened
from cndpm.experts.gaussian.ledger import Ledger
from cndpm.state import load_state, save_state

D = 40


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def opened(n: int, n_components: int, seed: int) -> tuple[Ledger, Samples, torch.Tensor]:
    rows, anchors = numbers(n, D, seed=seed), numbers(n_components + 2, D, seed=seed + 1)
    whole = Samples(rows)
    window = Whitened(rows + 1, rows)
    return Ledger(whole, 0, window, anchors[:-2] * 2, anchors), whole, anchors


@settings(deadline=None, max_examples=30)
@given(n=st.integers(1, 30), n_components=st.integers(1, 5), n_batches=st.integers(0, 4), seed=st.integers(0, 99))
def test_products_and_sums_are_those_of_anchors_that_moved_with_every_batch(n, n_components, n_batches, seed):
    ledger, whole, anchors = opened(n, n_components, seed)
    rows, moved, sums = whole.x, anchors.clone(), anchors[:-2] * 2
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
    assert ledger.place(whole.part(5, 9)) == slice(5, 9)
    assert ledger.place(Samples(whole.x)) is None
    assert ledger.place(whole.part(5, 9).alone()) is None


def test_rows_that_are_learned_twice_count_twice():
    ledger, whole, anchors = opened(8, 2, 0)
    weights = numbers(5, 2, seed=3).abs()
    for _ in range(2):
        ledger.add(slice(0, 5), weights.numpy())
    torch.testing.assert_close(ledger.sums(), anchors[:-2] * 2 + 2 * weights.T @ (whole.x[:5] + 1))


def test_a_window_is_recalled_for_its_own_rows_alone():
    ledger, whole, _ = opened(8, 2, 0)
    ledger.add(slice(0, 5), numbers(5, 2, seed=3).numpy())
    for rows, is_its_own in ((whole.x, True), (whole.x + 1e-9, False)):
        found = Ledger.recalled(ledger.state_dict(), Samples(rows).part(5, 8), Whitened(rows + 1, rows))
        assert (found is not None) == is_its_own


def labelled(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = numbers(n, D, seed=seed).float()
    y = (x[:, 0] > 0).long()
    return x + y[:, None], y


class SmallChunks(GaussianBank):
    """A bank whose chunks are as small as on a GPU."""

    def open(self, x, batch_size=None, *, start=0):
        return open_block(x, batch_size, chunk_size=35, start=start, in_order=True)


def empty(*, ahead: bool = False) -> GaussianBank:
    """A bank; `ahead` as on a GPU."""
    return (SmallChunks if ahead else GaussianBank)(IdentityFeatures(), n_classes=2)


def founded(*, ahead: bool = False) -> GaussianBank:
    bank = empty(ahead=ahead)
    found(bank, *labelled(90, 1))
    return bank


def look(bank: GaussianBank, start: int) -> None:
    """Asks for everything that must change nothing: samples of the same block too, but not in their order."""
    x, y = labelled(210, 2)
    for exact in (True, False):
        bank.predictive(Samples(x[:9]), exact=exact), bank.log_density(Samples(x[:9]), exact=exact)
        bank.provisional(Samples(x[:30]), y[:30], exact=exact).predictive(Samples(x[30:40]))
    bank.evidence(Samples(x[start + 3 : start + 30]), y[start + 3 : start + 30])
    bank.evidence(Samples(labelled(5, 3)[0]), labelled(5, 3)[1])
    bank.log_leave_one_out(Samples(x[:9]), y[:9]), bank.state_dict()


def taught(bank: GaussianBank, first: int, last: int, *, opened: bool = True, looking: bool = False) -> list:
    """Evidence of batches of 7 of a block of 30, each before it was learned."""
    x, y = labelled(210, 2)
    evidence, weights = [], torch.full((7, 1), 0.75, dtype=torch.float64)
    batches = bank.open(x, 7, start=7 * first) if opened else map(Samples, x[7 * first :].split(7))
    for i, samples in zip(range(first, last), batches, strict=False):
        labels = y[7 * i : 7 * i + 7]
        log_known, log_new = bank.evidence(samples, labels)
        evidence.append(torch.cat([log_known, log_new[:, None]], dim=1))
        bank.learn(samples, labels, weights)
        if looking:
            look(bank, 7 * i)
    return evidence


def same_bits(a, b) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_bits(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_bits, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("ahead", [False, True])
def test_batches_of_a_window_have_the_evidence_of_those_that_come_alone(ahead):
    plain, opened = founded(), founded(ahead=ahead)
    alone, together = taught(plain, 0, 30, opened=False), taught(opened, 0, 30)
    assert opened._gaussians._ledger is not None
    assert plain._gaussians._ledger is None
    for a, b in zip(alone, together, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-7)
    torch.testing.assert_close(plain._gaussians.statistics.sums, opened._gaussians.statistics.sums)
    x, _ = labelled(40, 5)
    torch.testing.assert_close(predictive(plain, x), predictive(opened, x))
    torch.testing.assert_close(predictive(plain, x, exact=False), predictive(opened, x, exact=False))


@pytest.mark.parametrize("ahead", [False, True])
def test_looking_changes_no_bit_of_what_follows(ahead):
    quiet, watched = founded(ahead=ahead), founded(ahead=ahead)
    assert same_bits(taught(quiet, 0, 30), taught(watched, 0, 30, looking=True))
    assert same_bits(quiet.state_dict(), watched.state_dict())


@pytest.mark.parametrize("ahead", [False, True])
def test_a_bank_that_stops_within_a_window_goes_on_to_the_bit(ahead, tmp_path):
    whole = founded(ahead=ahead)
    evidence = taught(whole, 0, 30)
    for stop in (1, 4, 9, 20):
        first, second = founded(ahead=ahead), empty(ahead=ahead)
        taught(first, 0, stop)
        save_state(tmp_path / f"{stop}", first.state_dict(), kind="bank")
        second.load_state_dict(load_state(tmp_path / f"{stop}", kind="bank"))
        assert same_bits(second.state_dict(), first.state_dict())
        assert same_bits(taught(second, stop, 30), evidence[stop:])
        assert same_bits(second.state_dict(), whole.state_dict())


def test_a_bank_that_goes_on_with_other_data_forgets_its_window():
    first, second = founded(), empty()
    taught(first, 0, 4)
    second.load_state_dict(first.state_dict())
    x, y = labelled(30, 8)
    for bank in (first, second):
        for samples in bank.open(x, 30):
            bank.evidence(samples, y)
            bank.learn(samples, y, torch.ones(30, 1, dtype=torch.float64))
    assert same_bits(second.state_dict(), first.state_dict())


def test_samples_that_nobody_asked_about_are_learned_outside_a_window():
    first, second = founded(), empty()
    taught(first, 0, 4)
    second.load_state_dict(first.state_dict())
    x, y = labelled(30, 8)
    for bank in (first, second):
        for samples in bank.open(x, 30):
            bank.learn(samples, y, torch.ones(30, 1, dtype=torch.float64))
    assert same_bits(second.state_dict(), first.state_dict())
