"""Moments of rectified responses: one compiled pass on a CPU, some operations elsewhere, the same numbers."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cndpm.experts.features import responses as rectification
from cndpm.experts.features.responses import pool_rectified


def pooled(
    responses: torch.Tensor, sides: tuple[int, ...], threshold: float, n_images: int
) -> tuple[torch.Tensor, torch.Tensor]:
    sums, squares = (torch.full((len(sides), 2, responses.shape[1], n_images, 2, 2), torch.nan) for _ in range(2))
    pool_rectified(responses, sides, threshold, sums, squares)
    return sums, squares


@settings(deadline=None, max_examples=50)
@given(
    n_filters=st.integers(1, 5),
    n_images=st.integers(1, 3),
    cell=st.integers(1, 40),
    sides=st.sampled_from([(1,), (-1,), (1, -1), (-1, 1)]),
    threshold=st.sampled_from([0.0, 0.25, 1.0]),
    seed=st.integers(0, 99),
)
def test_moments_are_those_of_rectified_sums_and_differences(n_filters, n_images, cell, sides, threshold, seed):
    generator = torch.Generator().manual_seed(seed)
    responses = torch.randn(2, n_filters, n_images * 4 * cell, generator=generator)
    sums, squares = pooled(responses, sides, threshold, n_images)
    even, odd = responses.double().view(2, n_filters, n_images, 2, 2, cell)
    for i, side in enumerate(sides):
        response = even + threshold + side * odd
        rectified = torch.stack([(response - threshold).clamp_min(0), (response + threshold).clamp_max(0)])
        torch.testing.assert_close(sums[i].double(), rectified.sum(dim=-1), atol=1e-4, rtol=1e-5)
        torch.testing.assert_close(squares[i].double(), rectified.square().sum(dim=-1), atol=1e-4, rtol=1e-5)


def test_what_is_written_to_may_be_a_slice_of_more_images():
    responses = torch.randn(2, 3, 2 * 4 * 9, generator=torch.Generator().manual_seed(0))
    expected = pooled(responses, (1, -1), 0.25, 2)
    sums, squares = torch.zeros(2, 2, 3, 5, 2, 2), torch.zeros(2, 2, 3, 5, 2, 2)
    pool_rectified(responses, (1, -1), 0.25, sums[:, :, :, 1:3], squares[:, :, :, 1:3])
    assert torch.equal(sums[:, :, :, 1:3], expected[0])
    assert torch.equal(squares[:, :, :, 1:3], expected[1])
    assert not sums[:, :, :, [0, 3, 4]].any()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same():
    responses = torch.randn(2, 16, 3 * 4 * 49, generator=torch.Generator().manual_seed(0))
    sums, squares = (torch.empty(2, 2, 16, 3, 2, 2, device="cuda") for _ in range(2))
    pool_rectified(responses.cuda(), (1, -1), 0.25, sums, squares)
    expected = pooled(responses, (1, -1), 0.25, 3)
    torch.testing.assert_close(sums.cpu(), expected[0], atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(squares.cpu(), expected[1], atol=1e-4, rtol=1e-5)


def test_the_compiled_pass_is_the_function_it_was_made_of():
    responses = torch.randn(2, 2, 4 * 6, generator=torch.Generator().manual_seed(1)).numpy()
    sums, squares = (torch.empty(1, 2, 2, 4) for _ in range(2))
    rectification._pool(responses, [1.0], 0.25, sums.numpy(), squares.numpy())
    expected = pooled(torch.from_numpy(responses), (1,), 0.25, 1)
    torch.testing.assert_close(sums, expected[0].flatten(3))
    torch.testing.assert_close(squares, expected[1].flatten(3))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n_images=st.integers(1, 3), cell=st.integers(1, 40), sides=st.sampled_from([(1,), (-1,), (1, -1)]))
def test_without_a_compiler_the_moments_are_the_same(monkeypatch, n_images, cell, sides):
    responses = torch.randn(2, 3, n_images * 4 * cell, generator=torch.Generator().manual_seed(cell))
    expected = pooled(responses, sides, 0.25, n_images)
    with monkeypatch.context() as patch:
        patch.setattr(rectification, "_compiled", lambda: None)
        plain = pooled(responses, sides, 0.25, n_images)
    torch.testing.assert_close(plain, expected, atol=1e-4, rtol=1e-5)


def test_what_is_not_finite_is_not_hidden():
    responses = torch.zeros(2, 1, 4 * 5)
    responses[0, 0, 7] = torch.inf
    assert pooled(responses, (1,), 0.25, 1)[0].isinf().any()


@pytest.mark.slow
def test_it_is_compiled_where_nothing_can_be_written(tmp_path):
    archive, no_folder = tmp_path / "package.zip", tmp_path / "file"
    no_folder.touch()
    with zipfile.ZipFile(archive, "w") as package:
        package.write(Path(rectification.__file__), "rectification.py")
    script = (
        "import torch, rectification; moments = [torch.empty(1, 2, 3, 1, 2, 2) for _ in range(2)];"
        "rectification.pool_rectified(torch.ones(2, 3, 36), (1,), 0.25, *moments); print(float(moments[0].sum()))"
    )
    path = os.pathsep.join([str(archive), *sys.path])
    unwritable = {"HOME": str(no_folder), "XDG_CACHE_HOME": str(no_folder), "PYTHONPATH": path}
    run = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | unwritable, capture_output=True, text=True, check=True
    )
    assert float(run.stdout) == 3 * 36 * 2.0
