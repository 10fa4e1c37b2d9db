"""Figures of prequential runs: the curve, the changes, and which expert answered when; on paper and in a browser."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cndpm.experiments import RunSettings, configure, read_record, run
from cndpm.reports import write_report
from cndpm.reports.answers_ahead import answering_map, prequential_chart, recovery_words
from cndpm.reports.drawing import save_figure
from cndpm.reports.run import Run
from cndpm.streams import load_scenario, stream_of_rows


@pytest.fixture(scope="module")
def ahead(tmp_path_factory):
    """Two mixtures, one without pools, and a network on 400 rows that change half-way: windows of 80, cut there."""
    folder = tmp_path_factory.mktemp("ahead")
    rows = load_scenario("drift-scales").draw(0)
    stream = stream_of_rows(rows.x[800:1200], rows.y[800:1200], changes=[200], name="two scales")
    for name, learner, overrides in (
        ("cndpm", "cndpm", ["learner.memory_size=50"]),
        ("experts", "cndpm", ["learner.memory_size=50", "learner.representations=one"]),
        ("finetune", "finetune", ["learner.hidden=8"]),
    ):
        made = configure("drift-scales", learner=learner, device="cpu", overrides=overrides).build_learner(stream)
        run(made, stream, folder / name, settings=RunSettings(prequential=True, prequential_window=80))
    return folder


def test_the_curve_is_the_accuracy_of_the_windows_and_bands_are_the_changes(ahead):
    one = Run(ahead / "cndpm")
    chart = prequential_chart([one.as_group()])
    rows = [row for row in read_record(ahead / "cndpm").rows if row["event"] == "window"]
    assert list(chart.panels[0].lines[0].y) == [row["accuracy"] for row in rows]
    assert list(chart.panels[0].lines[0].x) == [8, 16, 20, 28, 36, 40]
    assert [(band.start, band.end) for band in chart.bands] == [(0, 20), (20, 40)]
    samples = one.record.summary["prequential"]["recovery"][0]["samples"]
    assert f"after 200: cndpm {'never' if samples is None else samples}." in chart.caption


def test_the_map_shows_the_share_of_every_expert_in_every_window(ahead):
    shown = answering_map(Run(ahead / "experts"))
    values = np.array(shown.values)
    assert shown.rows[0] == "memory" and shown.rows[1] == "expert 1"
    assert np.allclose(values.sum(axis=0), 100, atol=0.3)
    assert values[0, 0] == pytest.approx(62.5)  # 50 of 80: the memory had to fill before there was an expert
    assert [shown.columns[i] for i in shown.ticks] == ["1–8", "21–28"]
    assert answering_map(Run(ahead / "finetune")) is None


def test_where_pools_answer_the_map_shows_rules_and_recent_models(ahead):
    one = Run(ahead / "cndpm")
    shown = answering_map(one)
    assert shown.title == "Who answered, when" and shown.rows == [
        "rules",
        "recent models",
        "clusters",
        "trees",
        "nearest rows",
    ]
    assert np.allclose(np.sum(shown.values, axis=0), 100, atol=0.3)
    last = [row for row in one.record.rows if row.get("answers")][-1]
    assert [column[-1] for column in shown.values] == [round(100 * share, 1) for share in last["answers"].values()]


def test_runs_without_prequential_scores_have_no_such_figures(records):
    one = Run(records / "cndpm" / "seed-0")
    assert prequential_chart([one.as_group()]) is None and answering_map(one) is None


def test_windows_do_not_stand_for_the_whole_run(ahead):
    one = Run(ahead / "cndpm")
    assert one.metric == "prequential_accuracy" and "accuracy" not in one.last
    assert one.last["prequential_accuracy"] == one.record.summary["prequential"]["accuracy"]


def test_a_change_that_was_never_over_is_told_as_such(ahead):
    one = Run(ahead / "cndpm")
    rows = [{"change": 200, "before": 90.0, "samples": None}, {"change": 3000, "before": 90.0, "samples": 1250}]
    summary = one.record.summary | {"prequential": one.record.summary["prequential"] | {"recovery": rows}}
    group = Run(replace(one.record, summary=summary)).as_group()
    words = f"Samples until 95 % of the former level was regained after 200, 3,000: {group.label} never, 1,250."
    assert recovery_words([group]) == words


def test_both_figures_are_drawn(ahead, tmp_path):
    one = Run(ahead / "cndpm")
    for figure in (prequential_chart([one.as_group()]), answering_map(one)):
        assert save_figure(figure, tmp_path / figure.key, ["png"])[0].stat().st_size > 5000
    assert one.plot("prequential").get_ylabel() == "accuracy of a window (%)"
    assert one.plot("answering").get_xlabel() == "batches learned"


def test_the_report_compares_the_curves_and_tells_of_the_scores(ahead, tmp_path):
    report = write_report([ahead], tmp_path, formats=["html", "md"])
    page, table = report.page.read_text(), (tmp_path / "tables.md").read_text()
    assert "prequential (%)" in table and "On samples before they are learned" in page
    values = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert values["parts"][0]["figures"][0]["key"] == "prequential"
    assert "answering" in [figure["key"] for figure in values["runs"][0]["figures"]]


@pytest.mark.parametrize("options", [(), ("--blink-settings=preferredColorScheme=0",)], ids=["light", "dark"])
def test_a_browser_draws_them(ahead, tmp_path, browse, options):
    page = write_report([ahead], tmp_path / "report", formats=["html"]).page
    document, console = browse(page.as_uri(), *options)
    assert 'data-key="prequential" class="wide" data-drawn="true"' in document
    assert 'data-key="answering" class="wide" data-drawn="true"' in document
    assert console == []
