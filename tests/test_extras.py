"""The estimators need none of the extras; what does need one names it."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cndpm.extras import EXTRAS, MissingExtraError, is_installed, require_extra

ROOT = Path(__file__).parents[1]
BLOCKED = [module for modules in EXTRAS.values() for module in modules if module != "pyarrow"]
WITHOUT_EXTRAS = f"import sys; sys.modules |= dict.fromkeys({BLOCKED}); "
"""Python takes a module that is None for one that is not installed; of pyarrow scikit-learn does not."""


def run_without_extras(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    environment.pop("CNDPM_DATA", None)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_EXTRAS + code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


ESTIMATORS = """
import numpy as np
from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.checks import check_learner
from cndpm.datasets import load_dataset
from cndpm.streams import drifting_clusters, load_scenario, stream_from

stream = load_scenario("split-digits").build(seed=0)
images = CNDPMClassifier(input_shape=(1, 8, 8), memory_size=100, random_state=0)
for x, y in list(stream.batches())[:30]:
    images.partial_fit(x, y)
images.save("images.cndpm")
x = load_dataset("digits").test.x[:20].float() / 255
assert np.array_equal(CNDPMClassifier.load("images.cndpm").predict_proba(x), images.predict_proba(x))
assert images.n_experts_ == 1 and "numba" not in {name for name, module in sys.modules.items() if module}

X = np.random.default_rng(0).normal(size=(80, 3))
assert CNDPMClassifier(random_state=0).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.8
assert CNDPMRegressor(random_state=0).fit(X, X[:, 0]).score(X, X[:, 0]) > 0.8
assert np.isfinite(CNDPMDensity(random_state=0).fit(X).score_samples(X)).all()
assert next(iter(stream_from(drifting_clusters(seed=0)).batches()))
"""


NAMED = """
import importlib
from pathlib import Path
from cndpm.datasets import fetch_dataset, load_dataset, resolve_data_dir
from cndpm.estimators.displays import NoveltyDisplay
from cndpm.extras import MissingExtraError
from cndpm.streams import load_scenario

for file in (Path("mine.yaml"), Path("photos/cats/1.png")):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
calls = {
    "cndpm.experiments": lambda: importlib.import_module("cndpm.experiments"),
    "cndpm.experiments.record": lambda: importlib.import_module("cndpm.experiments.record"),
    "cndpm.paper": lambda: importlib.import_module("cndpm.paper"),
    "cndpm.reports": lambda: importlib.import_module("cndpm.reports"),
    "fetch": lambda: fetch_dataset("mnist", "."),
    "cache": lambda: resolve_data_dir(),
    "images": lambda: load_dataset("photos", "."),
    "yaml": lambda: load_scenario("mine.yaml"),
    "plots": lambda: NoveltyDisplay(np.zeros(2)).plot(),
}
for name, call in calls.items():
    try:
        call()
    except MissingExtraError as error:
        assert str(error).endswith("Run: pip install 'cndpm[cli]'"), error
    else:
        raise AssertionError(f"{name} needed no extra")
"""


def test_the_estimators_and_streams_need_no_extra_and_what_needs_one_names_the_command_that_installs_it(tmp_path):
    done = run_without_extras(ESTIMATORS + NAMED, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "split-digits"], ["data", "fetch", "mnist"]], ids=" ".join)
def test_the_command_line_says_in_one_line_what_is_missing(arguments, tmp_path):
    done = run_without_extras(f"from cndpm.cli import main; main({arguments})", tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "cndpm: error: the command line needs packages that are not installed (typer, rich). "
        "Run: pip install 'cndpm[cli]'\n"
    )


def test_only_modules_that_an_extra_brings_are_asked_for():
    """A folder of the tests may be called like an extra, so that asking for it finds something here alone."""
    calls = [
        re.search(r"require_extra\((.*?)purpose=", line).group(1)
        for file in (ROOT / "src").rglob("*.py")
        for line in file.read_text().splitlines()
        if "require_extra(" in line and "def " not in line
    ]
    asked = {name for call in calls for name in re.findall(r'"(\w+)"', call)}
    assert len(asked) > 10 and asked <= {module for modules in EXTRAS.values() for module in modules}


def test_extras_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name, modules in EXTRAS.items():
        assert sorted(modules.values()) == sorted(line.partition(">=")[0] for line in extras[name])
    quick = [name for name in EXTRAS if name != "ray"]  # these bring many packages of their own
    assert extras["all"] == [f"cndpm[{','.join(quick)}]"]
    assert "cndpm[all]" in extras["dev"]


def test_the_package_lists_its_estimators_before_they_are_imported(tmp_path):
    code = "import cndpm; print([name for name in dir(cndpm) if name.startswith('CNDPM')], 'torch' in sys.modules)"
    assert run_without_extras(code, tmp_path).stdout == "['CNDPMClassifier', 'CNDPMDensity', 'CNDPMRegressor'] False\n"


def test_the_package_lists_its_rooms_and_not_what_it_needs_itself():
    import cndpm.streams

    assert "streams" in dir(cndpm) and not {"Any", "TYPE_CHECKING", "sys"} & set(dir(cndpm))


def test_an_installed_extra_is_not_missed():
    assert is_installed("typer")
    require_extra("typer", "rich", purpose="the command line")


def test_serving_names_its_extra(monkeypatch):
    import cndpm.serving

    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(
        MissingExtraError, match=r"cndpm\.serving needs .*\(fastapi\)\. Run: pip install 'cndpm\[serve\]'"
    ):
        importlib.reload(cndpm.serving)


def test_the_error_is_an_import_error_that_names_the_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(ImportError, match=r"it needs .* \(numba\)\. Run: pip install 'cndpm\[fast\]'") as raised:
        require_extra("numba", purpose="it")
    assert isinstance(raised.value, MissingExtraError)
    assert raised.value.name == "numba"
