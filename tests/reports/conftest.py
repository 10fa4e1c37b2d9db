"""Records made by real runs, once for all tests of the room, and a browser where there is one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from release.screenshot import find_browser

from cndpm.experiments import configure, run_seeds
from cndpm.paper.experiment import Cell

FAST_MIXTURE = [
    "learner.experts=neural",
    "learner.memory_size=60",
    "learner.log_alpha=0",
    "learner.likelihood=pixel-gaussian",
    "learner.hidden=16",
    "learner.hidden_growth=4",
    "learner.n_latent_samples=2",
    "learner.density_sleep_steps=60",
    "learner.predictor_sleep_steps=60",
    "learner.density_lr=0.003",
    "learner.predictor_lr=0.01",
]
COMMAND = "cndpm run split-digits --fraction 0.4 --learner"
FAST_RUN = ["run.evaluations=5", "run.log_points=20"]


@pytest.fixture(scope="session")
def records(tmp_path_factory):
    """Two seeds of a mixture and of a single network on Split-Digits; the folder above their records."""
    folder = tmp_path_factory.mktemp("records")
    mixture = configure("split-digits", device="cpu", fraction=0.4, overrides=[*FAST_MIXTURE, *FAST_RUN])
    network = configure("split-digits", learner="finetune", device="cpu", fraction=0.4, overrides=FAST_RUN)
    run_seeds(mixture, (0, 1), folder / "cndpm", command=f"{COMMAND} cndpm --seeds 2")
    run_seeds(network, (0, 1), folder / "finetune", command=f"{COMMAND} finetune --seeds 2")
    return folder


@pytest.fixture
def mixture_cell():
    """The mixture of `records` as the cell of an experiment with the default preset."""
    return Cell("CN-DPM", "digits", "split-digits", "cndpm", {"fraction": 0.4}, tuple(FAST_MIXTURE))


@pytest.fixture
def copied(records, tmp_path):
    """The same records, to be damaged."""
    return Path(shutil.copytree(records, tmp_path / "records"))


@pytest.fixture
def browse(tmp_path):
    """Opens a page in headless Chromium; returns the document after its scripts ran, and what its console said."""
    chromium = find_browser()
    if chromium is None:
        pytest.skip("no Chromium on this machine")

    def open_page(address, *options):
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=6000"]
        flags += [f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--dump-dom", *options]
        environment = {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run(
            [chromium, *flags, address], capture_output=True, text=True, timeout=120, check=True, env=environment
        )
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    return open_page
