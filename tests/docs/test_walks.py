"""Files that the pages on the code's structure name are there, and walks name them in the order of the code."""

import json
import re
import sys
import threading
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cndpm import CNDPMClassifier
from cndpm.cli.commands import app
from cndpm.engines import fit_sharded
from cndpm.engines.engine import Attempt, Engine
from cndpm.serving import Server

ROOT = Path(__file__).parents[2]
FILES = {path.relative_to(ROOT).as_posix() for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")}


@pytest.mark.parametrize("page", ["architecture", "drift", "method"])
def test_every_file_that_a_page_names_exists(page):
    named = set(re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / f"{page}.md").read_text()))
    assert named
    assert {name for name in named if not any(f"/{path}".endswith(f"/{name}") for path in FILES)} == set()


def named_by(title: str) -> list[str]:
    """The files of a walk in its order; a name without a folder is of the folder named last, or of none.

    What stands in brackets is reached elsewhere.
    """
    text = (ROOT / "docs" / "architecture.md").read_text().split(f"### {title}\n")[1].split("\n#")[0]
    steps = [re.sub(r"\([^()]*\)", "", line) for line in re.findall(r"^\d+\. (.*)$", text, flags=re.MULTILINE)]
    folder, names = Path(), []
    for name in map(Path, re.findall(r"`([\w/]+\.py)`", " ".join(steps))):
        folder = name.parent if name.parent != Path() else folder
        path = (folder / name.name).as_posix()
        names.append(path if f"src/cndpm/{path}" in FILES else name.name)
    return list(dict.fromkeys(names))


class Reached:
    """Notes the files of the package in the order in which calls reach them; imports and constructors are no steps.

    Args:
        hidden: What no step is as well, a regular expression of names of functions.
    """

    def __init__(self, hidden: str = "state_dict") -> None:
        self.files: dict[str, None] = {}
        self._hidden, self._depth = re.compile(f"<module>|__init__|{hidden}"), defaultdict[int, int](int)

    def __enter__(self):
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def _note(self, frame, event, _):
        code, thread = frame.f_code, threading.get_ident()
        if "/cndpm/" not in code.co_filename or event not in ("call", "return"):
            return
        if self._hidden.search(code.co_qualname):
            self._depth[thread] += 1 if event == "call" else -1
        elif not self._depth[thread]:
            self.files[code.co_filename.rpartition("/cndpm/")[2]] = None


class Here(Engine):
    """Carries out tasks in this process, where a profiler sees them."""

    def __init__(self) -> None:
        super().__init__(1)
        self.outcomes_of: list[object] = []

    def _begin(self, function, task, number):
        self.outcomes_of.append(function(task, Attempt(number)))
        return len(self.outcomes_of) - 1

    def _wait(self, calls, told):
        return [(call, self.outcomes_of[call]) for call in calls]

    def _stop(self, call):
        pass


X = np.random.default_rng(0).normal(size=(700, 3))
Y = X[:, 0] > 0


def knowing() -> CNDPMClassifier:
    return CNDPMClassifier(memory_size=50, random_state=0).partial_fit(X, Y)


def rows(_: Path) -> Reached:
    model = knowing()
    with Reached() as reached:
        model.partial_fit(X[:60] + 9, Y[:60]).predict(X[:5])
    return reached


def images(_: Path) -> Reached:
    x, y = np.random.default_rng(0).normal(size=(60, 64)), np.arange(60) % 2
    model = CNDPMClassifier(memory_size=20, input_shape=(1, 8, 8), settings={"n_patches": 4}, random_state=0)
    model.partial_fit(x, y)
    with Reached() as reached:
        model.partial_fit(x, y).predict(x[:5])
    return reached


def served(folder: Path) -> Reached:
    knowing().save(folder / "model.cndpm")
    body = json.dumps({"X": X[:3].tolist(), "y": Y[:3].tolist()}).encode()
    with Reached() as reached, Server(folder / "model.cndpm", port=0) as server:
        reached.files.clear()  # the walk begins with the request
        request = urllib.request.Request(f"{server.url}/learn", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["n_rows"] == 3
    return reached


def run(folder: Path) -> Reached:
    options = ["--learner", "slda", "--out", f"{folder}/run", "--quiet", "--fraction", "0.05", "--device", "cpu"]
    with Reached() as reached:
        assert CliRunner().invoke(app, ["run", "split-digits", *options]).exit_code == 0
    return reached


def loaded(folder: Path) -> Reached:
    knowing().save(folder / "model.cndpm")
    with Reached(hidden="(?!)") as reached:  # states are what this walk is about
        CNDPMClassifier.load(folder / "model.cndpm").predict(X[:5])
    return reached


def sharded(folder: Path) -> Reached:
    shards = [(X[start::2], Y[start::2]) for start in range(2)]
    with Reached() as reached:
        fit_sharded(CNDPMClassifier(memory_size=50, random_state=0), shards, engine=Here(), folder=folder / "shards")
    return reached


WALKS: dict[str, Callable[[Path], Reached]] = {
    "A row, with its label": rows,
    "An image": images,
    "A label through the server": served,
    "A run, from TOML to page": run,
    "A model, from file to answer": loaded,
    "A shard, to a merged model": sharded,
}


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_names_files_in_the_order_in_which_they_are_reached(title, tmp_path):
    names = named_by(title)
    assert len(names) >= 10
    for name in names:  # what is imported on the way would look like a step
        import_module("cndpm." + name.removesuffix(".py").replace("/", "."))
    found = [*WALKS[title](tmp_path).files]
    assert [name for name in names if name not in found] == []
    assert names == sorted(names, key=found.index)
