import pytest
import torch

from cndpm.learners.admission import FiniteCheck, admit_x


def test_a_block_is_refused_only_where_it_is_not_finite():
    block = torch.zeros(40, 3)
    block[25, 1] = torch.nan
    check = FiniteCheck()
    verdicts = [check(block[i : i + 10]) for i in range(0, 40, 10)]
    assert verdicts == [True, True, False, True]


def test_a_block_that_changes_is_looked_through_again():
    block, check = torch.zeros(40, 3), FiniteCheck()
    assert check(block[:10])
    block[12, 0] = torch.inf
    assert not check(block[10:20])


def test_a_slice_of_something_vast_is_judged_alone():
    vast = torch.zeros(1001, 1)
    vast[-1] = torch.nan
    check = FiniteCheck()
    assert check(vast[:1])
    assert not check(vast[1000:])


def test_what_is_admitted_is_aligned_float32():
    x = admit_x(torch.arange(9.0, dtype=torch.float64).reshape(3, 3)[1:], (3,))
    assert x.dtype == torch.float32
    assert x.data_ptr() % 64 == 0
    with pytest.raises(ValueError, match="NaN"):
        admit_x(torch.full((1, 3), torch.nan), (3,))
