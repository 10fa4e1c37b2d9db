import pytest
import torch

from cndpm.experts.neural.lateral import LateralMLP
from cndpm.experts.neural.lateral_predictors import Classifier
from cndpm.experts.neural.panel import Lineup


def columns():
    torch.manual_seed(0)
    first = LateralMLP(5, [4, 3])
    second = LateralMLP(5, [2, 2], first.widths)
    third = LateralMLP(5, [2, 1], [6, 5])
    return [first, second, third]


def test_three_columns_equal_one_network_with_block_triangular_weights():
    x = torch.randn(7, 5)
    lateral = ()
    for column in (made := columns()):
        own = column(x, lateral)
        lateral = tuple(torch.cat(layer, dim=1) for layer in zip(lateral, own, strict=True)) if lateral else own
    weights, biases = [], []
    for depth, (rows, cols) in enumerate([((4, 2, 2), (5,)), ((3, 2, 1), (4, 2, 2))]):
        weight = torch.zeros(sum(rows), sum(cols))
        at = 0
        for column, width in zip(made, rows, strict=True):
            block = column.layers[depth].weight
            weight[at : at + width, : block.shape[1]] = block
            at += width
        weights.append(weight)
        biases.append(torch.cat([column.layers[depth].bias for column in made]))
    hidden = torch.relu(x @ weights[0].T + biases[0])
    torch.testing.assert_close(lateral[0], hidden)
    torch.testing.assert_close(lateral[1], torch.relu(hidden @ weights[1].T + biases[1]))


def test_no_gradient_reaches_an_earlier_column():
    first = Classifier((5,), 2, hidden=(4, 3), closed=True)
    second = Classifier((5,), 2, hidden=(2, 2), lateral_widths=first.feature_widths, closed=True)
    lineup = Lineup([first, second], [False, False], sharing=True)
    x = torch.randn(3, 5)
    second.loss(x, torch.tensor([0, 1, 0]), lineup.lateral(1, lineup.survey(x))).sum().backward()
    assert all(p.grad is None for p in first.parameters())
    assert all(p.grad is not None for p in second.parameters())


def test_lateral_widths_must_match_the_layers():
    with pytest.raises(ValueError, match="got 1 for 2 layers"):
        LateralMLP(5, [4, 3], [7])


def test_every_layer_sees_the_layer_below_of_all_earlier_columns():
    """Three layers, written out: the third looks at the second ones."""
    first, second = LateralMLP(3, [4, 5, 2]), LateralMLP(3, [2, 3, 1], lateral_widths=[4, 5, 2])
    x = torch.randn(6, 3)
    with torch.no_grad():
        earlier = first(x, ())
        h1 = torch.relu(second.layers[0](x))
        h2 = torch.relu(second.layers[1](torch.cat([earlier[0], h1], dim=1)))
        h3 = torch.relu(second.layers[2](torch.cat([earlier[1], h2], dim=1)))
        for got, expected in zip(second(x, earlier), (h1, h2, h3), strict=True):
            torch.testing.assert_close(got, expected)
        torch.testing.assert_close(second.top(second(x, earlier), earlier), torch.cat([earlier[2], h3], dim=1))
