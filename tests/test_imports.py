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


def test_importing_the_package_does_nothing():
    command = (
        "import sys, cndpm; assert 'torch' not in sys.modules;"
        "import torch; before = torch.get_rng_state(); import cndpm.estimators, cndpm.model.cndpm;"
        "assert torch.equal(before, torch.get_rng_state())"
    )
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
