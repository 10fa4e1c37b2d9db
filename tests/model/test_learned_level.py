"""What comes is judged in company: with its window, and with the latest samples of its label."""

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cndpm.experts.bank import Evidence
from cndpm.model.learned_level import LabelWindows, LearnedLevel


def normal(n: int, seed: int, shift: float = 0.0) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 5 + 100 + shift


def add_expert(novelty: LearnedLevel, margin: torch.Tensor, labels: torch.Tensor | None = None) -> None:
    """One expert more, with margins of held-out samples that are its own."""
    log_known = torch.full((len(margin), len(novelty.state_dict()["record"]["values"]) + 1), -1e9, dtype=torch.float64)
    log_known[:, -1] = margin
    novelty.add_expert(Evidence(log_known, torch.zeros_like(margin)), labels)


def calibrated(**options) -> LearnedLevel:
    novelty = LearnedLevel(**options)
    add_expert(novelty, normal(200, 0))
    return novelty


def judge(novelty: LearnedLevel, margin: torch.Tensor) -> torch.Tensor:
    return novelty.route(Evidence(margin[:, None], torch.zeros_like(margin)), None).is_new


def share_new(novelty: LearnedLevel, values: torch.Tensor, batch: int = 10) -> float:
    return float(torch.cat([judge(novelty, part) for part in values.split(batch)]).float().mean())


@pytest.mark.parametrize("batch", [1, 10, 64])
def test_known_samples_are_rarely_called_new(batch):
    assert share_new(calibrated(), normal(5000, 5), batch) < 0.03


@pytest.mark.parametrize("batch", [1, 10, 64])
def test_a_slight_shift_of_everything_is_noticed_by_pooling(batch):
    """A shift by 1.5 deviations: a single sample tells little, ten together tell."""
    shifted = normal(1000, 6, shift=-7.5)
    assert share_new(calibrated(), shifted, batch) > 0.5
    assert share_new(calibrated(window=1), shifted[:20], batch) < 0.5


def levels_of(novelty):
    """Log alpha of every expert, (K,)."""
    return novelty.state_dict()["record"]["levels"][0]


def test_a_stray_moderate_outlier_stays_known_but_an_unseen_label_does_not():
    batch = normal(10, 7)
    batch[3] = 100 - 5 * 3.0
    assert not judge(calibrated(), batch)[3]
    batch[3] = -1e6
    verdict = judge(calibrated(), batch)
    assert verdict.nonzero().tolist() == [[3]]


def test_strays_among_anothers_samples_do_not_become_what_an_expert_is_used_to():
    novelty = calibrated()
    add_expert(novelty, normal(200, 1))
    before = levels_of(novelty)[0]
    for i in range(300):
        own, strays = normal(9, 10 + i), normal(1, 1000 + i, shift=-15)
        to_second = torch.stack([torch.full_like(own, -1e3), own], dim=1)
        to_first = torch.stack([strays, torch.full_like(strays, -1e3)], dim=1)
        novelty.route(Evidence(torch.cat([to_second, to_first]), torch.zeros(10, dtype=torch.float64)), None)
    assert levels_of(novelty)[0] == before


def test_a_level_moves_with_the_evidence():
    fallen = normal(300, 7, shift=-60)
    assert share_new(calibrated(), fallen) > 0.9
    novelty = calibrated()
    novelty.follow(torch.tensor([-60.0, float("nan")]))
    assert share_new(novelty, fallen) < 0.05
    novelty.follow(torch.tensor([float("nan")]))
    assert share_new(novelty, fallen) < 0.05


def test_each_expert_has_its_own_level():
    novelty = calibrated()
    add_expert(novelty, normal(200, 8, shift=-500))
    log_known = torch.stack([torch.full((50,), -1e6, dtype=torch.float64), normal(50, 9, shift=-500)], dim=1)
    assert not novelty.route(Evidence(log_known, torch.zeros(50, dtype=torch.float64)), None).is_new.any()
    assert share_new(novelty, torch.stack([normal(50, 9, shift=-500)])[0]) > 0.9


def test_a_restored_record_judges_alike():
    novelty = calibrated()
    share_new(novelty, normal(333, 10), 7)
    restored = LearnedLevel()
    restored.load_state_dict(novelty.state_dict())
    for values in normal(300, 11, shift=-6).split(10):
        assert torch.equal(judge(novelty, values), judge(restored, values))


def test_removing_an_expert_forgets_its_level_only():
    novelty = calibrated()
    before = levels_of(novelty)
    add_expert(novelty, normal(200, 8, shift=-500))
    novelty.remove_expert(1)
    assert torch.equal(levels_of(novelty), before)


