"""The demonstration, as `make demo` runs it."""

import os
import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parent.parent / "examples" / "demo.py"


def test_the_demo_ends_with_a_table_a_picture_and_a_page(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    outcome = subprocess.run(
        [sys.executable, DEMO, "demo"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert outcome.returncode == 0, outcome.stderr
    assert "its network, fine-tuned" in outcome.stdout
    for file in ("demo/demo.png", "demo/report/index.html"):
        assert file in outcome.stdout
        assert (tmp_path / file).stat().st_size > 10_000
