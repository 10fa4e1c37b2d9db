import json
from dataclasses import replace

import numpy as np
import pytest

from cndpm.reports.anatomy import (
    _pixels,
    anatomy,
    gate_map,
    memory_chart,
    responsibility_map,
    sample_grid,
    similarity_map,
)
from cndpm.reports.collection import collect
from cndpm.reports.curves import growth_chart, mean_curve, metric_chart, task_chart
from cndpm.reports.drawing import save_figure
from cndpm.reports.groups import compare
from cndpm.reports.payload import figure_values
from cndpm.reports.run import Run


@pytest.fixture
def mixture(records):
    return Run(records / "cndpm" / "seed-0")


@pytest.fixture
def groups(records):
    return compare(collect([records]).runs)[0].groups


def test_the_mean_of_curves_interpolates_where_their_points_differ():
    assert mean_curve([([0, 10], [0.0, 10.0]), ([0, 5, 10], [0.0, 0.0, 20.0])]) == ([0, 5, 10], [0.0, 2.5, 15.0])


def test_the_mean_of_curves_ends_where_the_shortest_ends():
    assert mean_curve([([1, 2, 3], [1.0, 1.0, 1.0]), ([1, 2], [3.0, 3.0])]) == ([1, 2], [2.0, 2.0])


def test_every_seed_is_faint_and_the_mean_bold(groups):
    chart = metric_chart(groups)
    lines = [line for line in chart.panels[0].lines if line.colour == 0]
    assert [line.faint for line in lines] == [True, True, False]
    assert lines[2].y[-1] == pytest.approx((lines[0].y[-1] + lines[1].y[-1]) / 2)
    assert lines[2].y[-1] == pytest.approx(groups[0].mean("accuracy"))


def test_stages_are_named_by_their_tasks(mixture):
    assert [band.label for band in mixture.stages] == [f"digits {a}/{a + 1}" for a in range(0, 10, 2)]
    assert mixture.stages[-1].end == mixture.n_batches


def test_growth_ends_with_what_the_summary_says(groups):
    chart = growth_chart(groups, "n_experts")
    last = {line.label: line.y[-1] for line in chart.panels[0].lines if not line.faint}
    assert last == {group.label: group.mean("n_experts") for group in groups}


def test_there_is_a_panel_per_task_and_one_for_the_average(groups):
    chart = task_chart(groups)
    assert [panel.title for panel in chart.panels[:2]] == ["average over tasks seen so far", "digits 0/1"]
    assert len(chart.panels) == 6


def test_each_stretch_of_the_stream_is_shared_among_experts_and_memory(mixture):
    shares = np.array(responsibility_map(mixture).values)
    assert shares.shape[0] == 1 + mixture.last["n_experts"]
    np.testing.assert_allclose(shares.sum(axis=0), 100, atol=0.6)
    assert shares[0, 0] == 100  # nothing is known at first


def test_the_memory_never_holds_more_than_its_capacity(mixture):
    areas = np.array([area.y for area in memory_chart(mixture).areas])
    assert 0 < areas.sum(axis=0).max() <= mixture.config["settings"]["memory_size"]


def test_rows_of_the_gates_confusion_sum_to_all_samples(mixture):
    np.testing.assert_allclose(np.sum(gate_map(mixture).values, axis=1), 100, atol=0.5)


def test_the_map_of_similarity_shows_that_of_the_portrait(mixture):
    np.testing.assert_allclose(similarity_map(mixture).values, mixture.portrait.similarity, atol=1e-3)


def test_samples_are_drawn_from_the_mixture_and_from_every_expert(mixture):
    rows = sample_grid(mixture).rows
    names = [name for name, _ in rows if name]
    assert names == ["mixture", *(f"expert {k + 1}" for k in range(mixture.last["n_experts"]))]
    assert all(tile.label.isdigit() and tile.image.shape == (8, 8, 1) for _, tiles in rows for tile in tiles)


def test_a_single_network_has_no_anatomy(records):
    assert anatomy(Run(records / "finetune" / "seed-0")) == []


