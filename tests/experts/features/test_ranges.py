"""Ranges of rows: when one is left, which one rows belong to, and units."""

import pytest
import torch

from cndpm.experts.features.ranges import MOST_RANGES, Ranges, column_log_density
from cndpm.state import StateError


def normal(n, d=6, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed))


def begun(rows=None):
    ranges = Ranges()
    ranges.begin(normal(400) if rows is None else rows)
    return ranges


@pytest.mark.parametrize(("factor", "is_left"), [(0.1, False), (1.0, False), (1.5, False), (3.0, True), (100.0, True)])
def test_a_range_is_left_by_rows_that_spread_more_than_twice_as_wide(factor, is_left):
    assert begun().is_left(factor * normal(200, seed=1)) is is_left


def test_neither_a_new_place_nor_several_in_turn_leave_a_range():
    ranges = begun()
    assert not ranges.is_left(torch.cat([normal(30, seed=1), normal(30, seed=2) + 50]))
    places = 50 * torch.tensor([0.0, 1.0, 2.0]).repeat(20)[:, None]
    assert not ranges.is_left(normal(60, seed=3) + places)


def test_one_column_in_three_that_spreads_wider_is_no_new_range():
    rows = normal(200, seed=1)
    rows[:, :2] *= 100
    assert not begun().is_left(rows)


def test_forty_rows_tell_and_fewer_than_fifty_are_not_asked():
    ranges, wide = begun(), 3 * normal(50, seed=1)
    assert ranges.is_left(torch.cat([normal(10, seed=2), wide[:40]]))
    assert not ranges.is_left(torch.cat([normal(40, seed=2), wide[:10]]))
    assert not ranges.is_left(wide[:49])


def test_rows_belong_to_the_range_they_are_likeliest_in_and_get_its_units():
    ranges = begun()
    ranges.add(9 * normal(100, seed=1) + 5)
    narrow, wide = normal(300, seed=2), 9 * normal(300, seed=3) + 5
    assert (ranges.of(narrow) == 0).float().mean() > 0.97
    is_wide = ranges.of(wide) == 1
    assert is_wide.float().mean() > 0.97
    assert torch.equal(ranges.in_first(narrow)[ranges.of(narrow) == 0], narrow[ranges.of(narrow) == 0])
    moved = ranges.in_first(wide)[is_wide]
    assert moved.mean(dim=0).abs().max() < 0.5 and (moved.std(dim=0) - 1).abs().max() < 0.6


def test_the_density_is_students_up_to_a_constant():
    rows, shifts, scales = normal(7, d=3), normal(2, d=3, seed=1), normal(2, d=3, seed=2).abs() + 0.5
    student = torch.distributions.StudentT(30.0, shifts[:, None], scales[:, None])
    apart = student.log_prob(rows).sum(dim=2) - column_log_density(rows, shifts, scales)
    torch.testing.assert_close(apart, apart[:1, :1].expand_as(apart), rtol=1e-4, atol=1e-4)


def test_there_are_eight_ranges_at_most():
    ranges = begun()
    for k in range(1, 12):
        rows = 5.0**k * normal(60, seed=k)
        if ranges.is_left(rows):
            ranges.add(rows)
    assert len(ranges) == MOST_RANGES == 8


def test_columns_that_do_not_vary_and_rows_that_repeat_are_measured():
    rows = torch.ones(100, 3)
    rows[:, 0] = torch.arange(100) % 2
    ranges = begun(rows)
    assert ranges.scales[0].tolist() == [0.5, 1.0, 1.0] and not ranges.is_left(rows)


def test_ranges_are_restored_to_the_bit_and_refused_where_they_make_no_sense():
    ranges, other = begun(), Ranges()
    ranges.add(9 * normal(100, seed=1))
    state = ranges.state_dict()
    other.load_state_dict(state)
    assert torch.equal(other.in_first(9 * normal(50)), ranges.in_first(9 * normal(50)))
    for name, value in (("scales", torch.zeros(2, 6)), ("spacings", torch.zeros(3)), ("shifts", torch.zeros(2, 5))):
        with pytest.raises(StateError):
            Ranges().load_state_dict(state | {name: value})


def test_another_range_begins_with_the_latest_rows_and_moves_to_the_place_of_the_first():
    ranges, latest = begun(normal(400) + 7), 9 * normal(25, seed=2) - 40
    ranges.add(torch.cat([normal(75, seed=1), latest]))
    torch.testing.assert_close(ranges.shifts[1], latest.mean(dim=0))
    moved = ranges.in_first(latest)[ranges.of(latest) == 1]
    assert len(moved) > 20 and (moved.mean(dim=0) - 7).abs().max() < 1


def test_ranges_of_a_stream_that_began_alike_are_added_but_for_the_common_one():
    first, second = begun(), begun()
    second.add(9 * normal(100, seed=1))
    first.extend(second)
    assert all(
        torch.equal(mine, theirs) for mine, theirs in zip(vars(first).values(), vars(second).values(), strict=True)
    )
    assert len(first) == 2


def test_a_range_that_is_fitted_anew_leaves_what_was_read_before_alone():
    ranges = begun()
    before = ranges.shifts, ranges.scales, ranges.spacings
    kept = [part.clone() for part in before]
    ranges.refit(0, 3 * normal(100, seed=1) + 5)
    assert all(torch.equal(part, copy) for part, copy in zip(before, kept, strict=True))
    assert (ranges.shifts[0] - 5).abs().max() < 1
