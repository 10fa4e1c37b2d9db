from pathlib import Path

import pytest
import torch

from cndpm.streams import Scenario, load_scenario
from cndpm.streams.scenario_files import scenario_names
from cndpm.streams.variations import gradual, imbalanced, noisy, recurring


def labels(scenario: Scenario, **build) -> torch.Tensor:
    return torch.cat([batch.y for batch in scenario.build(**build)])


@pytest.mark.parametrize("kind", ["linear", "gaussian"])
def test_gradual_streams_mix_neighbours_around_boundaries_only(kind):
    plain, blurred = load_scenario("split-digits"), gradual(load_scenario("split-digits"), kind)
    a, b = labels(plain), labels(blurred)
    assert torch.equal(a.sort().values, b.sort().values)
    assert set((b[:80] // 2).tolist()) == {0}
    around = b[289 - 40 : 289 + 40] // 2
    assert set(around.tolist()) == {0, 1} and 20 < (around == 1).sum() < 60


def test_in_a_recurring_stream_every_task_comes_back():
    stream = recurring(load_scenario("split-digits"), visits=3).build()
    assert [tasks for (tasks,) in stream.stage_tasks] == [0, 1, 2, 3, 4] * 3
    assert len(stream.tasks) == 5 and abs(stream.n_samples - 1442) <= 15
    y = torch.cat([batch.y for batch in stream])
    n = stream.stage_samples
    assert set((y[sum(n[:5]) : sum(n[:6])] // 2).tolist()) == {0}


def test_imbalanced_classes_fall_geometrically(data_dir: Path):
    counts = torch.bincount(labels(imbalanced(load_scenario("split-digits"), ratio=10)), minlength=10)
    full = torch.bincount(labels(load_scenario("split-digits")), minlength=10)
    expected = full * 10 ** (-torch.arange(10) / 9)
    assert (counts - expected).abs().max() <= 1
    stream = imbalanced(load_scenario("split-digits")).build()
    assert [task.classes for task in stream.tasks] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    assert sum(len(task.y) for task in stream.tasks) == 355


def test_imbalance_changes_shares_within_a_weighted_subset_only(data_dir: Path):
    y = labels(imbalanced(load_scenario("fuzzy-split-mnist")), data_dir=data_dir)
    assert len(y) == 60_000
    assert ((y // 2)[6000:8400] == 1).double().mean().item() == pytest.approx(0.1, abs=0.03)


def test_label_noise_replaces_the_given_share_of_training_labels():
    clean, dirty = labels(load_scenario("split-digits")), labels(noisy(load_scenario("split-digits"), 0.3))
    wrong = (clean != dirty).double().mean().item()
    assert wrong == pytest.approx(0.3, abs=4 * (0.21 / len(clean)) ** 0.5)
    assert set(dirty.tolist()) == set(range(10))
    twice = load_scenario("noisy-split-digits", repeats=2).build()
    pairs = {(tuple(x.flatten().tolist()), y.item()) for batch in twice for x, y in zip(*batch, strict=True)}
    assert len(pairs) == len({x for x, _ in pairs})  # a sample has the same wrong label each time
    test = noisy(load_scenario("split-digits"), 1.0).build().tasks[0]
    assert set(test.y.tolist()) == {0, 1}


def test_an_unlabelled_stream_has_the_same_samples_and_no_labels():
    plain = load_scenario("split-digits").build()
    bare = load_scenario("unlabelled-split-digits").build()
    assert all(torch.equal(a.x, b.x) and b.y is None for a, b in zip(plain, bare, strict=True))
    assert not bare.labelled and bare.n_classes is None


def test_domains_differ_by_a_transformation_that_the_test_sets_share(data_dir: Path):
    for name in ("rotated-mnist", "permuted-mnist"):
        stream = load_scenario(name).build(data_dir=data_dir)
        assert len(stream.tasks) == 5 and all(task.classes == tuple(range(10)) for task in stream.tasks)
        assert all(not torch.equal(stream.tasks[0].x, task.x) for task in stream.tasks[1:])
        sums = [task.x.sum((1, 2, 3)) for task in stream.tasks]
        if name == "permuted-mnist":
            assert all(torch.allclose(sums[0], other) for other in sums)


def test_epochs_do_not_apply_to_stages_in_samples():
    with pytest.raises(ValueError, match="fuzzy-split-mnist measures stages"):
        load_scenario("fuzzy-split-mnist", epochs=2)


def test_the_order_of_classes_moves_classes_between_tasks_and_keeps_labels():
    order = [9, 1, 8, 2, 7, 3, 6, 4, 5, 0]
    stream = load_scenario("split-digits", class_order=order).build()
    assert [task.classes for task in stream.tasks] == [(1, 9), (2, 8), (3, 7), (4, 6), (0, 5)]
    plain = load_scenario("split-digits").build()
    zeros = [stream.tasks[4].x[stream.tasks[4].y == 0], plain.tasks[0].x[plain.tasks[0].y == 0]]
    assert torch.equal(*zeros)


@pytest.mark.parametrize("order", [[0, 1], [0] * 10, list(range(1, 11))])
def test_an_order_that_is_no_permutation_is_refused(order):
    with pytest.raises(ValueError, match="each of the classes"):
        load_scenario("split-digits", class_order=order)


def test_options_combine():
    scenario = load_scenario("split-digits", epochs=2, repeats=3, fraction=0.5, batch_size=7)
    assert len(scenario.stages) == 15 and scenario.stages[4].epochs == 2
    assert next(scenario.build().batches()).x.shape[0] == 7


@pytest.mark.parametrize(("option", "value"), [("epochs", 0), ("repeats", 0), ("fraction", 1.5), ("batch_size", 0)])
def test_options_out_of_range_are_refused(option, value):
    with pytest.raises(ValueError, match=option):
        load_scenario("split-digits", **{option: value})


@pytest.mark.parametrize("name", scenario_names(variations=True))
def test_every_variation_of_every_preset_is_a_valid_recipe_with_a_summary(name):
    scenario = load_scenario(name)
    assert scenario.name == name and scenario.summary
    assert type(scenario).model_validate(scenario.model_dump()) == scenario


def test_options_come_before_prefixes():
    assert load_scenario("recurring-split-digits", epochs=3).stages[0].epochs == 1
    order = list(range(9, -1, -1))
    tasks = load_scenario("imbalanced-split-digits", class_order=order).build().tasks
    assert [task.classes for task in tasks] == [(8, 9), (6, 7), (4, 5), (2, 3), (0, 1)]


def test_prefixes_combine():
    stream = load_scenario("iid-noisy-split-digits").build()
    assert len(stream.stage_starts) == 1 and stream.scenario.label_noise == 0.2
    assert stream.scenario.name == "iid-noisy-split-digits"


def test_a_task_of_other_classes_does_not_keep_its_name():
    order = [1, 0, *range(2, 100)]
    subsets = [stage.subsets[0] for stage in load_scenario("split-cifar100", class_order=order).stages]
    assert (subsets[0].task, subsets[1].task, subsets[4].task) == ("aquatic_mammals", None, None)
