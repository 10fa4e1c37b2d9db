from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.streams import Batch, Scenario, Task, Transform, load_scenario


@pytest.fixture(scope="module")
def stream(data_dir: Path):
    return load_scenario("split-mnist").build(data_dir=data_dir, seed=3)


def sample_keys(x: torch.Tensor) -> list[tuple[int, int]]:
    """(label, repetition) of each sample, which the made-up files write into the first two pixels."""
    return [tuple(key) for key in (x[:, 0, 0, :2] * 255).round().int().tolist()]


def test_a_batch_carries_x_and_y_and_nothing_else(stream):
    assert Batch._fields == ("x", "y")
    batch = next(stream.batches())
    assert type(batch) is Batch and len(batch) == 2
    assert batch.x.dtype == torch.float32 and batch.x.shape == (10, 1, 28, 28)
    assert batch.y.dtype == torch.int64 and batch.y.shape == (10,)
    assert batch.x.min() >= 0 and batch.x.max() <= 1


def test_one_epoch_presents_every_sample_once_in_the_order_of_the_tasks(stream):
    seen = [(stream.stage_of(i), key) for i, batch in enumerate(stream.batches()) for key in sample_keys(batch.x)]
    expected = {(label // 2, (label, i)) for label in range(10) for i in range(12)}
    assert len(seen) == 120 and set(seen) == expected
    assert [stage for stage, _ in seen] == sorted(stage for stage, _ in seen)


def test_labels_belong_to_their_images(stream):
    for batch in stream.batches():
        assert [label for label, _ in sample_keys(batch.x)] == batch.y.tolist()


def test_the_last_batch_of_a_stage_holds_the_rest(stream):
    assert [len(batch.x) for batch in stream.batches()] == [10, 10, 4] * 5
    assert stream.n_batches == 15 and stream.n_samples == 120
    assert stream.stage_starts == (0, 3, 6, 9, 12) and stream.stage_samples == (24,) * 5


SCENARIOS = ("split-mnist", "split-mnist-gen", "fuzzy-split-mnist", "blurred-split-digits", "iid-split-mnist")


@pytest.mark.parametrize("name", SCENARIOS)
def test_batches_are_the_same_whatever_the_start(data_dir: Path, name):
    stream = load_scenario(name).build(data_dir=data_dir, seed=1)
    whole = list(islice(stream.batches(), 700))
    for start in {0, 1, 7, len(whole) // 2, len(whole) - 1, len(whole)}:
        rest = list(islice(stream.batches(start), len(whole) - start))
        assert len(rest) == len(whole) - start
        assert all(torch.equal(a.x, b.x) for a, b in zip(whole[start:], rest, strict=True))
        assert all((a.y is None) or torch.equal(a.y, b.y) for a, b in zip(whole[start:], rest, strict=True))


@pytest.mark.parametrize("name", SCENARIOS)
def test_blocks_are_the_same_whatever_the_start_and_say_what_lies_before_it(data_dir: Path, name):
    stream = load_scenario(name).build(data_dir=data_dir, seed=1)
    whole = list(stream.blocks())
    ends = np.cumsum([len(list(block.batches())) for block in whole]).tolist()
    assert ends[-1] == stream.n_batches and all(block.first == 0 for block in whole)
    for start in {0, 1, 7, ends[0], stream.n_batches // 2, stream.n_batches - 1, stream.n_batches}:
        rest = list(stream.blocks(start))
        skipped = sum(end <= start for end in ends)
        assert len(rest) == len(whole) - skipped
        for i, (a, b) in enumerate(zip(whole[skipped:], rest, strict=True)):
            assert torch.equal(a.x, b.x) and (a.y is None or torch.equal(a.y, b.y))
            before = ends[skipped - 1] if skipped else 0
            assert b.first == (b.batch_size * (start - before) if i == 0 else 0)


@pytest.mark.parametrize("options", [{}, {"batch_size": 7}, {"repeats": 3}])
def test_a_block_lies_in_one_stage_and_only_its_last_batch_is_shorter(options):
    stream = load_scenario("split-digits", **options).build()
    i, begins = 0, []
    for block in stream.blocks():
        begins.append(i)
        sizes = [len(batch.x) for batch in block.batches()]
        assert set(sizes[:-1]) <= {stream.scenario.batch_size} and sizes[-1] <= stream.scenario.batch_size
        assert len({stream.stage_of(j) for j in range(i, i + len(sizes))}) == 1
        i += len(sizes)
    assert i == stream.n_batches and set(stream.stage_starts) <= set(begins)


def test_the_drawn_numbers_do_not_depend_on_where_blocks_are_cut():
    # Binarising draws chunk by chunk, and one chunk holds all of these stages: the sum was drawn before blocks existed.
    scenario = load_scenario("split-digits").model_copy(update={"transform": Transform(binarise=True)})
    x = torch.cat([batch.x for batch in scenario.build(seed=1)])
    places = torch.arange(x.numel(), dtype=torch.float64).reshape(x.shape)
    assert int((x.double() * places).sum()) == 1_301_857_443


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**9), st.data())
def test_an_endless_stream_can_begin_anywhere(seed, data):
    stream = load_scenario("endless-split-digits").build(seed=seed)
    start = data.draw(st.integers(0, 400))
    for a, b in zip(islice(stream.batches(), start, start + 3), stream.batches(start), strict=False):
        assert torch.equal(a.x, b.x) and torch.equal(a.y, b.y)


def test_an_endless_stream_goes_on_with_new_draws():
    stream = load_scenario("endless-split-digits").build(seed=0)
    n = len(list(load_scenario("split-digits").build(seed=0).batches()))
    assert stream.n_batches is None and stream.n_samples is None
    first, second = (list(islice(stream.batches(start), n)) for start in (0, n))
    assert not torch.equal(first[0].x, second[0].x)
    assert [stream.stage_of(i) for i in range(n)] == [stream.stage_of(i) for i in range(n, 2 * n)]
    sums = [sorted(row.sum().item() for batch in part for row in batch.x) for part in (first, second)]
    assert sums[0] == sums[1]  # the same samples, in another order


def test_the_seed_determines_the_order(data_dir: Path):
    build = load_scenario("split-mnist").build
    a, b, c = (torch.cat([batch.x for batch in build(data_dir=data_dir, seed=seed)]) for seed in (0, 0, 1))
    assert torch.equal(a, b) and not torch.equal(a, c)


def test_tasks_are_the_test_sets_of_the_stages(stream):
    assert [task.classes for task in stream.tasks] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    assert stream.stage_tasks == ((0,), (1,), (2,), (3,), (4,))
    for task in stream.tasks:
        assert isinstance(task, Task) and task.x.shape == (8, 1, 28, 28) and task.x.max() <= 1
        assert set(task.y.tolist()) == set(task.classes)
        assert [label for label, _ in sample_keys(task.x)] == task.y.tolist()


def test_the_iid_version_has_the_same_samples_and_tasks_in_one_stage(data_dir: Path, stream):
    iid = load_scenario("iid-split-mnist").build(data_dir=data_dir, seed=3)
    keys = [[key for batch in s for key in sample_keys(batch.x)] for s in (stream, iid)]
    assert keys[0] != keys[1] and sorted(keys[0]) == sorted(keys[1])
    assert [task.name for task in iid.tasks] == [task.name for task in stream.tasks]
    assert iid.stage_tasks == ((0, 1, 2, 3, 4),) and len(iid.stage_starts) == 1
    assert len({label for label, _ in keys[1][:24]}) > 4


def test_several_epochs_are_drawn_with_replacement(data_dir: Path):
    stream = load_scenario("split-mnist", epochs=10).build(data_dir=data_dir)
    first = [key for batch in islice(stream.batches(), 24) for key in sample_keys(batch.x)]
    counts = np.unique([label * 100 + i for label, i in first], return_counts=True)[1]
    assert len(first) == 240 and stream.n_samples == 1200  # type: ignore[attr-defined]
    assert counts.min() != counts.max()  # ten shuffled passes would give ten of each


def test_a_fraction_keeps_that_share_of_every_class_in_training_only(data_dir: Path):
    stream = load_scenario("split-mnist", fraction=0.5, repeats=2).build(data_dir=data_dir, seed=5)
    keys = [key for batch in stream for key in sample_keys(batch.x)]
    assert len(keys) == 120 and len(set(keys)) == 60  # the same half both times
    assert all(len({key for key in keys if key[0] == label}) == 6 for label in range(10))
    assert sum(len(task.y) for task in stream.tasks) == 40


def test_binarised_images_are_drawn_anew_at_every_access(data_dir: Path):
    stream = load_scenario("split-mnist-gen", repeats=2).build(data_dir=data_dir, seed=0)
    assert not stream.labelled and stream.n_classes is None
    batches = list(stream.batches())
    assert all(batch.y is None and set(batch.x.unique().tolist()) <= {0.0, 1.0} for batch in batches)
    grey = torch.cat([b.x for b in load_scenario("split-mnist", repeats=2).build(data_dir=data_dir, seed=0)])
    drawn = torch.cat([batch.x for batch in batches])
    assert ((drawn == 1) <= (grey > 0)).all() and ((drawn == 0) <= (grey < 1)).all()
    assert (drawn - grey).mean().abs() < 4 * 0.5 / np.sqrt(grey.numel())
    pixels = (drawn[:120].sum(), drawn[120:].sum())
    assert pixels[0] != pixels[1]


def test_binarised_test_sets_are_the_same_for_the_same_seed(data_dir: Path):
    build = load_scenario("split-mnist-gen").build
    a, b, c = (build(data_dir=data_dir, seed=seed).tasks[2].x for seed in (4, 4, 5))
    assert torch.equal(a, b) and not torch.equal(a, c) and set(a.unique().tolist()) == {0.0, 1.0}


def test_fuzzy_stages_present_two_tasks_in_the_given_shares(data_dir: Path):
    stream = load_scenario("fuzzy-split-mnist").build(data_dir=data_dir)
    assert stream.stage_samples == (6000, *[2400] * 20, 6000)  # type: ignore[attr-defined]
    assert stream.stage_tasks[0] == (0,) and stream.stage_tasks[1:6] == ((0, 1),) * 5 and stream.stage_tasks[-1] == (4,)
    assert len(stream.tasks) == 5
    y = torch.cat([batch.y for batch in stream])
    for k, share in enumerate((0.1, 0.3, 0.5, 0.7, 0.9)):
        part = y[6000 + 2400 * k : 6000 + 2400 * (k + 1)]
        assert set(part.tolist()) <= {0, 1, 2, 3}
        assert (part >= 2).double().mean().item() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 2400))


