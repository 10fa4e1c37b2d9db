"""A tenth of every class's training samples in place of the test set."""

import pytest
import torch

from cndpm.datasets import Dataset, Split, load_dataset
from cndpm.streams import load_scenario
from cndpm.streams.pool import hold_out
from cndpm.validation import ConfigError


def uneven() -> Dataset:
    """Classes of 100, 25, 2 and 1 training samples, numbered; the test set has a number of its own."""
    y = torch.cat([torch.full((n,), label) for label, n in enumerate((100, 25, 2, 1))])
    y = y[torch.randperm(len(y), generator=torch.Generator().manual_seed(0))]
    test = Split(torch.full((4, 1), -1.0), torch.arange(4))
    return Dataset("uneven", Split(torch.arange(len(y))[:, None].float(), y), test, tuple("abcd"))


def test_a_tenth_of_every_class_is_held_out_and_nothing_of_the_test_set_is_used():
    whole = uneven()
    split = hold_out(whole, seed=0, number=0)
    assert torch.bincount(split.test.y, minlength=4).tolist() == [10, 2, 1, 0]
    assert torch.bincount(split.train.y, minlength=4).tolist() == [90, 23, 1, 1]
    rows = torch.cat([split.train.x, split.test.x])[:, 0].long()
    assert rows.sort().values.tolist() == list(range(128))
    for part in (split.train, split.test):
        assert (part.x[1:] > part.x[:-1]).all()
        assert torch.equal(part.y, whole.train.y[part.x[:, 0].long()])


def test_another_seed_and_another_dataset_hold_out_other_samples():
    first, again, other, second = (
        hold_out(uneven(), seed=seed, number=number).test.x for seed, number in ((0, 0), (0, 0), (1, 0), (0, 1))
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other) and not torch.equal(first, second)


def test_a_stream_is_tested_on_training_samples_that_it_does_not_teach():
    digits = load_dataset("digits")
    stream = load_scenario("split-digits", validation=True).build(seed=3)
    taught = torch.cat([block.x for block in stream.blocks()]).flatten(1)
    asked = torch.cat([task.x for task in stream.tasks]).flatten(1)
    known = {tuple(row.tolist()) for row in digits.train.x.flatten(1)}
    as_bytes = {tuple(row) for row in (asked * 255).round().to(torch.uint8).tolist()}
    assert as_bytes <= known
    assert len(taught) + len(asked) == len(digits.train)
    assert len(asked) == pytest.approx(len(digits.train) / 10, abs=5)


def test_a_stream_of_rows_has_nothing_to_hold_out():
    with pytest.raises(ConfigError, match="without a test set"):
        load_scenario("drift-flip", validation=True)
