import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.experts.gaussian.statistics import SharedStatistics, pack_symmetric, unpack_triangle


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())


def random_data(n: int, d: int, j: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, d, generator=generator) * 3 + 50
    weights = torch.rand(n, j, generator=generator, dtype=torch.float64)
    return z, weights


def statistics_of(z: torch.Tensor, weights: torch.Tensor, sizes: list[int]) -> SharedStatistics:
    statistics = SharedStatistics(torch.full((z.shape[1],), 49.0))
    statistics.add_components(weights.shape[1])
    for rows, part in zip(z.split(sizes), weights.split(sizes), strict=True):
        statistics.add(statistics.shift(rows), part)
        if len(rows) % 2:
            statistics.flush()
    return statistics


def batch_scatter(z: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    z = z.double()
    total = torch.zeros(z.shape[1], z.shape[1], dtype=torch.float64)
    for j in range(weights.shape[1]):
        w = weights[:, j, None]
        centred = z - (w * z).sum(dim=0) / w.sum()
        total += (w * centred).T @ centred
    return total


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=8), st.integers(1, 4), st.integers(0, 1000))
def test_streaming_equals_batch_in_any_order(sizes, n_components, seed):
    n = sum(sizes)
    z, weights = random_data(n, 5, n_components, seed)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    streamed = statistics_of(z[order], weights[order], sizes)
    expected = batch_scatter(z, weights)
    assert relative(streamed.within_scatter(), expected) < 1e-9
    assert relative(streamed.sums, weights.T @ (z.double() - 49)) < 1e-9
    assert relative(streamed.counts, weights.sum(dim=0)) < 1e-9


def test_asking_for_the_scatter_changes_nothing():
    z, weights = random_data(30, 4, 2, 0)
    statistics = statistics_of(z, weights, [10, 20])
    before = statistics.state_dict()
    statistics.within_scatter()
    statistics.held_out()
    after = statistics.state_dict()
    assert torch.equal(before["second_moment"], after["second_moment"])
    assert torch.equal(before["pending"]["rows"], after["pending"]["rows"])


def test_merging_two_components_equals_learning_them_as_one():
    z, weights = random_data(60, 4, 3, 1)
    statistics = statistics_of(z, weights, [60])
    statistics.merge_components([(2, 0)], [0, 1])
    together = torch.stack([weights[:, 0] + weights[:, 2], weights[:, 1]], dim=1)
    assert relative(statistics.within_scatter(), batch_scatter(z, together)) < 1e-9


def test_rows_that_nobody_learned_are_not_held_out():
    z, weights = random_data(50, 3, 2, 2)
    weights[45:] = 0
    statistics = statistics_of(z[:41], weights[:41], [41])
    statistics.add(statistics.shift(z[41:]), weights[41:])
    _, _, deviations = statistics.held_out()
    assert len(deviations) == 4


def test_held_out_rows_are_judged_by_the_others_alone():
    z, _ = random_data(50, 3, 1, 2)
    weights = torch.ones(50, 1, dtype=torch.float64)
    statistics = statistics_of(z[:41], weights[:41], [41])
    statistics.add(statistics.shift(z[41:]), weights[41:])
    scatter, degrees, deviations = statistics.held_out()
    assert relative(scatter, batch_scatter(z[:41], weights[:41])) < 1e-9
    assert float(degrees) == 40
    torch.testing.assert_close(deviations, z[41:].double() - z[:41].double().mean(dim=0))


def test_state_restores_the_same_bits():
    z, weights = random_data(50, 4, 2, 3)
    statistics = statistics_of(z[:30], weights[:30], [11, 19])
    restored = SharedStatistics.from_state(statistics.state_dict())
    for each in (statistics, restored):
        each.add(each.shift(z[30:]), weights[30:])
        each.flush()
    assert torch.equal(statistics.within_scatter().tril(), restored.within_scatter().tril())


def test_packing_keeps_a_symmetric_matrix():
    matrix = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    matrix = matrix + matrix.T
    packed = pack_symmetric(matrix)
    assert len(packed) == 21
    assert torch.equal(unpack_triangle(packed, 6), matrix.tril())


def test_strips_of_a_wide_matrix_fill_its_lower_triangle():
    z, weights = random_data(40, 1500, 2, 4)
    statistics = statistics_of(z, weights, [21, 19])
    torch.testing.assert_close(statistics.within_scatter().tril(), batch_scatter(z, weights).tril())