def test_mnist_and_svhn_share_shape_and_labels(data_dir: Path):
    stream = load_scenario("mnist-svhn").build(data_dir=data_dir)
    assert stream.input_shape == (3, 32, 32) and stream.n_classes == 10
    assert [task.name for task in stream.tasks] == ["mnist", "svhn"]
    grey = next(stream.batches()).x
    assert torch.equal(grey[:, 0], grey[:, 2])
    assert [set(task.y.tolist()) for task in stream.tasks] == [set(range(10))] * 2


def two_datasets(**fields) -> Scenario:
    stages = [{"subsets": [{"dataset": name, "classes": [0, 1]}], "epochs": 1} for name in ("mnist", "fashion-mnist")]
    return Scenario(name="two", stages=stages, **fields)


def test_disjoint_labels_follow_one_another(data_dir: Path):
    shared = two_datasets().build(data_dir=data_dir)
    disjoint = two_datasets(labels="disjoint").build(data_dir=data_dir)
    assert (shared.n_classes, disjoint.n_classes) == (10, 20)
    assert [task.classes for task in disjoint.tasks] == [(0, 1), (10, 11)]
    assert set(torch.cat([batch.y for batch in disjoint]).tolist()) == {0, 1, 10, 11}
    assert set(disjoint.tasks[1].y.tolist()) == {10, 11}