def test_every_figure_is_drawn_to_every_format_and_described_in_words(mixture, groups, tmp_path):
    figures = [metric_chart(groups), growth_chart(groups, "n_parameters"), task_chart(groups), *anatomy(mixture)]
    assert {figure.key for figure in figures} >= {"accuracy", "tasks", "gate", "similarity", "samples"}
    for figure in figures:
        files = save_figure(figure, tmp_path / figure.key, ["png", "svg"])
        assert all(file.stat().st_size > 1000 for file in files)
        assert figure.alt and figure.caption
        assert json.loads(json.dumps(figure_values(figure), allow_nan=False))["key"] == figure.key


def test_equal_records_give_equal_files(mixture, tmp_path):
    figure = gate_map(mixture)
    (a,), (b,) = save_figure(figure, tmp_path / "a", ["pdf"]), save_figure(figure, tmp_path / "b", ["pdf"])
    assert a.read_bytes() == b.read_bytes()


def test_a_curve_of_a_task_is_that_of_its_own_accuracy(groups):
    run = groups[1].runs[0]
    for task, panel in enumerate(task_chart(groups).panels[1:]):
        (line,) = (line for line in panel.lines if line.label == f"{groups[1].label}, seed {run.seed}")
        assert line.y == [row["task_accuracy"][task] for row in run.record.evaluations]


def test_a_stretch_shows_who_learned_it_and_not_what_came_before(mixture):
    steps = [([], 10), ([10.0], 0), ([10.0, 20.0], 0), ([25.0, 25.0], 0)]
    rows = [
        {"event": "progress", "step": step, "expert_counts": counts, "memory_samples": memory}
        for step, (counts, memory) in enumerate(steps, start=1)
    ]
    start = mixture.record.rows[0]
    shown = responsibility_map(Run(replace(mixture.record, rows=[start, *rows])))
    assert np.array(shown.values).T.tolist() == [[100, 0, 0], [0, 100, 0], [0, 0, 100], [0, 75, 25]]
    for row in rows:  # rows that are kept are not in the short-term memory
        row["n_in_memory"], row["memory_samples"] = row["memory_samples"], 5000
    assert responsibility_map(Run(replace(mixture.record, rows=[start, *rows]))).values == shown.values
    waiting = [start, rows[0], rows[0] | {"step": 2}, *({**row, "step": row["step"] + 1} for row in rows[1:])]
    again = responsibility_map(Run(replace(mixture.record, rows=waiting)))
    assert np.array(again.values).T.tolist()[:3] == [[100, 0, 0], [0, 100, 0], [0, 100, 0]]


def test_the_gate_is_that_of_the_last_evaluation_in_shares_of_each_task(mixture):
    counts = [[9, 1]], [[6, 2], [1, 9]]
    first, last = ({"event": "evaluation", "step": i, "gate_counts": each} for i, each in enumerate(counts))
    shown = gate_map(Run(replace(mixture.record, rows=[mixture.record.rows[0], first, last])))
    assert shown.values == [[75.0, 25.0], [10.0, 90.0]]


def test_a_pair_of_similar_experts_is_counted_once(mixture):
    run = Run(mixture.record)
    run.portrait = replace(mixture.portrait, similarity=np.array([[1.0, 0.95, 0.1], [0.95, 1.0, 0.2], [0.1, 0.2, 1.0]]))
    assert similarity_map(run).caption.endswith("Pairs above 0.9, which pruning would merge: 1.")


def test_samples_of_an_expert_are_its_own(mixture):
    portrait, rows = mixture.portrait, dict(sample_grid(mixture).rows)
    for k in range(mixture.last["n_experts"]):
        own = portrait.x[(portrait.expert == k) & ~portrait.from_mixture]
        assert [tile.image.tolist() for tile in rows[f"expert {k + 1}"]] == [_pixels(x).tolist() for x in own]


def test_pixels_keep_their_places():
    image = _pixels(np.arange(6, dtype=np.float32).reshape(1, 2, 3) / 255)
    assert image[:, :, 0].tolist() == [[0, 1, 2], [3, 4, 5]]
