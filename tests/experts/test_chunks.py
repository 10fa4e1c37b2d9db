"""Samples compute a quantity once for a chunk, and blocks are cut the same wherever one starts."""

import gc
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.chunks import Samples, open_block


class Counting:
    """Doubles the inputs of a chunk, and counts how often and for how many."""

    def __init__(self):
        self.sizes = []

    def __call__(self, chunk: Samples) -> torch.Tensor:
        self.sizes.append(len(chunk))
        return 2 * chunk.x


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(12, 3, generator=torch.Generator().manual_seed(0))


def test_a_quantity_is_computed_once_for_a_chunk_and_cut_for_its_parts(x):
    chunk, key, double = Samples(x), object(), Counting()
    for start in (0, 4, 4, 8):
        assert torch.equal(chunk.part(start, start + 4).derive("double", key, double), 2 * x[start : start + 4])
    assert torch.equal(chunk.derive("double", key, double), 2 * x)
    assert double.sizes == [12]


def test_a_part_of_a_part_lies_where_it_should(x):
    part, double = Samples(x).part(2, 10).part(3, 6), Counting()
    assert (part.start, len(part)) == (5, 3)
    assert torch.equal(part.x, x[5:8])
    assert torch.equal(part.derive("double", None, double), 2 * x[5:8])
    assert double.sizes == [12]


def test_another_key_computes_anew_and_the_latest_is_kept(x):
    chunk, one, two, double = Samples(x), object(), object(), Counting()
    part = chunk.part(0, 4)
    for key in (one, one, two, two):
        part.derive("double", key, double)
    assert len(double.sizes) == 2
    chunk.part(4, 8).derive("double", two, double)
    assert len(double.sizes) == 2
    part.derive("double", one, double)
    assert len(double.sizes) == 3


def test_keys_are_told_apart_by_identity_not_equality(x):
    chunk, double = Samples(x), Counting()
    chunk.derive("double", [1], double)
    chunk.derive("double", [1], double)
    assert len(double.sizes) == 2


def test_quantities_of_different_names_do_not_replace_each_other(x):
    chunk, key, double = Samples(x), object(), Counting()
    for name in ("one", "two", "one", "two"):
        chunk.derive(name, key, double)
    assert len(double.sizes) == 2


def test_alone_leaves_the_chunk_and_is_the_same_every_time(x):
    chunk, double = Samples(x), Counting()
    part = chunk.part(4, 8)
    alone = part.alone()
    assert alone is part.alone()
    assert alone.alone() is alone
    assert chunk.alone() is chunk
    assert torch.equal(alone.derive("double", None, double), 2 * x[4:8])
    assert double.sizes == [4]


@pytest.mark.parametrize("rows", [torch.tensor([3, 0]), torch.tensor([True, False, False, True])])
def test_selected_samples_carry_the_features_that_are_known(x, rows):
    part, key, double = Samples(x).part(4, 8), object(), Counting()
    part.derive("features", key, double)
    part.derive("others", key, double)
    selected = part.select(rows)
    assert torch.equal(selected.x, x[4:8][rows])
    assert torch.equal(selected.derive("features", key, double), 2 * x[4:8][rows])
    assert len(double.sizes) == 2
    selected.derive("others", key, double)
    assert double.sizes == [12, 12, 2]


def test_selected_samples_without_features_have_none_to_carry(x):
    selected, double = Samples(x).select(torch.tensor([1, 2])), Counting()
    assert torch.equal(selected.derive("features", None, double), 2 * x[1:3])
    assert double.sizes == [2]


def test_features_that_were_carried_are_not_those_of_another_map(x):
    samples, double = Samples(x), Counting()
    samples.derive("features", object(), double)
    samples.select(torch.tensor([0])).derive("features", object(), double)
    assert double.sizes == [12, 1]


@given(n=st.integers(1, 60), batch_size=st.integers(1, 15), chunk_size=st.integers(1, 40), first=st.integers(0, 60))
def test_a_block_is_cut_into_every_sample_once_in_order_and_alike_wherever_one_starts(n, batch_size, chunk_size, first):
    x = torch.arange(float(n))[:, None]
    start = min(first, (n - 1) // batch_size) * batch_size
    whole = list(open_block(x, batch_size, chunk_size=chunk_size))
    later = list(open_block(x, batch_size, chunk_size=chunk_size, start=start))
    assert torch.equal(torch.cat([samples.x for samples in whole]), x)
    assert all(len(samples) == batch_size for samples in whole[:-1])
    for a, b in zip(whole[start // batch_size :], later, strict=True):
        assert torch.equal(a.x, b.x)
        assert a.start == b.start
        assert torch.equal(a.whole.x, b.whole.x)
        assert torch.equal(a.whole.x[a.start : a.start + len(a)], a.x)


@given(n=st.integers(1, 60), batch_size=st.integers(1, 15), chunk_size=st.integers(1, 40), in_order=st.booleans())
def test_chunks_are_whole_batches_of_about_their_size_and_know_the_one_behind(n, batch_size, chunk_size, in_order):
    x, options = torch.arange(float(n))[:, None], {"chunk_size": chunk_size, "in_order": in_order}
    reached = ((samples.whole, samples.whole.following) for samples in open_block(x, batch_size, **options))
    behind = dict(reached)
    chunks = list(behind)
    assert torch.equal(torch.cat([chunk.x for chunk in chunks]), x)
    assert all(len(chunk) % batch_size == 0 for chunk in chunks[:-1])
    assert all(len(chunk) <= max(chunk_size, batch_size) for chunk in chunks)
    assert all(chunk.in_order is in_order for chunk in chunks)
    assert list(behind.values()) == [*chunks[1:], None]


def test_a_chunk_is_a_copy_made_when_it_is_reached(x):
    expected, batches = x.clone(), open_block(x, 2, chunk_size=4)
    first = next(batches)
    x[:8] = -1  # the chunk that was begun and the one behind it are at hand
    assert torch.equal(torch.cat([first.x, *(next(batches).x for _ in range(3))]), expected[:8])


def test_samples_and_what_was_derived_of_them_go_when_nobody_holds_them():
    chunk = Samples(torch.zeros(4, 2))
    part = chunk.part(1, 3)
    part.derive("double", None, lambda whole: 2 * whole.x)
    gone, gc_was_on = [weakref.ref(chunk), weakref.ref(part)], gc.isenabled()
    gc.disable()
    try:
        del chunk, part
        assert [each() for each in gone] == [None, None]
    finally:
        if gc_was_on:
            gc.enable()
