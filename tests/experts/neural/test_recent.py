"""The latest samples, as networks draw them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.neural.recent import RecentSamples
from cndpm.state import StateError


def rows(first: int, n: int, n_experts: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    y = torch.arange(first, first + n)
    return y[:, None].float(), y, torch.ones(n, n_experts, dtype=torch.float64)


def recent_samples(capacity: int, n_experts: int = 1) -> RecentSamples:
    recent = RecentSamples(capacity, torch.device("cpu"))
    x, y, _ = rows(0, 0)
    recent.begin(x, y, n_experts=n_experts)
    return recent


def test_only_the_latest_stay():
    recent = recent_samples(5)
    recent.add(*rows(0, 4))
    recent.add(*rows(4, 3))
    x, y, _ = recent.draw(200, torch.Generator().manual_seed(0))
    assert len(recent) == 5
    assert set(y.tolist()) == {2, 3, 4, 5, 6}
    assert torch.equal(x[:, 0].long(), y)


def test_what_an_expert_is_made_of_replaces_what_was_there():
    recent = recent_samples(10)
    recent.add(*rows(0, 8))
    x, y, _ = rows(20, 3)
    recent.begin(x, y, n_experts=2)
    _, y, responsibilities = recent.draw(50, torch.Generator().manual_seed(0))
    assert set(y.tolist()) == {20, 21, 22}
    assert torch.equal(responsibilities, torch.tensor([[0.0, 1.0]], dtype=torch.float64).expand(50, 2))


def test_samples_of_a_removed_expert_count_for_the_one_it_went_into():
    recent = recent_samples(4, n_experts=3)
    x, y, _ = rows(0, 2)
    recent.add(x, y, torch.tensor([[0.25, 0.5, 0.25], [1.0, 0.0, 0.0]]).double())
    recent.merge(0, into=2)
    _, y, responsibilities = recent.draw(20, torch.Generator().manual_seed(0))
    expected = torch.tensor([[0.5, 0.5], [0.0, 1.0]]).double()
    assert torch.equal(responsibilities, expected[y])


def test_inputs_are_not_kept_by_reference_and_bytes_are_those_of_what_is_kept():
    recent = recent_samples(30)
    x, y, responsibilities = rows(0, 3)
    recent.add(x, y, responsibilities)
    x.fill_(-1)
    assert recent.n_bytes == 3 * 4 + 3 * 8
    assert (recent.draw(10, torch.Generator())[0] >= 0).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 7))
def test_any_sequence_of_batches_leaves_the_last_ones_and_survives_saving(sizes, capacity):
    recent, seen = recent_samples(capacity), 0
    for n in sizes:
        recent.add(*rows(seen, n))
        seen += n
        restored = RecentSamples(capacity, torch.device("cpu"))
        restored.load_state_dict(recent.state_dict())
        recent = restored
    kept = sorted(recent.state_dict()["rows"][1].tolist())
    assert kept == list(range(max(0, seen - capacity), seen))


def test_a_state_with_other_types_or_classes_that_nobody_knows_is_refused():
    recent = recent_samples(9)
    recent.add(*rows(0, 3))
    x, y, shares = recent.state_dict()["rows"]
    for damaged in ([x.half(), y, shares], [x, y + 3, shares], [x, y.float(), shares], [x, y, shares[1:]]):
        with pytest.raises(StateError):
            recent_samples(9).load_state_dict({"rows": damaged, "next": 3}, n_classes=3)
    assert recent_samples(9).load_state_dict({"rows": [x, y, shares], "next": 3}, n_classes=3) is None
