"""The smoke test of an installed cndpm; it needs nothing but the package. ``python smoke.py core|cli|all``."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

__all__ = ["check_all", "check_cli", "check_core"]


def check_core() -> None:
    """Learns, answers, saves and loads with the package alone, and is told what the command line needs."""
    import cndpm

    assert "torch" not in sys.modules, "import cndpm should not import torch"
    assert cndpm.__version__ == importlib.metadata.version("cndpm"), "the version is written in one place"
    _learn_digits()
    if importlib.util.find_spec("rich") is None:
        told = subprocess.run([sys.executable, "-m", "cndpm", "list"], capture_output=True, text=True, check=False)
        assert told.returncode != 0
        assert "cndpm[cli]" in told.stderr, told.stderr


def _learn_digits() -> None:
    import numpy as np

    from cndpm import CNDPMClassifier
    from cndpm.streams import load_scenario

    stream = load_scenario("split-digits", fraction=0.3).build(seed=0)
    model = CNDPMClassifier(input_shape=(1, 8, 8), memory_size=60, settings={"n_patches": 8}, random_state=0)
    for batch_x, batch_y in stream:
        assert batch_y is not None
        model.partial_fit(batch_x, batch_y.numpy())
    model.consolidate()
    x = np.concatenate([task.x.numpy() for task in stream.tasks])
    y = np.concatenate([task.y.numpy() for task in stream.tasks])
    accuracy = model.score(x, y)
    assert accuracy > 0.8, f"accuracy on the digits is {accuracy}"
    model.save("model.cndpm")
    again = CNDPMClassifier.load("model.cndpm")
    assert (again.predict_proba(x) == model.predict_proba(x)).all(), "a loaded model answers to the same bits"
    version = importlib.metadata.version("cndpm")
    print(f"cndpm {version}: core, {accuracy:.1%} on the digits with {model.n_experts_} experts")


def check_cli() -> None:
    """Runs a scenario from the shell and looks at what it leaves."""
    shell = Path(sys.executable).with_name("cndpm.exe" if sys.platform == "win32" else "cndpm")
    for arguments in (["--version"], ["list"]):
        subprocess.run([shell, *arguments], check=True)
    options = ["--fraction", "0.3", "--set", "learner.n_patches=8", "--set", "learner.memory_size=60", "--quiet"]
    done = subprocess.run(
        [shell, "run", "split-digits", *options, "--json"], check=True, capture_output=True, text=True
    )
    result = json.loads(done.stdout.splitlines()[-1])
    page = Path(result["runs"][0]["folder"]).parent / "report" / "index.html"
    assert result["accuracy"] > 80, result["accuracy"]
    assert "<svg" in page.read_text(encoding="utf-8") or "charts" in page.read_text(encoding="utf-8"), page
    print(f"command line: {result['accuracy']:.1f} %, report of {page.stat().st_size} bytes")


def check_all() -> None:
    """Learns with river, through a pretrained network and with compiled features, and imports the server."""
    import numba
    import numpy as np

    import cndpm.serving.app
    from cndpm import CNDPMClassifier, river
    from river import datasets, evaluate, metrics

    stream = datasets.Phishing().take(300)
    accuracy = evaluate.progressive_val_score(stream, river.CNDPMClassifier(memory_size=50), metrics.Accuracy()).get()  # type: ignore[no-untyped-call]
    assert accuracy > 0.8, f"accuracy on river's rows is {accuracy}"
    river.CNDPMAnomaly().learn_one({"a": 1.0})
    images, labels = np.random.default_rng(0).random((20, 3, 32, 32)), np.arange(20) % 2
    settings = {"features": "backbone", "image_size": 64, "n_expanded": 50}
    model = CNDPMClassifier(input_shape=(3, 32, 32), memory_size=10, settings=settings, random_state=0)
    assert model.partial_fit(images, labels).predict(images).shape == (20,)
    _learn_digits()  # now with numba
    print(f"all extras: river {accuracy:.1%}, numba {numba.__version__}, {cndpm.serving.app.__name__}")


if __name__ == "__main__":
    {"core": check_core, "cli": check_cli, "all": check_all}[sys.argv[1]]()
