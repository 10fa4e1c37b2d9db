"""The short-term memory: what it holds, returns and keeps."""

import torch

from cndpm.experts.chunks import Samples
from cndpm.model.memory import SampleBatch, ShortTermMemory


def batch(*values: float) -> SampleBatch:
    """One column, labelled by its first digit."""
    x = torch.tensor(values)[:, None]
    return SampleBatch(Samples(x), x[:, 0].long())


def held(memory: ShortTermMemory) -> tuple[list[float], list[int]]:
    samples, y = memory.batch()
    return samples.x[:, 0].tolist(), y.tolist()


def test_samples_that_find_no_room_are_returned_in_order():
    memory = ShortTermMemory(3)
    assert memory.add(batch(1, 2)) is None
    rest = memory.add(batch(3, 4, 5))
    assert rest.samples.x[:, 0].tolist() == [4, 5] and rest.y.tolist() == [4, 5]
    assert held(memory) == ([1, 2, 3], [1, 2, 3]) and memory.is_full


def test_a_memory_is_full_at_its_capacity_and_not_before():
    memory = ShortTermMemory(2)
    memory.add(batch(1))
    assert not memory.is_full
    memory.add(batch(2))
    assert memory.is_full


def test_the_samples_of_a_mask_are_kept_and_the_others_returned():
    memory = ShortTermMemory(4)
    memory.add(batch(1, 2, 3))
    others = memory.keep(torch.tensor([True, False, True]))
    assert held(memory) == ([1, 3], [1, 3]) and others.y.tolist() == [2]


def test_labels_follow_a_renaming_and_samples_stay():
    memory = ShortTermMemory(4)
    memory.add(batch(0, 2))
    memory.relabel([5, 6, 7])
    assert held(memory) == ([0, 2], [5, 7])


def test_joined_memories_are_the_same_whichever_came_first():
    first, second = ShortTermMemory(2), ShortTermMemory(2)
    first.add(batch(3, 1))
    second.add(batch(2, 0))
    mine, theirs = first.batch(), second.batch()
    first.extend(theirs)
    second.extend(mine)
    assert held(first) == held(second) == ([0, 1, 2, 3], [0, 1, 2, 3])


def test_what_waits_is_a_copy_and_its_labels_follow_a_new_numbering():
    memory, x = ShortTermMemory(30), torch.zeros(20, 2)
    memory.add(SampleBatch(Samples(x), torch.arange(20) % 2))
    x.fill_(1.0)
    assert not memory.batch().samples.x.any()
    memory.relabel([1, 0])
    assert memory.batch().y.tolist() == [1, 0] * 10
