import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.mixture.novelty import (
    AutoConcentration,
    accepts_expert,
    margins,
    novelty_level,
    surprise,
    window_means,
)


def normal(n: int, seed: int, shift: float = 0.0) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 + 100 + shift


def calibrated(**options) -> AutoConcentration:
    novelty = AutoConcentration(**options)
    novelty.add_expert(normal(200, 0))
    return novelty


def judge(novelty: AutoConcentration, margin: torch.Tensor) -> torch.Tensor:
    return novelty.judge(margin[:, None], torch.zeros_like(margin))


def share_new(novelty: AutoConcentration, values: torch.Tensor, batch: int = 10) -> float:
    return float(torch.cat([judge(novelty, part) for part in values.split(batch)]).float().mean())


def test_margin_is_against_the_best_expert():
    log_known = torch.tensor([[1.0, 3.0], [0.0, -4.0]])
    margin, expert = margins(log_known, torch.tensor([1.0, 2.0]))
    assert margin.tolist() == [2.0, -2.0]
    assert expert.tolist() == [1, 0]


@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_the_level_lets_about_the_rate_pass(rate):
    level = novelty_level(normal(4000, 1), rate)
    assert rate / 4 < float((normal(20_000, 2) < level).double().mean()) < 1.5 * rate


def test_a_short_record_calls_nothing_new():
    assert float(novelty_level(normal(10, 0), 0.01)) == -torch.inf


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 100), st.floats(-1e4, 1e4))
def test_surprise_does_not_depend_on_the_unit_or_origin_of_densities(scale, origin):
    record, margin = normal(100, 3), normal(20, 4)
    moved = surprise(margin * scale + origin, record * scale + origin)
    torch.testing.assert_close(moved, surprise(margin, record), rtol=1e-5, atol=1e-5)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 25), st.integers(0, 15), st.integers(1, 12))
def test_window_means_are_means_of_a_window_that_holds_the_sample(n, n_history, window):
    values = torch.arange(n, dtype=torch.float64).square()
    history = torch.arange(n_history, dtype=torch.float64)
    joined = torch.cat([history, values])
    width = min(window, len(joined))
    for i, mean in enumerate(window_means(values, history, window)):
        position = n_history + i
        starts = range(max(0, position - width + 1), min(position, len(joined) - width) + 1)
        assert any(abs(float(joined[s : s + width].mean() - mean)) < 1e-9 for s in starts)


@pytest.mark.parametrize("batch", [1, 10, 64])
def test_known_samples_are_rarely_called_new(batch):
    assert share_new(calibrated(), normal(5000, 5), batch) < 0.03


@pytest.mark.parametrize("batch", [1, 10, 64])
def test_a_slight_shift_of_everything_is_noticed_by_pooling(batch):
    """A shift by 1.5 deviations: a single sample tells little, ten together tell."""
    shifted = normal(1000, 6, shift=-7.5)
    assert share_new(calibrated(), shifted, batch) > 0.5
    assert share_new(calibrated(window=1), shifted[:20], batch) < 0.5


def test_a_stray_moderate_outlier_stays_known_but_an_unseen_label_does_not():
    batch = normal(10, 7)
    batch[3] = 100 - 5 * 3.0
    assert not judge(calibrated(), batch)[3]
    batch[3] = -1e6
    verdict = judge(calibrated(), batch)
    assert verdict.nonzero().tolist() == [[3]]


def test_each_expert_has_its_own_level():
    novelty = calibrated()
    novelty.add_expert(normal(200, 8, shift=-500))
    log_known = torch.stack([torch.full((50,), -1e6, dtype=torch.float64), normal(50, 9, shift=-500)], dim=1)
    assert not novelty.judge(log_known, torch.zeros(50, dtype=torch.float64)).any()
    assert share_new(novelty, torch.stack([normal(50, 9, shift=-500)])[0]) > 0.9


def test_a_restored_record_judges_alike():
    novelty = calibrated()
    share_new(novelty, normal(333, 10), 7)
    restored = AutoConcentration()
    restored.load_state_dict(novelty.state_dict())
    for values in normal(300, 11, shift=-6).split(10):
        assert torch.equal(judge(novelty, values), judge(restored, values))


def test_removing_an_expert_forgets_its_level_only():
    novelty = calibrated()
    before = novelty.log_alpha()
    novelty.add_expert(normal(200, 8, shift=-500))
    novelty.remove_expert(1)
    assert torch.equal(novelty.log_alpha(), before)


def test_a_candidate_must_gain_more_than_its_cost():
    known = torch.full((10,), -5.0)
    assert accepts_expert(known + 1, known, cost=9.0)
    assert not accepts_expert(known + 1, known, cost=11.0)
    assert not accepts_expert(known - 1, known, cost=0.0)


def test_a_rate_that_is_no_rate_is_refused():
    with pytest.raises(ValueError, match="between 0 and"):
        AutoConcentration(novelty_rate=0.7)
