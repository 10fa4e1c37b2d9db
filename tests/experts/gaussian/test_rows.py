import torch

from cndpm.experts.gaussian.rows import RowCache


class Counting:
    def __init__(self) -> None:
        self.n_calls = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.n_calls += 1
        return x.flatten(1) * 2


def test_views_of_an_announced_chunk_are_looked_up():
    function = Counting()
    cache, chunk = RowCache(function), torch.arange(60.0).reshape(10, 2, 3)
    cache.announce(chunk)
    for start in range(0, 10, 3):
        part = chunk[start : start + 3]
        assert torch.equal(cache.rows(part).z, part.flatten(1) * 2)
    assert function.n_calls == 1


def test_other_tensors_and_changed_chunks_are_computed():
    function = Counting()
    cache, chunk = RowCache(function), torch.arange(60.0).reshape(10, 2, 3)
    cache.announce(chunk)
    strided = chunk[::2]
    assert torch.equal(cache.rows(strided).z, strided.flatten(1) * 2)
    chunk += 1
    assert torch.equal(cache.rows(chunk[2:4]).z, chunk[2:4].flatten(1) * 2)
    assert function.n_calls == 3


def test_what_is_derived_is_derived_once_per_key():
    cache, chunk = RowCache(lambda x: x), torch.arange(6.0).reshape(6, 1)
    cache.announce(chunk)
    calls = []

    def derive(z: torch.Tensor) -> torch.Tensor:
        calls.append(len(z))
        return -z

    first, second = object(), object()
    for key in (first, first, second):
        for start in (0, 3):
            part = cache.rows(chunk[start : start + 3])
            assert torch.equal(part.derive(key, derive), -chunk[start : start + 3])
    assert calls == [6, 6]
