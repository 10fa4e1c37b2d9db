import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from cndpm.experts.features.responses import fold_filters


def filters(n: int, channels: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Filters that sum to zero, with responses of about unit variance, and biases."""
    generator = torch.Generator().manual_seed(size)
    weight = torch.randn(n, channels, size, size, generator=generator) / size
    return weight - weight.mean(dim=(1, 2, 3), keepdim=True), 0.1 * torch.randn(n, generator=generator)


def plain_moments(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, threshold: float = 0.25) -> torch.Tensor:
    """What the module computes, written out: (B, 4, P, 2, 2), float64."""
    size, n_rows, n_columns = weight.shape[-1], *(n - weight.shape[-1] + 1 for n in x.shape[-2:])
    patches = functional.unfold(x.double(), size)
    centred = patches - patches.mean(dim=1, keepdim=True)
    normalised = centred / (centred.square().mean(dim=1, keepdim=True) + 10 / 255**2).sqrt()
    responses = torch.einsum("pk,bkl->bpl", weight.flatten(1).double(), normalised) - bias[:, None]
    responses = responses.unflatten(2, (n_rows, n_columns))
    upper, lower = slice(0, -(-n_rows // 2)), slice(n_rows // 2, n_rows)
    left, right = slice(0, -(-n_columns // 2)), slice(n_columns // 2, n_columns)
    moments = []
    for side in ((responses - threshold).clamp_min(0), (-responses - threshold).clamp_min(0)):
        cells = [[side[:, :, rows, columns].flatten(2) for columns in (left, right)] for rows in (upper, lower)]
        moments.append(torch.stack([torch.stack([c.mean(2) for c in row], dim=2) for row in cells], dim=2))
        moments.append(torch.stack([torch.stack([c.std(2, correction=0) for c in row], dim=2) for row in cells], dim=2))
    return torch.stack(moments, dim=1)


@settings(deadline=None, max_examples=40)
@given(
    channels=st.integers(1, 3),
    size=st.integers(2, 8),
    height=st.integers(9, 14),
    width=st.integers(9, 14),
    n=st.integers(1, 5),
    block_size=st.integers(1, 6),
    seed=st.integers(0, 99),
)
def test_moments_are_those_of_normalised_patches_in_four_cells(channels, size, height, width, n, block_size, seed):
    x = torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(seed))
    weight, bias = filters(7, channels, size)
    folded = fold_filters(weight, bias, 0.25)
    views = []
    for side, seen in ((1, x), (-1, x.flip(-1))):
        expected = plain_moments(seen, weight, bias)
        views.append(folded.pooled(x, (side,), block_size))
        means, deviations = views[-1][:, 0::2].double(), views[-1][:, 1::2].double()
        torch.testing.assert_close(means, expected[:, 0::2], atol=2e-5, rtol=1e-4)
        # A difference of squares: what is rounded are variances.
        torch.testing.assert_close(deviations.square(), expected[:, 1::2].square(), atol=2e-5, rtol=1e-4)
    torch.testing.assert_close(folded.pooled(x, (1, -1), block_size), views[0] + views[1], atol=1e-3, rtol=1e-4)


def test_a_side_without_responses_has_no_deviation():
    weight, bias = filters(3, 1, 4)
    moments = fold_filters(weight, bias + 100, 0.25).pooled(torch.rand(2, 1, 9, 9), (1, -1), 2)
    assert not moments[:, :2].any()
    assert (moments[:, 2:] > 0).all()


def test_what_is_computed_together_does_not_matter():
    x = torch.rand(11, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    weight, bias = filters(5, 3, 6)
    folded = fold_filters(weight, bias, 0.25)
    whole = folded.pooled(x, (1, -1), 11)
    for block_size in (1, 2, 4, 20):
        torch.testing.assert_close(folded.pooled(x, (1, -1), block_size), whole)