def test_inputs_of_different_shapes_are_refused_with_the_remedy(data_dir: Path):
    stages = [{"subsets": [{"dataset": name}], "epochs": 1} for name in ("mnist", "svhn")]
    with pytest.raises(ValueError, match=r"mnist: \(1, 28, 28\).*svhn: \(3, 32, 32\).*transform"):
        Scenario(name="mixed", stages=stages).build(data_dir=data_dir)


def test_a_class_that_the_dataset_lacks_is_refused():
    stage = {"subsets": [{"dataset": "digits", "classes": [3, 12]}], "epochs": 1}
    with pytest.raises(ValueError, match=r"digits has classes 0 to 9; the scenario asks for \[12\]"):
        Scenario(name="a", stages=[stage]).build()


def test_features_pass_unchanged_and_cannot_be_turned(tmp_path: Path):
    x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x_train=x, y_train=np.arange(20) % 4, x_test=x[:4], y_test=np.arange(4))
    stage = {"subsets": [{"dataset": "rows.npz"}], "epochs": 1}
    stream = Scenario(name="rows", stages=[stage]).build(data_dir=tmp_path)
    assert stream.input_shape == (3,) and stream.n_classes == 4
    assert sorted(map(tuple, torch.cat([b.x for b in stream]).tolist())) == sorted(map(tuple, x.tolist()))
    with pytest.raises(ValueError, match="features, not images"):
        Scenario(name="rows", stages=[stage], transform=Transform(size=8)).build(data_dir=tmp_path)


@pytest.mark.parametrize("start", [-1, 16])
def test_a_start_outside_the_stream_is_refused_at_once(stream, start):
    with pytest.raises(ValueError, match=f"got {start}"):
        stream.batches(start)


def test_a_batch_outside_the_stream_has_no_stage(stream):
    with pytest.raises(IndexError, match="got 15"):
        stream.stage_of(15)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="got -1"):
        load_scenario("split-digits").build(seed=-1)


def test_subsets_that_share_a_task_are_tested_once():
    parts = [{"dataset": "digits", "classes": classes, "task": "one"} for classes in ([0, 1], [1, 2])]
    stream = Scenario(name="a", stages=[{"subsets": [part], "epochs": 1} for part in parts]).build()
    (task,) = stream.tasks
    assert task.classes == (0, 1, 2) and stream.stage_tasks == ((0,), (0,))
    assert len({tuple(row) for row in task.x.flatten(1).tolist()}) == len(task.y)
