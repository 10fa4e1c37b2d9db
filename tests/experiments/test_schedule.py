"""When a run evaluates."""

from hypothesis import given
from hypothesis import strategies as st

from cndpm.experiments.schedule import RunSchedule, evenly_spaced, run_length, window_size
from cndpm.streams import load_scenario


@given(st.integers(1, 5000), st.integers(0, 200))
def test_evenly_spaced_points_lie_within_the_run_and_include_its_end(n_batches, points):
    steps = evenly_spaced(n_batches, points)
    assert len(steps) <= points
    assert all(1 <= step <= n_batches for step in steps)
    assert points == 0 or n_batches in steps


@given(st.integers(10, 5000), st.integers(1, 10))
def test_evenly_spaced_points_are_evenly_spaced(n_batches, points):
    steps = sorted(evenly_spaced(n_batches, points))
    gaps = [b - a for a, b in zip([0, *steps], steps, strict=False)]
    assert max(gaps) - min(gaps) <= 1


def test_every_stage_end_but_the_last_is_evaluated_in_the_loop():
    stream = load_scenario("split-digits").build(seed=0)
    schedule = RunSchedule.of(stream, n_batches=stream.n_batches, evaluations=0, log_points=1)
    assert schedule.evaluations == set(stream.stage_starts[1:])
    assert schedule.stage_ends == {*stream.stage_starts[1:], stream.n_batches}


def test_a_window_has_a_hundred_samples_or_as_many_as_make_two_hundred_windows():
    assert (window_size(6000), window_size(60000), window_size(60001)) == (100, 300, 301)


def test_a_run_ends_with_its_stream_or_where_it_is_told_to():
    stream = load_scenario("split-digits").build(seed=0)
    assert run_length(stream, None) == run_length(stream, 10**6) == stream.n_batches
    assert run_length(stream, 5) == 5
