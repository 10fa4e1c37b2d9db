"""Threads: one for small steps, all for large ones, as many as before outside; parts in order, errors come through."""

import os
import sys
import threading

import pytest
import torch
from threadpoolctl import threadpool_info

from cndpm import threads
from cndpm.threads import allowed_threads, map_in_threads, one_blas_thread, one_thread, spread

LARGE, SMALL = 1e12, 1.0


@pytest.fixture(params=[1, 3])
def n_threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_small_steps_use_one_thread_and_large_ones_all(n_threads):
    with one_thread():
        assert torch.get_num_threads() == 1
        assert allowed_threads() == n_threads
        with spread(SMALL):
            assert torch.get_num_threads() == 1
        with spread(LARGE):
            with spread(LARGE), spread(SMALL):
                assert torch.get_num_threads() == n_threads
            assert torch.get_num_threads() == n_threads
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == n_threads


def test_nesting_and_errors_leave_as_many_threads_as_before(n_threads):
    with pytest.raises(KeyError), one_thread():
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
        with spread(LARGE):
            raise KeyError
    assert torch.get_num_threads() == n_threads
    assert allowed_threads() == n_threads


def test_what_is_called_within_may_use_as_many_threads_as_it_likes(n_threads):
    with one_thread():
        torch.set_num_threads(n_threads)  # as a learner does before it calls back
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == n_threads


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_results_come_in_the_order_of_the_samples(n_threads, size):
    x = torch.arange(20.0)
    assert torch.equal(map_in_threads(lambda part: 2 * part, x, part_size=3, n_multiplications=size), 2 * x)


def test_threads_are_as_many_as_torch_would_use_and_each_uses_one(n_threads):
    meeting = threading.Barrier(n_threads, timeout=120)

    def work(part: torch.Tensor) -> torch.Tensor:
        meeting.wait()  # passes only if so many parts are worked on at a time
        return torch.tensor([torch.get_num_threads()])

    used = map_in_threads(work, torch.zeros(n_threads), part_size=16, n_multiplications=LARGE)
    assert used.tolist() == [1] * n_threads
    assert torch.get_num_threads() == n_threads


def test_an_error_in_a_part_is_raised(n_threads):
    def work(part: torch.Tensor) -> torch.Tensor:
        raise ValueError("no such part")

    with pytest.raises(ValueError, match="no such part"):
        map_in_threads(work, torch.zeros(4), part_size=1, n_multiplications=LARGE)


def test_a_thread_that_begins_while_another_is_inside_may_use_as_many_threads(n_threads):
    seen = []

    def begin():
        with one_thread():
            seen.append(allowed_threads())
        seen.append(torch.get_num_threads())

    with one_thread():
        thread = threading.Thread(target=begin)
        thread.start()
        thread.join()
    assert seen == [n_threads, n_threads]


class Library:
    """Linear algebra that was told to use three threads."""

    def __init__(self):
        self.n_threads = 3

    def get_num_threads(self):
        return self.n_threads

    def set_num_threads(self, n):
        self.n_threads = n


@pytest.fixture
def libraries(monkeypatch):
    found = [Library(), Library()]
    found[1].n_threads = 5
    monkeypatch.setattr(threads, "_blas_libraries", lambda: found)
    return found


def used(libraries):
    return [library.n_threads for library in libraries]


def test_linear_algebra_uses_one_thread_inside_and_as_many_as_before_outside(libraries):
    with one_blas_thread:
        assert used(libraries) == [1, 1]
        with one_blas_thread:
            assert used(libraries) == [1, 1]
        assert used(libraries) == [1, 1]
    assert used(libraries) == [3, 5]
    with pytest.raises(KeyError), one_blas_thread:
        raise KeyError
    assert used(libraries) == [3, 5]


def test_of_two_threads_inside_the_last_to_leave_restores_linear_algebra(libraries):
    is_inside, may_leave, seen = threading.Event(), threading.Event(), []

    def stay():
        with one_blas_thread:
            is_inside.set()
            may_leave.wait(120)
            seen.append(used(libraries))

    other = threading.Thread(target=stay)
    with one_blas_thread:
        other.start()
        assert is_inside.wait(120)
    assert used(libraries) == [1, 1]  # the other one is still inside
    may_leave.set()
    other.join()
    assert seen == [[1, 1]] and used(libraries) == [3, 5]


def raising_before(n):
    """Returns a tracer that raises before the line number n that runs in the module of threads."""
    lines = iter(range(1, n + 1))

    def local(frame, event, _):
        if event == "line" and next(lines, None) == n:
            raise KeyboardInterrupt
        return local

    return lambda frame, event, _: local if frame.f_code.co_filename == threads.__file__ else None


def test_an_exception_before_any_line_blocks_no_thread(libraries):
    n_interrupted = 0
    for n in range(1, 100):
        one, seen = threads._OneBlasThread(), []

        def enter(one=one, seen=seen):
            with one:
                seen.append(used(libraries))

        before, _ = sys.gettrace(), sys.settrace(raising_before(n))
        try:
            enter()
        except KeyboardInterrupt:
            n_interrupted += 1
        finally:
            sys.settrace(before)
        other = threading.Thread(target=enter, daemon=True)
        other.start()
        other.join(120)
        assert not other.is_alive() and seen[-1] == [1, 1]
    assert n_interrupted > 20


def test_who_settles_elsewhere_does_not_hold_up_a_process_that_was_forked_meanwhile(libraries, monkeypatch):
    one = threads._OneBlasThread()
    one._settling[os.getpid()] = -1  # a thread that the forked process does not have
    monkeypatch.setattr(os, "getpid", lambda: 0)
    with one:
        assert used(libraries) == [1, 1]
    assert used(libraries) == [3, 5]


def test_the_libraries_of_this_machine_are_told():
    found = threads._blas_libraries()
    before = [library.get_num_threads() for library in found]
    assert found
    with one_blas_thread:
        assert {library.get_num_threads() for library in found} == {1}
    assert [library.get_num_threads() for library in found] == before


def test_tests_compute_in_one_thread_a_process():
    assert {pool["num_threads"] for pool in threadpool_info()} == {1}


def use(libraries, numbers):
    for library, n in zip(libraries, numbers, strict=True):
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)
        library.set_num_threads(n)


def test_linear_algebra_uses_one_thread_inside_whichever_thread_asks():
    libraries, seen = threads._blas_libraries(), []
    before = [library.get_num_threads() for library in libraries]

    def ask():
        with one_blas_thread:
            seen.append([library.get_num_threads() for library in libraries])

    with one_blas_thread:  # from now on threadpoolctl would listen to this thread alone
        pass
    try:
        use(libraries, [2] * len(libraries))
        other = threading.Thread(target=ask)
        other.start()
        other.join()
        assert libraries and seen == [[1] * len(libraries)]
        assert [library.get_num_threads() for library in libraries] == [2] * len(libraries)
    finally:
        use(libraries, before)
