"""What the report of a hundred runs costs: ten configurations of ten seeds, eight of them mixtures with samples.

    python -m benchmarks.reports

Two short real runs on Split-Digits are copied under other names and seeds. Other work on a machine only adds, so CPU
seconds of this process and ratios to what is done in the same process count: page and tables against reading the
records, figures against drawing the same ones with matplotlib's own `savefig`. The aims are less than 20 seconds for
everything on two cores, and a page of less than 5 MB.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Canvas

from cndpm.experiments import configure, run_seeds
from cndpm.reports import write_report
from cndpm.reports.anatomy import anatomy
from cndpm.reports.collection import collect
from cndpm.reports.drawing import draw, save_figure
from cndpm.reports.figures import Figure

SMALL = (
    "learner.experts=neural",
    "learner.memory_size=60",
    "learner.log_alpha=0",
    "learner.likelihood=pixel-gaussian",
    "learner.density_sleep_steps=60",
    "learner.predictor_sleep_steps=60",
)
N_GROUPS, N_SEEDS, N_MIXTURES = 10, 10, 8


def make_records(folder: Path) -> Path:
    """Records of a hundred runs."""
    run_seeds(configure("split-digits", device="cpu", overrides=SMALL), [0], folder / "mixture")
    run_seeds(configure("split-digits", learner="finetune", device="cpu"), [0], folder / "network")
    for group in range(N_GROUPS):
        for seed in range(N_SEEDS):
            copy = folder / "runs" / f"group-{group}" / f"seed-{seed}"
            source = folder / ("mixture" if group < N_MIXTURES else "network") / "seed-0"
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("checkpoint*"))
            head = json.loads((copy / "config.json").read_text())
            head["config"] |= {"seed": seed, "preset": f"preset {group}"}
            (copy / "config.json").write_text(json.dumps(head))
    return folder / "runs"


def clocked(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What `work` returns, its CPU seconds and its seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    made = work()
    return made, time.process_time() - cpu, time.perf_counter() - wall


def save_plainly(figure: Figure, stem: Path) -> None:
    """As anyone would save a figure of one pair of axes."""
    canvas = Canvas(layout="constrained")
    draw(figure, canvas.subplots())
    for kind in ("png", "pdf"):
        canvas.savefig(stem.with_suffix(f".{kind}"), dpi=160)


def save_all_plainly(figures: list[Figure], stem: Path) -> None:
    for figure in figures:
        save_plainly(figure, stem)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = make_records(folder)
        collection, reading, _ = clocked(lambda: collect([runs]))
        words, page_cpu, page_wall = clocked(lambda: write_report([runs], folder / "a"))
        pictures, figures_cpu, figures_wall = clocked(
            lambda: write_report([runs], folder / "b", formats=["png", "pdf"])
        )
        some = [figure for _ in range(3) for figure in anatomy(collection.runs[0])]
        _, plain, _ = clocked(lambda: save_all_plainly(some, folder / "plain"))
        _, ours, _ = clocked(lambda: [save_figure(figure, folder / "ours", ["png", "pdf"]) for figure in some])
        report = {
            "n_runs": len(collection.runs),
            "n_figure_files": len(pictures.files),
            "page_megabytes": round(words.page.stat().st_size / 1e6, 2),
            "page_and_tables_to_reading": round(page_cpu / reading, 2),
            "figures_to_savefig": round(ours / plain, 2),
            "cpu_seconds": {"page_and_tables": round(page_cpu, 1), "png_and_pdf": round(figures_cpu, 1)},
            "seconds": {"page_and_tables": round(page_wall, 1), "png_and_pdf": round(figures_wall, 1)},
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
