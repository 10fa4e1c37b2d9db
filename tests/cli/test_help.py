"""Help is short, names defaults, and comes at once."""

import subprocess
import sys

import pytest

COMMANDS = [(), ("list",), ("run",), ("compare",), ("reproduce",), ("report",), ("watch",), ("data",)]
COMMANDS += [("fit",), ("merge",), ("serve",), ("sweep",), ("play",)]
COMMANDS += [("data", "status"), ("data", "fetch"), ("data", "verify")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits_a_screen(cndpm, command):
    outcome = cndpm(*command, "--help")
    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_the_list_of_commands_cuts_no_sentence_off(cndpm):
    assert "..." not in cndpm("--help").out.partition("Commands:")[2]


@pytest.mark.parametrize("command", [("run",), ("compare",), ("reproduce",)], ids=" ".join)
def test_help_names_defaults(cndpm, command):
    text = " ".join(cndpm(*command, "--help").out.split())
    for words in ("[default: auto]", "CNDPM_DATA", "runs/", "[default: 0; x>=0]"):
        assert words in text


def test_help_does_not_import_torch():
    heavy = "{'torch', 'numpy', 'sklearn'}"
    code = f"import sys; from cndpm.cli.commands import app; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_version_is_printed(cndpm):
    import cndpm as package

    assert cndpm("--version").out.strip() == package.__version__


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "cndpm", "--help"], capture_output=True, text=True, check=True)
    assert "Usage: cndpm" in done.stdout
