"""Many columns as one network against the columns one by one."""

import pytest
import torch
from torch import nn

from cndpm.experts.neural.lateral import LateralMLP
from cndpm.experts.neural.packed.lineups import SeparateHeads, pack_heads
from cndpm.experts.neural.packed.packed_columns import pack_columns


def separate(n=3):
    torch.manual_seed(0)
    return [LateralMLP(6, [4, 5]) for _ in range(n)], [nn.Linear(5, 2) for _ in range(n)]


def one_by_one(columns, heads, x):
    return torch.stack([head(column(x, ())[-1]) for column, head in zip(columns, heads, strict=True)], dim=1)


def test_separate_columns_answer_as_they_do_one_by_one():
    columns, heads = separate()
    x = torch.rand(7, 6)
    together = pack_columns(columns, sharing=False)
    features = together.features(x)
    assert [feature.shape for feature in features] == [(7, 12), (7, 15)]
    assert together.lateral(2, features) == ()
    torch.testing.assert_close(pack_heads(together, heads)(features[-1]), one_by_one(columns, heads, x))


def test_separate_columns_follow_what_one_has_learned():
    columns, heads = separate()
    x = torch.rand(7, 6)
    together = pack_columns(columns, sharing=False)
    on_top = pack_heads(together, heads)
    with torch.no_grad():
        for parameter in [*columns[1].parameters(), *heads[1].parameters()]:
            parameter.add_(1.0)
    assert not torch.allclose(on_top(together.features(x)[-1]), one_by_one(columns, heads, x))
    together.refresh(1)
    on_top.refresh(1)
    torch.testing.assert_close(on_top(together.features(x)[-1]), one_by_one(columns, heads, x))


def test_separate_columns_and_heads_grow_in_proportion_to_their_number():
    def size(n):
        columns, heads = separate(n)
        packed = pack_columns(columns, sharing=False)
        return sum(weight.numel() for weight in packed.weights) + pack_heads(packed, heads).weight.numel()

    assert size(8) == 2 * size(4)


def test_a_separate_column_without_a_head_is_refused():
    with pytest.raises(ValueError, match="head"):
        SeparateHeads([nn.Linear(5, 2), None])


def test_a_sharing_column_without_a_head_serves_later_ones_and_answers_no_more():
    torch.manual_seed(0)
    first = LateralMLP(6, [4, 5])
    second, head = LateralMLP(6, [2, 3], lateral_widths=first.widths), nn.Linear(8, 2)
    x = torch.rand(7, 6)
    packed = pack_columns([first, second], sharing=True)
    lateral = first(x, ())
    alone = head(second.top(second(x, lateral), lateral))
    torch.testing.assert_close(pack_heads(packed, [None, head])(packed.features(x)[-1]), alone.unsqueeze(1))
