import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


def test_imports_point_downwards_only():
    command = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


CORE = {"devices", "errors", "estimators", "experts", "extras", "learner", "mixture", "model", "names"}
CORE |= {"lazy", "state", "storage", "threads", "training", "validation", "version"}
"""What ``partial_fit`` may import; the laboratory stands on it."""


def imported_by(script: str, *, silently: bool = False) -> set[str]:
    """Runs a script in a process of its own; returns the names of the modules that it has imported."""
    script += "\nimport sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (silently and done.stdout)
    return set(done.stderr.split())


def test_importing_does_nothing_and_learning_rows_imports_the_core_alone():
    modules = imported_by(
        "import sys, cndpm; assert 'torch' not in sys.modules;"
        "import torch; before = torch.get_rng_state(); import cndpm.estimators, cndpm.model.cndpm;"
        "assert torch.equal(before, torch.get_rng_state());"
        "import numpy as np; x = np.random.default_rng(0).random((30, 3));"
        "cndpm.CNDPMClassifier(memory_size=20).partial_fit(x, np.arange(30) % 2).predict(x)",
        silently=True,
    )
    assert {name.split(".")[1] for name in modules if name.startswith("cndpm.")} == CORE
    networks = ("cndpm.experts.neural.", "cndpm.experts.features.backbones.", "cndpm.experts.combined")
    assert [name for name in modules if name.startswith(networks)] == []


def test_running_one_learner_imports_no_other(tmp_path):
    modules = imported_by(
        "from cndpm.experiments import configure, run_config;"
        "config = configure('split-digits', learner='reservoir', device='cpu', overrides=['run.max_batches=3']);"
        f"run_config(config, {str(tmp_path / 'run')!r})"
    )
    of_baselines = {name for name in modules if name.startswith("cndpm.baselines.")}
    assert {name for name in of_baselines if "shared" not in name} == {"cndpm.baselines.reservoir"}
    assert "cndpm.model.cndpm" not in modules


def test_listing_what_there_is_waits_for_neither_torch_nor_sklearn():
    modules = imported_by("from cndpm.cli.listing import list_kinds; list_kinds('all', as_json=False)")
    assert not {"torch", "sklearn", "scipy", "numpy"} & modules
