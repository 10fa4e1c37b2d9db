"""Parts of learners: random sources, frozen copies, named tensors, and the sum of what they keep."""

from __future__ import annotations

import torch

from cndpm.baselines.shared.components import FrozenCopy, RandomSource, TensorSlots, total_footprint
from cndpm.baselines.shared.networks import mlp
from cndpm.learner import Footprint

CPU = torch.device("cpu")


class Keeping:
    """A part that keeps what it is told to."""

    def __init__(self, kept: Footprint) -> None:
        self.kept = kept

    def footprint(self) -> Footprint:
        return self.kept


def test_a_footprint_is_the_sum_of_the_parts():
    parts = [Keeping(Footprint(1, 20, 300, 4000)), Keeping(Footprint(2, 30, 400, 5000))]
    assert total_footprint(parts, n_experts=6) == Footprint(3, 50, 700, 9000, 6)
    assert total_footprint(parts).n_experts == 1


def test_a_restarted_source_begins_at_the_seed_and_leaves_the_first_where_it_stands():
    source, undisturbed = RandomSource(4), RandomSource(4)
    first = source.normal(3)
    assert torch.equal(source.restarted().normal(3), first)
    undisturbed.normal(3)
    assert torch.equal(source.normal(3), undisturbed.normal(3))
    assert source.footprint() == Footprint(0, 0)


def test_a_source_goes_on_where_its_state_was_taken():
    source, other = RandomSource(4), RandomSource(5)
    source.normal(3)
    other.load_state_dict(source.state_dict())
    assert torch.equal(other.normal(3), source.normal(3))
    assert torch.equal(other.restarted().normal(3), RandomSource(4).normal(3))


def test_a_frozen_copy_stays_while_the_original_learns_and_answers_as_in_prediction():
    network = torch.nn.Sequential(mlp([3, 4, 2]), torch.nn.BatchNorm1d(2)).train()
    frozen = FrozenCopy(network)
    assert frozen.network is None
    assert frozen.footprint() == Footprint(0, 0)
    copied = frozen.take()
    assert not copied.training
    assert network.training
    assert not any(parameter.requires_grad for parameter in copied.parameters())
    before = copied[0][0].weight.clone()
    with torch.no_grad():
        network[0][0].weight.add_(1.0)
    assert torch.equal(copied[0][0].weight, before)
    assert frozen.footprint().n_numbers_kept == 3 * 4 + 4 + 4 * 2 + 2 + 4


def test_a_frozen_copy_or_its_absence_comes_back_from_its_state():
    network = mlp([3, 4, 2])
    frozen, other = FrozenCopy(network), FrozenCopy(mlp([3, 4, 2]))
    copied = frozen.take()
    other.load_state_dict(frozen.state_dict())
    x = torch.rand(5, 3, generator=torch.Generator().manual_seed(0))
    assert other.network is not None
    assert torch.equal(other.network(x), copied(x))
    other.load_state_dict(FrozenCopy(network).state_dict())
    assert other.network is None


def test_slots_give_and_take_copies():
    slots, other = TensorSlots(CPU), TensorSlots(CPU)
    slots.values = {"a": torch.zeros(2), "b": torch.zeros(3)}
    other.values = {"c": torch.zeros(1)}
    state = slots.state_dict()
    other.load_state_dict(state)
    slots.values["a"].add_(1)
    assert state["values"]["a"].tolist() == [0.0, 0.0]
    state["values"]["b"].add_(1)
    assert {name: value.tolist() for name, value in other.values.items()} == {"a": [0.0] * 2, "b": [0.0] * 3}
    assert slots.footprint() == Footprint(0, 5)
