import json
import re
import shutil
import time

import pytest

from cndpm.experiments import ConfigError, RecordError
from cndpm.paper.experiment import Experiment
from cndpm.reports import write_report
from cndpm.reports.content import gather
from cndpm.reports.html import encode, page_values, render_page
from cndpm.reports.report import file_name
from resealed import rename, rewrite_config


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


def test_all_formats_are_written(records, tmp_path):
    report = write_report([records], tmp_path, formats=["html", "md", "csv", "tex", "png", "svg"])
    assert report.page == tmp_path / "index.html"
    names = {file.name for file in report.files}
    assert {
        "tables.md",
        "tables.csv",
        "tables.tex",
        "split-digits-accuracy.png",
        "split-digits-cndpm-gate.svg",
    } <= names
    assert all(file.stat().st_size > 0 for file in report.files)


def test_the_page_asks_nothing_of_any_network(records):
    page = render_page(gather([records]))
    outside = re.sub(r'"http://www.w3.org/[^"]*"', "", page.replace("xmlns='http://www.w3.org/2000/svg'", ""))
    assert "http:" not in outside and "https:" not in outside and "//cdn" not in outside
    assert "connect-src 'none'" in page


def test_a_page_holds_every_run_its_numbers_and_the_command_to_repeat_it(records):
    values = data_of(render_page(gather([records])))
    assert len(values["runs"]) == 4
    assert values["runs"][0]["command"] == "cndpm run split-digits --fraction 0.4 --learner cndpm --seeds 2"
    assert values["runs"][0]["config"]["settings"]["memory_size"] == 60
    assert {figure["key"] for figure in values["runs"][0]["figures"]} >= {
        "responsibilities",
        "gate",
        "samples",
        "memory",
    }


def test_a_damaged_record_is_on_the_page_and_does_not_stop_the_rest(copied):
    (copied / "cndpm" / "seed-0" / "config.json").write_text("{")
    (copied / "cndpm" / "seed-1" / "portrait.npz").write_bytes(b"cut")
    values = data_of(render_page(gather([copied])))
    folders = [str(copied / "cndpm" / name) for name in ("seed-0", "seed-1")]
    assert [problem["folder"] for problem in values["problems"]] == folders
    assert "portrait.npz is damaged" in values["problems"][1]["reason"]
    assert len(values["runs"]) == 3


def test_a_run_without_any_evaluation_is_shown_as_interrupted(copied):
    folder = copied / "finetune" / "seed-0"
    (folder / "summary.json").unlink()
    lines = (folder / "log.jsonl").read_text().splitlines()
    (folder / "log.jsonl").write_text("\n".join(line for line in lines[:3] if "evaluation" not in line) + "\n")
    values = data_of(render_page(gather([folder])))
    assert values["runs"][0]["status"] == "interrupted"
    assert values["runs"][0]["progress"].startswith("stopped after batch")


def test_a_run_called_script_is_text(copied):
    name = "</script><script>alert('x')</script><!--"
    rename(copied / "finetune" / "seed-0", "split-digits", name)
    page = render_page(gather([copied]))
    assert page.count("<script>") == 1 and page.count("</script>") == 2
    assert any(name in run["title"] for run in data_of(page)["runs"])


def test_text_cannot_leave_the_script_element():
    assert json.loads(encode({"a": "</script>&<!--"})) == {"a": "</script>&<!--"}
    assert not set("<>&") & set(encode({"a": "</script>&<!--"}))


def test_nothing_to_report_and_unknown_formats_are_refused(tmp_path, records):
    with pytest.raises(RecordError, match="no run to report"):
        write_report([tmp_path / "absent"], tmp_path / "out")
    with pytest.raises(ConfigError, match="formats are html"):
        write_report([records], tmp_path / "out", formats=["docx"])


def test_a_report_of_nothing_but_missing_runs_gives_the_commands(tmp_path):
    from cndpm.paper import find_experiment

    (tmp_path / "runs").mkdir()
    report = write_report([tmp_path / "runs"], tmp_path / "out", experiments=[find_experiment("sharing")])
    assert "cndpm reproduce sharing" in (tmp_path / "out" / "tables.md").read_text()
    assert data_of(report.page.read_text())["parts"][0]["missing"]


def test_an_experiment_about_samples_shows_those_of_its_first_run_beside_its_table(records, mixture_cell):
    drawn = gather([records / "cndpm"]).collection.runs
    experiment = Experiment("drawn", "Drawn", (mixture_cell,), ("accuracy",), 1, "samples")
    content = gather([records], experiments=[experiment], preset="default")
    (grid,) = content.exhibits[0].figures
    assert sum(len(tiles) for _, tiles in grid.rows) == len(drawn[0].portrait.x)
    assert page_values(content)["parts"][0]["figures"][0]["key"] == "samples"


def test_names_become_names_of_files():
    assert file_name("a/../b", "<script>", "...") == "a-..-b-script-run"


def test_a_full_page_leaves_out_the_figures_of_further_runs(records, monkeypatch):
    content = gather([records])
    whole = page_values(content)["runs"]
    without = {**page_values(content), "runs": [{**run, "figures": []} for run in whole]}
    size = len(encode(without).encode()) + len(encode(whole[0]["figures"])) + 100
    monkeypatch.setattr("cndpm.reports.html._PAGE_BYTES", size)
    runs = page_values(content)["runs"]
    assert runs[0]["figures"] == whole[0]["figures"]
    assert not runs[1]["figures"] and "cndpm report" in runs[1]["left_out"]
    assert all(not run["figures"] for run in runs[1:])


@pytest.mark.slow
def test_a_hundred_runs_take_less_than_twenty_seconds_and_five_megabytes(records, tmp_path):
    for i in range(100):
        source = records / ("cndpm" if i % 10 < 7 else "finetune") / "seed-0"
        folder = tmp_path / "runs" / f"group-{i % 10}" / f"seed-{i // 10}"
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("checkpoint*"))
        named = {"seed": i // 10, "preset": f"preset {i % 10}"}
        rewrite_config(folder, lambda config, named=named: config | named)
    start = time.process_time()  # of one core, whatever else the machine does
    report = write_report([tmp_path / "runs"], tmp_path / "out", formats=["html", "md", "csv", "tex", "png", "pdf"])
    assert time.process_time() - start < 20
    assert len(report.content.collection.runs) == 100
    assert report.page.stat().st_size < 5_000_000
