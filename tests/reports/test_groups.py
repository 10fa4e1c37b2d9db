from dataclasses import replace

import pytest

from cndpm.model.settings import CNDPMSettings
from cndpm.reports.collection import collect
from cndpm.reports.groups import _distinct, compare
from cndpm.reports.run import Run


def changed(run, **changes):
    settings = CNDPMSettings.merge(run.config["settings"], changes)
    return Run(replace(run.record, config={**run.config, "settings": settings}))


def test_seeds_are_one_group_and_learners_on_one_stream_one_comparison(records):
    (comparison,) = compare(collect([records]).runs)
    assert [(group.label, [run.seed for run in group.runs]) for group in comparison.groups] == [
        ("cndpm", [0, 1]),
        ("finetune", [0, 1]),
    ]


def test_groups_of_one_learner_are_told_apart_by_the_setting_that_differs(records):
    run = collect([records / "cndpm"]).runs[0]
    (comparison,) = compare([run, changed(run, log_alpha=-600.0), changed(run, log_alpha=80.0)])
    labels = [group.label for group in comparison.groups]
    assert labels == ["cndpm, log_alpha = 0.0", "cndpm, log_alpha = -600.0", "cndpm, log_alpha = 80.0"]


def test_a_choice_tells_groups_apart_before_what_follows_from_it(records):
    run = collect([records / "cndpm"]).runs[0]
    (comparison,) = compare([run, changed(run, experts="gaussian")])
    assert [group.label for group in comparison.groups] == ["cndpm, experts = neural", "cndpm, experts = gaussian"]


def test_means_and_errors_are_over_complete_runs(records):
    group = compare(collect([records / "cndpm"]).runs)[0].groups[0]
    values = [run.record.summary["accuracy"] for run in group.runs]
    assert group.mean("accuracy") == pytest.approx(sum(values) / 2)
    assert group.over_seeds("accuracy")[1] == pytest.approx(abs(values[0] - values[1]) / 2)


def test_streams_of_one_name_and_length_are_told_apart_by_their_stages(records):
    run = collect([records / "finetune"]).runs[0]
    start = run.record.rows[0]
    halved = {**start, "stage_starts": start["stage_starts"][:1], "stage_tasks": start["stage_tasks"][:1]}
    scenario = {**run.config["scenario"], "stages": run.config["scenario"]["stages"][:1]}
    other = Run(replace(run.record, config={**run.config, "scenario": scenario}, rows=[halved, *run.record.rows[1:]]))
    titles = [comparison.scenario for comparison in compare([run, other])]
    n = f"{run.n_batches} batches"
    assert titles == [f"split-digits ({n}, 5 stages)", f"split-digits ({n}, 1 stage)"]


def test_runs_on_held_out_training_data_are_not_compared_with_runs_on_the_test_set(records):
    run = collect([records / "cndpm"]).runs[0]
    chosen = Run(replace(run.record, config={**run.config, "scenario": run.config["scenario"] | {"validation": True}}))
    titles = [comparison.scenario for comparison in compare([run, chosen])]
    assert titles == [run.scenario, f"{run.scenario} (validation)"]


def test_seeds_are_in_order_and_runs_without_results_count_in_no_mean(records):
    first, second = collect([records / "finetune"]).runs
    stopped = Run(replace(second.record, summary=None, status="interrupted"))
    ((group,),) = (comparison.groups for comparison in compare([stopped, first]))
    assert [run.seed for run in group.runs] == [0, 1]
    assert group.complete == (first,) and group.mean("accuracy") == first.record.summary["accuracy"]


def test_labels_that_are_equal_get_numbers():
    assert _distinct(["a", "b", "a"]) == ["a (1)", "b", "a (2)"]
