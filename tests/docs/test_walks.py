"""Files that the pages on the code's structure name are there, and walks name them in the order of the code."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from typer.testing import CliRunner

from cndpm import CNDPMClassifier
from cndpm.cli.commands import app

ROOT = Path(__file__).parents[2]
FILES = {path.relative_to(ROOT).as_posix() for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")}


@pytest.mark.parametrize("page", ["architecture", "drift", "method"])
def test_every_file_that_a_page_names_exists(page):
    named = set(re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / f"{page}.md").read_text()))
    assert named
    assert {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in FILES)} == set()


def steps_of(title: str) -> list[list[str]]:
    """The files of every step of a walk; a name without a folder is of the folder named last."""
    text = (ROOT / "docs" / "architecture.md").read_text().split(f"### {title}\n")[1].split("\n#")[0]
    steps, folder = [], Path()
    for line in re.findall(r"^\d+\. (.*)$", text, flags=re.MULTILINE):
        steps.append([])
        for name in map(Path, re.findall(r"`([\w/]+\.py)`", line)):
            folder = name.parent if name.parent != Path() else folder
            steps[-1].append((folder / name.name).as_posix())
    return steps


def reached(walk: Callable[[], object]) -> list[str]:
    """The files of the package that a call reaches, in that order; imports, states and constructors are no steps."""
    found: dict[str, None] = {}
    depth = 0

    def note(frame, event, _):
        nonlocal depth
        code = frame.f_code
        if "/cndpm/" not in code.co_filename or event not in ("call", "return"):
            return
        if re.search("<module>|state_dict|__init__", code.co_qualname):
            depth += 1 if event == "call" else -1
        elif not depth:
            found[code.co_filename.rpartition("/cndpm/")[2]] = None

    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return list(found)


def rows() -> list[str]:
    x = np.random.default_rng(0).normal(size=(700, 3))
    model = CNDPMClassifier(memory_size=50, random_state=0).partial_fit(x, x[:, 0] > 0)
    return reached(lambda: model.partial_fit(x[:60] + 9, x[:60, 0] > 0).predict(x[:5]))


def images() -> list[str]:
    x, y = np.random.default_rng(0).normal(size=(60, 64)), np.arange(60) % 2
    model = CNDPMClassifier(memory_size=20, input_shape=(1, 8, 8), settings={"n_patches": 4}, random_state=0)
    model.partial_fit(x, y)
    return reached(lambda: model.partial_fit(x, y).predict(x[:5]))


def run() -> list[str]:
    with TemporaryDirectory() as folder:
        out = ["--out", f"{folder}/run", "--quiet", "--fraction", "0.05", "--device", "cpu"]
        return reached(lambda: CliRunner().invoke(app, ["run", "split-digits", "--learner", "slda", *out]))


WALKS = {
    "A row, with its label": rows,
    "An image": images,
    "A run, from TOML to page": run,
}


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_names_files_in_the_order_in_which_they_are_reached(title):
    """What a step names first, of what steps before it have not named, is reached after what they named first."""
    steps = steps_of(title)
    for name in (name for step in steps for name in step):  # what is imported on the way would look like a step
        import_module("cndpm." + name.removesuffix(".py").replace("/", "."))
    found = WALKS[title]()
    new = [[name for name in step if not any(name in before for before in steps[:i])] for i, step in enumerate(steps)]
    heads = [names[0] for names in new if names]
    assert [name for name in heads if name not in found] == []
    assert heads == sorted(heads, key=found.index)
