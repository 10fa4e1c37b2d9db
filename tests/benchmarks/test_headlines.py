"""One command makes the headline figures again: it runs every stream and preset that README's table shows."""

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


@pytest.mark.parametrize("name", ["drift", "evidence", "local"])
def test_generated_streams_are_drawn_anew_for_every_seed(name):
    (words,) = (words for words in listed() if f"benchmarks.{name}" in words)
    assert "--rows-by-seed" in words


def test_every_step_names_commands_that_there_are():
    modules = {words[2] for words in listed()}
    assert len(modules) > 10
    for name in modules - {"cndpm"}:
        assert (ROOT / f"{name.replace('.', '/')}.py").is_file()