def test_a_rate_that_is_no_rate_is_refused():
    with pytest.raises(ValueError, match="between 1e-9 and"):
        LearnedLevel(novelty_rate=0.7)


# Labels


def erring(n: int, seed: int, error_rate: float) -> torch.Tensor:
    """Margins of a label that its expert has learned, but for a share of errors as deep as a new label's."""
    generator = torch.Generator().manual_seed(seed)
    wrong = torch.rand(n, generator=generator) < error_rate
    return torch.where(wrong, normal(n, seed, shift=-700), normal(n, seed + 1))


def labelled_stream(new_share: float, error_rate: float, n: int = 1000) -> tuple[torch.Tensor, torch.Tensor]:
    """Margins and labels: 0 and 1 are known, 2 is new."""
    generator = torch.Generator().manual_seed(5)
    labels = torch.randint(2, (n,), generator=generator)
    labels[torch.rand(n, generator=generator) < new_share] = 2
    return torch.where(labels == 2, normal(n, 6, shift=-700), erring(n, 8, error_rate)), labels


def judged(novelty: LearnedLevel, margin: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    parts = zip(margin.split(10), labels.split(10), strict=True)
    return torch.cat([novelty.route(Evidence(m[:, None], torch.zeros_like(m)), y).is_new for m, y in parts])


def taught(error_rate: float) -> LearnedLevel:
    novelty = LearnedLevel()
    add_expert(novelty, erring(100, 0, error_rate), torch.arange(100) % 2)
    return novelty


@settings(max_examples=10, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # each takes a while to shrink
@given(st.floats(0.02, 0.3), st.floats(0.0, 0.15))
def test_errors_on_known_labels_stay_and_a_new_label_does_not_however_rare(new_share, error_rate):
    margin, labels = labelled_stream(new_share, error_rate)
    verdict = judged(taught(error_rate), margin, labels)
    assert verdict[labels != 2].double().mean() < 0.04
    assert verdict[labels == 2].double().mean() > 0.95


def test_a_label_is_no_longer_new_when_an_expert_has_learned_it():
    novelty = taught(0.05)
    margin, labels = labelled_stream(0.1, 0.05)
    judged(novelty, margin, labels)
    assert novelty.is_still_new(torch.tensor([0, 1, 2])).tolist() == [False, False, True]
    add_expert(novelty, normal(40, 3), torch.full((40,), 2))
    assert novelty.is_still_new(torch.tensor([0, 1, 2])).tolist() == [False, False, False]


def test_known_labels_in_a_new_domain_are_new():
    novelty = taught(0.02)
    labels = torch.arange(300) % 2
    assert judged(novelty, normal(300, 11, shift=-300), labels).double().mean() > 0.95
    assert novelty.is_still_new(torch.tensor([0, 1])).all()


def test_a_restored_record_judges_labels_alike():
    novelty, restored = taught(0.05), LearnedLevel()
    margin, labels = labelled_stream(0.2, 0.05, n=600)
    judged(novelty, margin[:300], labels[:300])
    restored.load_state_dict(novelty.state_dict())
    assert torch.equal(judged(novelty, margin[300:], labels[300:]), judged(restored, margin[300:], labels[300:]))


@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=6), max_size=8), st.integers(1, 5))
def test_the_share_of_a_label_is_that_of_its_latest_samples(batches, window):
    windows, latest = LabelWindows(window), {0: [], 1: [], 2: []}
    for batch in batches:
        labels = np.array([label for label, _ in batch], dtype=np.int64)
        windows.push(np.array([strange for _, strange in batch], dtype=bool), labels)
        for label, strange in batch:
            latest[label].append(float(strange))
    for label, values in latest.items():
        share = windows.shares(np.array([label]))[0]
        assert share == pytest.approx(sum(values[-window:]) / len(values[-window:])) if values else share != share


def expected_levels(record: np.ndarray, rate: float = 0.01) -> tuple[float, float, float]:
    """Level, median and lower deviation of a record, by numpy's own quantiles."""
    half, low, quarter, twentieth = np.quantile(record, [0.5, 0.16, 0.25, 0.05])
    tails = ((quarter - twentieth) / np.log(5), (half - quarter) / np.log(2))
    return max(quarter - tail * np.log(0.25 / rate) for tail in tails), half, half - low


