"""The meter: windows cover the stream, end at changes, add up to the whole, and survive a stop."""

import pytest
import torch

from cndpm.experiments.meter import Meter
from cndpm.experiments.scores import ClassAnswers


def batches(n, size=10, seed=0):
    generator = torch.Generator().manual_seed(seed)
    truth, predicted = (torch.randint(3, (n,), generator=generator) for _ in range(2))
    log_truth = -torch.rand(n, generator=generator, dtype=torch.float64)
    parts = (slice(i, i + size) for i in range(0, n, size))
    return [ClassAnswers(predicted[part], truth[part], log_truth[part]) for part in parts]


def windows_of(meter, answers):
    found = [meter.add(part) for part in answers]
    return [window for window in [*found, meter.close()] if window is not None]


def test_windows_cover_the_stream_and_their_mean_is_the_whole():
    meter = Meter("classes", window=40)
    windows = windows_of(meter, batches(230))
    assert [window.first for window in windows] == [0, 40, 80, 120, 160, 200]
    assert [window.n_samples for window in windows] == [40] * 5 + [30]
    for name in ("accuracy", "log_loss"):
        mean = sum(window[name] * window.n_samples for window in windows) / 230
        assert meter.results()[name] == pytest.approx(mean)


def test_a_window_ends_where_the_stream_changes():
    windows = windows_of(Meter("classes", window=50, changes=(70,)), batches(200))
    assert [window.first for window in windows] == [0, 50, 70, 120, 170]


def test_samples_without_an_answer_belong_to_a_window_and_are_not_scored():
    meter = Meter("classes", window=20)
    assert meter.skip(10) is None
    window = meter.add(batches(10)[0])
    assert (window.first, window.n_samples, meter.results()["n_unanswered"]) == (0, 10, 10)
    assert meter.skip(20) is None and meter.results()["n_samples"] == 10


def test_a_window_counts_the_samples_of_every_expert_while_they_grow():
    meter = Meter("classes", window=30)
    gates = [torch.zeros(0, 0), torch.tensor([[0.0]] * 10), torch.tensor([[0.0, 1.0]] * 7 + [[1.0, 0.0]] * 3)]
    *_, window = [meter.add(part, gate) for part, gate in zip(batches(30), gates, strict=True)]
    assert window.experts == [13, 7]
    assert windows_of(Meter("classes", window=30), batches(30))[0].experts is None


def test_a_meter_that_was_stored_goes_on_to_the_same_windows():
    whole = windows_of(Meter("classes", window=40, changes=(70,)), batches(230))
    meter, windows = Meter("classes", window=40, changes=(70,)), []
    for part in batches(230):
        windows.append(meter.add(part))
        state, meter = meter.state_dict(), Meter("classes", window=40, changes=(70,))
        meter.load_state_dict(state)
    assert [window for window in [*windows, meter.close()] if window is not None] == whole


def test_a_change_among_samples_without_an_answer_is_where_it_is():
    meter = Meter("classes", window=10, changes=(15,))
    meter.skip(20)
    for part in batches(10):
        meter.add(part._replace(predicted=part.truth))
    assert [row["change"] for row in meter.results()["recovery"]] == [15]
