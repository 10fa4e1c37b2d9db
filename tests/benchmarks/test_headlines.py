"""One command makes the headline figures again: it runs every stream and preset that README's table shows."""

import os
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from figures.records import read_rows, select

ROOT = Path(__file__).resolve().parents[2]


def listed() -> list[list[str]]:
    told = subprocess.run(
        ["bash", ROOT / "benchmarks" / "headlines.sh", "list", "OUT", "abc1234", "DATA"],
        capture_output=True, check=True, text=True,
    )  # fmt: skip
    return [shlex.split(line) for line in told.stdout.splitlines() if line.strip().startswith("python -m")]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "benchmarks" / "headlines.sh"
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(["bash", script, *words], capture_output=True, text=True, env=hidden)


def after(words: list[str], option: str, default: str) -> str:
    return words[words.index(option) + 1] if option in words else default


def test_all_streams_and_presets_of_the_readme_are_run():
    runs = [words for words in listed() if words[2:4] == ["cndpm", "run"]]
    made = {(words[4], after(words, "--preset", "default")) for words in runs}
    figures = tomllib.loads((ROOT / "figures" / "readme.toml").read_text())["figures"].values()
    sources = [source for figure in figures for source in figure.get("from", [figure])]
    records = ROOT / "docs" / "results" / "records"
    rows = [row for source in sources for row in select(read_rows(records / source["record"]), source)]
    shown = {(row["scenario"], row.get("preset") or "default") for row in rows if row.get("learner") == "cndpm"}
    assert len(shown) > 10 and shown <= made


def test_all_figures_of_the_readme_come_from_records_that_the_steps_write():
    figures = tomllib.loads((ROOT / "figures" / "readme.toml").read_text())["figures"].values()
    assert {figure["record"] for figure in figures} == {"readme-h200.jsonl", "split-digits-cpu.jsonl"}
    told = run("list").stdout
    assert told.count("-> readme-h200.jsonl") > 15 and "-> split-digits-cpu.jsonl" in told


def test_steps_are_chosen_by_name_and_what_needs_a_gpu_is_skipped(tmp_path: Path):
    told = run("gen,paper-mnist", str(tmp_path / "out"), "abc1234", str(tmp_path))
    assert told.returncode == 0
    skipped = [line.split()[0] for line in told.stdout.splitlines() if "skipped" in line]
    assert skipped == ["gen", "paper-mnist"] and list((tmp_path / "out").iterdir()) == []


def test_an_unknown_step_is_refused_with_those_there_are(tmp_path: Path):
    told = run("digits,paper-minst", str(tmp_path / "out"), "abc1234")
    assert told.returncode == 2 and not (tmp_path / "out").exists()
    assert "no step paper-minst" in told.stderr and "paper-mnist" in told.stderr


@pytest.mark.parametrize("name", ["drift", "evidence", "local"])
def test_generated_streams_are_drawn_anew_for_every_seed(name):
    (words,) = (words for words in listed() if f"benchmarks.{name}" in words)
    assert "--rows-by-seed" in words


def test_every_step_names_commands_that_there_are():
    modules = {words[2] for words in listed()}
    assert len(modules) > 10
    for name in modules - {"cndpm"}:
        assert (ROOT / f"{name.replace('.', '/')}.py").is_file()