def test_levels_follow_the_margins_of_each_experts_own_known_samples():
    """Two experts, whose records are the held-out margins and then what came, each its own; measured as they grow."""
    novelty = LearnedLevel()
    held_out = [normal(50, 20), normal(50, 21, shift=900.0)]
    for margin in held_out:
        add_expert(novelty, margin, torch.zeros(50, dtype=torch.int64))
    known = torch.stack([normal(400, 22), normal(400, 23, shift=900.0)], dim=1)
    own = torch.arange(400) % 2
    log_known = torch.full((400, 2), -1e9, dtype=torch.float64)
    log_known[torch.arange(400), own] = known[torch.arange(400), own]
    for part in torch.arange(400).split(25):
        routing = novelty.route(Evidence(log_known[part], torch.zeros(25)), torch.zeros(25, dtype=torch.int64))
        assert not routing.is_new.any()
    for k in range(2):
        record = np.concatenate([held_out[k].numpy(), known[own == k, k].numpy()])
        levels = novelty.state_dict()["record"]["levels"][:, k]
        np.testing.assert_allclose(levels.numpy(), expected_levels(record), rtol=1e-9)


def test_the_latest_five_hundred_margins_of_an_expert_are_kept_and_ten_samples_are_judged_together():
    novelty = LearnedLevel()
    assert (novelty.capacity, novelty.window, novelty.novelty_rate) == (500, 10, 0.01)
    add_expert(novelty, normal(700, 24))
    record = novelty.state_dict()["record"]["values"]
    assert torch.equal(record[0], normal(700, 24)[-500:])


def labelled(novelty: LearnedLevel, margin: torch.Tensor, label: int) -> torch.Tensor:
    labels = torch.full((len(margin),), label)
    return novelty.route(Evidence(margin[:, None], torch.zeros_like(margin)), labels).is_new


def test_a_label_is_new_when_more_than_half_of_its_latest_samples_are_strange():
    for n_strange, is_new in ((5, False), (6, True)):
        margin = normal(10, 25)
        margin[:n_strange] = -1e4
        verdict = labelled(calibrated(), margin.flip(0), 0)
        assert bool(verdict.any()) is is_new


def test_labelled_samples_that_are_new_together_are_new_but_for_those_above_the_median():
    """A shift by two deviations, none of it below the level: a labelled window tells as an unlabelled one does."""
    novelty = calibrated()
    margin = normal(60, 26, shift=-10.0)
    margin = margin[margin > levels_of(novelty)[0]][:40]
    margin[20] = 112.0
    verdict = torch.cat([labelled(novelty, part, 0) for part in margin.split(20)])
    assert verdict[:20].float().mean() > 0.8
    assert not verdict[20]


def test_the_level_of_windows_lies_halfway_to_what_a_window_can_reach_at_most():
    """Known windows that were all alike strange would otherwise put the level beyond every window."""
    novelty = calibrated()
    state = novelty.state_dict()
    n, mean, deviation = novelty._record.clipped_moments()
    normal_level = mean + 2.3263478740408408 * deviation / np.sqrt(10)
    assert n == 200 and float(state["window_level"]) == pytest.approx(normal_level)
    for windows, level in ((np.full(60, -0.95), (normal_level + 1) / 2), (np.full(30, -0.95), normal_level)):
        novelty.load_state_dict({**state, "windows": torch.tensor(windows)})
        novelty.follow(torch.zeros(1))
        assert float(novelty.state_dict()["window_level"]) == pytest.approx(level)


def test_windows_are_noted_once_for_each_stretch_and_only_where_they_are_known():
    novelty = calibrated()
    judge(novelty, normal(100, 27))
    assert len(novelty.state_dict()["windows"]) == 10
    judge(novelty, torch.full((100,), 60.0, dtype=torch.float64))
    assert len(novelty.state_dict()["windows"]) <= 11


def test_a_new_expert_begins_with_its_own_samples_new_labels_and_a_new_window():
    novelty = calibrated()
    labelled(novelty, torch.full((10,), -1e4, dtype=torch.float64), 3)
    assert novelty.is_still_new(torch.tensor([3])).all()
    judge(novelty, normal(10, 28))
    log_known = torch.stack([normal(40, 29), normal(40, 30)], dim=1)
    log_known[:25, 1] += 900
    log_known[25:, 0] += 900
    novelty.add_expert(Evidence(log_known, torch.zeros(40, dtype=torch.float64)), torch.full((40,), 3))
    state = novelty.state_dict()
    record = state["record"]["values"][1]
    assert torch.equal(record[~record.isnan()], log_known[:25, 1])
    assert not novelty.is_still_new(torch.tensor([3])).any()
    assert len(state["by_label"]["3"]) == 10 and not state["by_label"]["3"].any()
    assert len(state["history"]) == 0


def test_what_was_noted_of_a_label_is_forgotten_when_an_expert_of_it_comes():
    novelty = calibrated()
    labelled(novelty, torch.full((10,), -1e4, dtype=torch.float64), 3)
    add_expert(novelty, normal(6, 31), torch.full((6,), 3))
    assert novelty.state_dict()["by_label"]["3"].tolist() == [0.0] * 6
