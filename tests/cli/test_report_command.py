"""``cndpm report`` and ``cndpm watch``, end to end."""

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

RUN = ("run", "split-digits", "--learner", "finetune", "--device", "cpu", "--fraction", "0.3", "--quiet")


@pytest.fixture
def made(cndpm):
    """A run in ``mine``."""
    assert cndpm(*RUN, "--out", "mine").code == 0
    return Path("mine")


def test_a_run_ends_with_its_report_and_says_where(cndpm):
    outcome = cndpm(*RUN, "--out", "mine")
    assert outcome.out.splitlines()[-1] == "report: mine/report/index.html"
    assert "split-digits" in Path("mine/report/index.html").read_text()


def test_a_report_prints_tables_and_ends_with_the_pages_path(cndpm, made):
    outcome = cndpm("report", str(made), "--format", "html,png")
    assert outcome.code == 0
    assert "accuracy (%)" in outcome.out
    assert outcome.out.splitlines()[-1] == "report: report/index.html"
    assert Path("report/figures/split-digits-accuracy.png").stat().st_size > 1000


def test_json_names_the_files_and_the_problems(cndpm, made):
    Path("broken").mkdir()
    Path("broken/config.json").write_text("{")
    outcome = cndpm("report", str(made), "broken", "--json", "--out", "here")
    assert outcome.json["page"] == "here/index.html"
    assert outcome.json["n_runs"] == 1
    assert list(outcome.json["problems"]) == ["broken"]
    assert "broken" in outcome.err


def test_an_experiment_without_runs_gives_the_commands(cndpm, made):
    outcome = cndpm("report", str(made), "--experiment", "sharing", "--seeds", "2")
    assert "cndpm reproduce sharing --only cndpm --seeds 2" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("report", "absent"), 1, "no such folder"),
        (("report", ".", "--format", "docx"), 2, "formats are html"),
        (("report", ".", "--experiment", "tabel1"), 2, "table1"),
        (("watch", "absent"), 1, "no folder"),
    ],
)
def test_mistakes_are_explained(cndpm, arguments, code, words):
    outcome = cndpm(*arguments)
    assert outcome.code == code and words in outcome.err


def _hear_interrupts():
    """A process started in the background inherits a deaf ear for SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_watch_serves_until_it_is_stopped(made):
    command = [sys.executable, "-m", "cndpm", "watch", str(made), "--port", "0"]
    environment = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=_hear_interrupts)
    try:
        address = server.stdout.readline().split()[2]
        page = urllib.request.urlopen(address, timeout=300).read().decode()
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=300) == 0
    finally:
        server.kill()
        server.stdout.close()
    assert address.startswith("http://127.0.0.1:") and "split-digits" in page
