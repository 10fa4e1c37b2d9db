"""Parts in threads: in order, with one thread of torch's each, and errors come through."""

import threading

import pytest
import torch

from cndpm.threads import map_in_threads


@pytest.fixture(params=[1, 3])
def n_threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_parts(n_threads):
    x = torch.arange(20.0)
    assert torch.equal(torch.cat(map_in_threads(lambda part: 2 * part, x.split(3))), 2 * x)


def test_threads_are_as_many_as_torch_would_use_and_each_uses_one(n_threads):
    meeting = threading.Barrier(n_threads, timeout=30)

    def work(part: torch.Tensor) -> torch.Tensor:
        meeting.wait()  # passes only if so many parts are worked on at a time
        return torch.tensor(torch.get_num_threads())

    used = map_in_threads(work, torch.zeros(n_threads).split(1))
    assert [int(n) for n in used] == [1] * n_threads
    assert torch.get_num_threads() == n_threads


def test_an_error_in_a_part_is_raised(n_threads):
    def work(part: torch.Tensor) -> torch.Tensor:
        raise ValueError("no such part")

    with pytest.raises(ValueError, match="no such part"):
        map_in_threads(work, torch.zeros(4).split(1))
