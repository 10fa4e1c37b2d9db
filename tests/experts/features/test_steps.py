"""Steps at quantiles and their products."""

import torch

from cndpm.experts.features import StepFeatures


def fitted(x, n=40, seed=0, **targets):
    features = StepFeatures(n)
    features.fit(x, generator=torch.Generator().manual_seed(seed), **targets)
    return features


def test_steps_tell_on_which_side_of_each_decile_a_value_lies():
    x = torch.arange(1000.0)[:, None]
    steps = fitted(x)(torch.tensor([[-1.0], [499.0], [2000.0]]))[:, 1:]
    assert steps.shape == (3, 9)
    assert steps.sum(dim=1).tolist() == [-9, -1, 9]


def test_a_column_of_few_values_is_cut_between_them():
    x = torch.tensor([[0.0], [1.0], [5.0]]).repeat(20, 1)
    assert fitted(x)(x[:3])[:, 1:].tolist() == [[-1, -1], [1, -1], [1, 1]]


def test_a_column_that_does_not_vary_has_no_steps():
    assert fitted(torch.full((30, 1), 7.0)).n_features == 1


def test_products_are_of_steps_of_different_columns():
    x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    features = fitted(x, n=60)
    values = features(x)
    steps, products = values[:, 2:20], values[:, 20:]
    assert products.shape[1] == 42
    pairs = steps[:, :9, None] * steps[:, None, 9:]
    for product in products.T:
        assert (pairs == product[:, None, None]).all(dim=0).any()


def columns_of_pairs(features):
    state = features.state_dict()
    sides = [state["columns"][state[side]].tolist() for side in ("left", "right")]
    return set(zip(*sides, strict=True))


def test_pairs_are_of_the_columns_that_matter_together():
    x = torch.rand(500, 6, generator=torch.Generator().manual_seed(0))
    together = (x[:, 1] > 0.5) ^ (x[:, 4] > 0.3)
    values = (torch.sin(3 * x[:, 0] * x[:, 5]) + x[:, 2])[:, None]
    assert columns_of_pairs(fitted(x, n=60, labels=together.long())) == {(1, 4)}
    assert columns_of_pairs(fitted(x, n=60, targets=values)) == {(0, 5)}
    assert len(columns_of_pairs(fitted(x, n=60))) > 1


def test_pairs_correlate_most_with_what_steps_alone_leave():
    """The correlations of all products are computed one by one, and the remainder by a ridge regression."""
    generator = torch.Generator().manual_seed(0)
    x, values = torch.randn(80, 3, generator=generator), torch.randn(80, 2, generator=generator).double()
    everything = fitted(x, n=10_000)
    n_steps = len(everything.state_dict()["cuts"])
    alone, products = everything(x).double().split([3 + n_steps, everything.n_features - 3 - n_steps], dim=1)
    alone, products, values = (part - part.mean(dim=0) for part in (alone, products, values))
    precision = alone.T @ alone + 5 * torch.eye(3 + n_steps).double()
    remainder = values - alone @ torch.linalg.solve(precision, alone.T @ values)
    agreement = (products.T @ remainder).square().sum(dim=1) / products.square().mean(dim=0)
    chosen = fitted(x, n=n_steps + 7, targets=values)(x).double()[:, 3 + n_steps :]
    best = products[:, agreement.argsort(descending=True)[:7]]
    assert {tuple(column.tolist()) for column in (chosen - chosen.mean(dim=0)).T} == {
        tuple(column.tolist()) for column in best.T
    }


def test_the_map_is_restored_to_the_bit():
    x = torch.randn(100, 3, generator=torch.Generator().manual_seed(0))
    features, other = fitted(x), StepFeatures(40)
    other.load_state_dict(features.state_dict())
    assert torch.equal(features(x), other(x))
    assert features.n_numbers_kept == sum(p.numel() for p in _tensors(features.state_dict()))


def _tensors(state):
    for value in state.values():
        if isinstance(value, dict):
            yield from _tensors(value)
        elif isinstance(value, torch.Tensor):
            yield value
