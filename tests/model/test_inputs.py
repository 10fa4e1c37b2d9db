"""What a learner is given is refused, with the reason, before anything changes."""

import pytest
import torch

from cndpm.model.extremes import BEYOND, admit_targets, admit_x


def test_what_is_admitted_is_float32_without_gradients():
    x = admit_x(torch.arange(9.0, dtype=torch.float64, requires_grad=True).reshape(3, 3), (3,))
    assert x.dtype == torch.float32
    assert not x.requires_grad


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.full((1, 3), torch.nan), "NaN"),
        (torch.full((1, 3), torch.inf), "infinity"),
        (torch.zeros(0, 3), "no samples"),
        (torch.zeros(2, 4), r"\(batch, 3\); got \(2, 4\)"),
        (torch.tensor(1.0), r"got \(\)"),
        (torch.zeros(2, 3, dtype=torch.bool), "real numbers"),
        ([[1.0, 2.0, 3.0]], "torch tensor; got list"),
    ],
)
def test_what_is_no_batch_is_named(x, message):
    with pytest.raises((TypeError, ValueError), match=message):
        admit_x(x, (3,))


def test_rows_hold_a_few_values_that_are_too_large_and_images_none():
    x = torch.zeros(20, 3)
    x[4, 1], x[7, 2] = 3e38, -1e16
    admitted = admit_x(x, (3,))
    assert admitted[4, 1] == BEYOND and admitted[7, 2] == -BEYOND and int(admitted.count_nonzero()) == 2
    assert admit_x(torch.full((1, 3), 3e38), (3,)).max() == BEYOND
    with pytest.raises(ValueError, match=r"value of 3e\+38; values up to 1e\+15 can be learned. Scale it"):
        admit_x(torch.full((20, 3), 3e38), (3,))
    with pytest.raises(ValueError, match="Scale it"):
        admit_x(x.reshape(20, 1, 3, 1), (1, 3, 1))


@pytest.mark.parametrize(
    ("y", "target", "message"),
    [
        (torch.tensor([0, 1]), "none", "unlabelled data"),
        (None, "classes", "needs y"),
        (torch.tensor([0, 1, 2]), "classes", "got 2 and 3"),
        (torch.tensor([0, 5]), "classes", "from 0 to 3; got 0 to 5"),
        (torch.tensor([-1, 0]), "classes", "got -1 to 0"),
        (torch.tensor([0.5, 1.0]), "classes", "one integer class index"),
        (torch.zeros(2, 3), "values", "2 values a sample; got 3"),
        (torch.full((2, 2), torch.nan), "values", "NaN"),
    ],
)
def test_targets_of_another_kind_are_named(y, target, message):
    with pytest.raises(ValueError, match=message):
        admit_targets(y, 2, target, n_outputs=2, n_classes=4)
