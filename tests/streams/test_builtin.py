"""Every preset yields the samples and classes that the paper gives: on made-up files, and (slow) on the real ones."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from cndpm.datasets import resolve_data_dir, verify_dataset
from cndpm.datasets.pickles import read_pickle
from cndpm.streams import load_scenario, scenario_names
from cndpm.streams.drift import DRIFTS, FILED

needs_data = pytest.mark.skipif("CNDPM_DATA" not in os.environ, reason="set CNDPM_DATA to where the datasets lie")

# name: input shape, classes, tasks, samples of each stage on the published data
PUBLISHED = {
    "split-digits": ((1, 8, 8), 10, 5, None),
    "split-mnist": ((1, 28, 28), 10, 5, (12_665, 12_089, 11_263, 12_183, 11_800)),
    "split-mnist-gen": ((1, 28, 28), None, 5, (12_665, 12_089, 11_263, 12_183, 11_800)),
    "fuzzy-split-mnist": ((1, 28, 28), 10, 5, (6000, *[2400] * 20, 6000)),
    "mnist-svhn": ((3, 32, 32), 10, 2, None),
    "split-cifar10": ((3, 32, 32), 10, 5, (10_000,) * 5),
    "split-cifar100": ((3, 32, 32), 100, 20, (2500,) * 20),
    "split-fashion": ((1, 28, 28), 10, 5, (12_000,) * 5),
    "rotated-mnist": ((1, 28, 28), 10, 5, (60_000,) * 5),
    "permuted-mnist": ((1, 28, 28), 10, 5, (60_000,) * 5),
}


NAMES = [name for name in scenario_names() if name not in {**DRIFTS, **FILED}]


def test_every_preset_is_listed_here():
    assert set(NAMES) == {*PUBLISHED, *(f"iid-{name}" for name in PUBLISHED)}


def check_shape(stream, name: str) -> None:
    shape, n_classes, n_tasks, _ = PUBLISHED[name.removeprefix("iid-")]
    assert (stream.input_shape, stream.n_classes, len(stream.tasks)) == (shape, n_classes, n_tasks)
    assert (
        len(stream.stage_starts)
        == len(stream.stage_tasks)
        == (1 if name.startswith("iid-") else len(stream.stage_samples))
    )
    assert sorted({task for stage in stream.stage_tasks for task in stage}) == list(range(n_tasks))


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_builds_and_ends_where_it_says(data_dir: Path, name):
    stream = load_scenario(name).build(data_dir=data_dir)
    check_shape(stream, name)
    sizes = [len(batch.x) for batch in stream.batches()]
    assert len(sizes) == stream.n_batches and sum(sizes) == stream.n_samples  # type: ignore[attr-defined]
    for batch in (next(stream.batches()), next(stream.batches(stream.n_batches - 1))):
        assert batch.x.shape[1:] == stream.input_shape and (batch.y is not None) == stream.labelled


def test_the_tasks_of_cifar100_are_disjoint_and_cover_all_classes():
    groups = [stage.subsets[0].classes for stage in load_scenario("split-cifar100").stages]
    assert [len(group) for group in groups] == [5] * 20 and set().union(*groups) == set(range(100))


def test_the_share_of_the_new_task_rises_by_steps_in_fuzzy_split_mnist():
    stages = load_scenario("fuzzy-split-mnist").stages[1:-1]
    shares = [stage.subsets[1].weight / sum(s.weight for s in stage.subsets) for stage in stages]
    assert shares == [0.1, 0.3, 0.5, 0.7, 0.9] * 4
    for before, after in pairwise(stages[4::5]):
        assert before.subsets[1].classes == after.subsets[0].classes


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", NAMES)
def test_on_the_published_data_every_preset_has_the_papers_numbers(name):
    stream = load_scenario(name).build(seed=0)
    check_shape(stream, name)
    expected = PUBLISHED[name.removeprefix("iid-")][3]
    if expected is not None:
        assert stream.stage_samples == ((sum(expected),) if name.startswith("iid-") else expected)
        assert sum(len(task.y) for task in stream.tasks) == (50_000 if expected[-1] == 60_000 else 10_000)
    labels = [batch.y for batch in stream.batches()]
    if stream.labelled:
        assert len(torch.cat(labels).unique()) == stream.n_classes
    assert sum(len(batch.x) for batch in stream.batches()) == stream.n_samples


@pytest.mark.slow
@needs_data
def test_the_first_domain_of_mnist_svhn_is_all_of_mnist_and_the_second_what_is_there_of_svhn():
    stream = load_scenario("mnist-svhn").build(seed=0)
    assert stream.stage_samples[0] == 60_000 and len(stream.tasks[0].y) == 10_000
    found = [check.found.split()[0] for check in verify_dataset("svhn")[:2]]
    assert [stream.stage_samples[1], len(stream.tasks[1].y)] == list(map(int, found))


@pytest.mark.slow
@needs_data
def test_the_tasks_of_cifar100_are_its_published_superclasses():
    folder = resolve_data_dir() / "cifar-100-python"
    content, meta = read_pickle(folder / "train"), read_pickle(folder / "meta")
    groups = [set() for _ in range(20)]
    for coarse, fine in zip(content[b"coarse_labels"], content[b"fine_labels"], strict=True):
        groups[coarse].add(fine)
    subsets = [stage.subsets[0] for stage in load_scenario("split-cifar100").stages]
    assert [set(subset.classes) for subset in subsets] == groups
    assert [subset.task for subset in subsets] == [name.decode() for name in meta[b"coarse_label_names"]]


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10", "cifar100"])
def test_published_data_verify(name):
    assert all(check.ok for check in verify_dataset(name))
