import pytest
import torch
from cndpm.model.admission import Fetch, FiniteCheck, admit_x, rows_like


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


@pytest.mark.parametrize("shape", [(40,), (40, 2)])
def test_rows_of_a_copy_stand_where_those_of_the_block_do(shape):
    block = torch.arange(80.0)[: torch.Size(shape).numel()].view(shape)
    copy = block.clone()
    for part in torch.split(block, [10, 7, 23]):
        assert torch.equal(rows_like(part, block, copy), part)


def test_what_is_there_already_is_not_fetched():
    y = torch.arange(10)
    assert Fetch(torch.device("cpu"))(y) is y
