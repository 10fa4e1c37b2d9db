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
    assert function.n_calls == 2


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


def test_looking_ahead_gives_a_slice_the_same_bits_wherever_reading_starts():
    whole = torch.rand(57, 3, generator=torch.Generator().manual_seed(0))
    calls = []

    def double(x):
        calls.append(len(x))
        return 2 * x

    def read(start):
        cache = RowCache(double)
        rows = []
        for at in range(start, 50, 10):
            x = whole[at : at + 10]
            cache.look_ahead(x, 20)
            rows.append(cache.rows(x).z)
        return rows

    assert [len(rows) for rows in read(0)] == [10] * 5
    assert calls == [20, 20, 17]
    calls.clear()
    read(30)
    assert calls == [20, 17]


def test_a_tensor_that_is_no_slice_is_computed_alone():
    cache = RowCache(lambda x: 2 * x)
    x = torch.rand(4, 3)
    cache.look_ahead(x, 20)
    assert torch.equal(cache.rows(x).z, 2 * x)


def test_kept_samples_are_computed_once_however_they_are_asked_about():
    function = Counting()
    cache, test, other = RowCache(function), torch.rand(9, 2), torch.rand(4, 2)
    cache.keep(test)
    cache.keep(test[2:5])
    for x in (test[:4], test[4:], other, test, test[8:]):
        assert torch.equal(cache.rows(x).z, 2 * x)
    assert function.n_calls == 2


def test_kept_samples_that_change_are_computed_again():
    cache, test = RowCache(lambda x: 2 * x), torch.ones(4, 2)
    cache.keep(test)
    assert torch.equal(cache.rows(test[:2]).z, torch.full((2, 2), 2.0))
    test += 1
    assert torch.equal(cache.rows(test[:2]).z, torch.full((2, 2), 4.0))


def test_clearing_computes_kept_samples_again():
    function = Counting()
    cache, test = RowCache(function), torch.rand(4, 2)
    cache.keep(test)
    cache.rows(test[:2])
    cache.clear()
    cache.rows(test[2:])
    assert function.n_calls == 2


def test_what_follows_is_computed_ahead_once_and_found_when_its_turn_comes():
    function = Counting()
    cache, stream = RowCache(function), torch.arange(180.0).reshape(30, 2, 3).clone()
    for start in range(0, 30, 5):
        part = stream[start : start + 5]
        cache.look_ahead(part, 10)
        assert torch.equal(cache.rows(part).z, part.flatten(1) * 2)
        following = cache.go_ahead()
        begins = start % 10 == 0 and start < 20
        assert (following is not None) == begins
        assert following is None or torch.equal(following.z, stream[start + 10 : start + 20].flatten(1) * 2)
    assert function.n_calls == 3


def test_what_was_computed_ahead_is_forgotten_when_the_reader_goes_elsewhere():
    cache, stream = RowCache(lambda x: x.flatten(1)), torch.arange(180.0).reshape(30, 2, 3).clone()
    cache.look_ahead(stream[:5], 10)
    cache.go_ahead()
    cache.look_ahead(stream[20:25], 10)
    assert torch.equal(cache.rows(stream[20:25]).z, stream[20:25].flatten(1))
    assert cache.go_ahead() is None


def test_two_tensors_may_be_read_in_turn_and_are_computed_once():
    function = Counting()
    cache = RowCache(function)
    streams = [torch.arange(120.0).reshape(20, 2, 3).clone() + offset for offset in (0, 1000)]
    for start in range(0, 20, 5):
        for stream in streams:
            part = stream[start : start + 5]
            cache.look_ahead(part, 10)
            assert torch.equal(cache.rows(part).z, part.flatten(1) * 2)
    assert function.n_calls == 4


def test_a_selection_of_samples_that_were_asked_about_is_not_computed_again():
    function = Counting()
    cache, memory = RowCache(function), torch.arange(120.0).reshape(20, 2, 3).clone()
    cache.rows(memory)
    chosen = torch.arange(20) % 3 == 0
    part = cache.select(memory, chosen)
    assert torch.equal(part, memory[chosen])
    for start in range(0, len(part), 3):
        lesson = part[start : start + 3]
        cache.look_ahead(lesson, 4)
        assert torch.equal(cache.rows(lesson).z, lesson.flatten(1) * 2)
        assert cache.go_ahead() is None
    assert function.n_calls == 1
    assert torch.equal(cache.select(memory + 1, chosen), memory[chosen] + 1)
