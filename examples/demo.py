"""Handwritten digits as five successive two-class tasks: CN-DPM beside the same network simply fine-tuned.

    python examples/demo.py [FOLDER]

Nobody tells the learners where a task ends. The demo shows the experts appearing, prints a table and writes into FOLDER
(`demo` by default) a picture, accuracy per task and experts over time with generated samples, and a page to look at.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from rich.console import Console
from rich.table import Table

from cndpm.experiments import TerminalMonitor, configure, run_config
from cndpm.reports import Run, write_report

# The paper's experts, smaller and trained for fewer steps: the digits have 8 x 8 pixels and 290 samples a task.
PAPERS = [
    "learner.experts=neural",
    "learner.log_alpha=-100",
    "learner.n_train_latent_samples=1",
    "learner.density_lr=3e-3",
    "learner.predictor_lr=3e-3",
    "learner.density_sleep_steps=1000",
    "learner.predictor_sleep_steps=500",
]
ROWS = {
    "CN-DPM, default": ("cndpm", []),
    "CN-DPM, the paper's experts": ("cndpm", PAPERS),
    "its network, fine-tuned": ("finetune", ["learner.hidden=64"]),
}


def main(folder: Path) -> None:
    console = Console()
    if folder.exists():
        shutil.rmtree(folder)
    table = Table(title="Split-Digits: five tasks of two digits each, one pass, no task labels")
    for column in ("learner", "accuracy", "experts", "parameters", "seconds"):
        table.add_column(column, justify="left" if column == "learner" else "right")
    runs = []
    for i, (name, (learner, overrides)) in enumerate(ROWS.items()):
        console.print(f"[bold]{name}")
        config = configure("split-digits", learner=learner, overrides=overrides, device="cpu")
        summary = run_config(config, folder / f"run-{i}", monitor=TerminalMonitor(console))
        runs.append(Run(folder / f"run-{i}"))
        sizes = (summary["n_experts"], summary["n_parameters"], summary["seconds"])
        table.add_row(name, f"{summary['accuracy']:.1f} %", *(f"{size:,.0f}" for size in sizes))
    console.print(table)
    picture = draw(runs, folder / "demo.png")
    page = write_report([folder], folder / "report").page
    console.print(f"picture: {picture}\npage:    {page}", soft_wrap=True)


def draw(runs: list[Run], path: Path) -> Path:
    """Accuracy per task over time, experts over time, and samples of the neural mixture, in one picture."""
    figure, axes = plt.subplots(1, 4, figsize=(19, 4.2), layout="constrained", width_ratios=[1, 1, 0.8, 1])
    draw_tasks(axes[0], runs[1], "CN-DPM, the paper's experts: accuracy per task")
    draw_tasks(axes[1], runs[2], "its network, fine-tuned: accuracy per task")
    for one, name, style in zip(runs[:2], ("default", "the paper's"), ("-", "--"), strict=True):
        steps, experts = one.record.column("step", "progress"), one.record.column("n_experts", "progress")
        axes[2].step([10 * step for step in steps], experts, where="post", label=name, linestyle=style, linewidth=2)
    axes[2].set(title="experts over time", xlabel="samples seen", ylabel="experts")
    axes[2].legend()
    runs[1].plot("samples", axes[3])
    figure.savefig(path, dpi=110)
    return path


def draw_tasks(ax: Axes, one: Run, title: str) -> None:
    """One line per task."""
    steps = one.record.column("step", "evaluation")
    by_task = zip(*one.record.column("task_accuracy", "evaluation"), strict=True)
    for name, accuracy in zip(one.task_names, by_task, strict=True):
        ax.plot([10 * step for step in steps], accuracy, marker=".", label=name)
    ax.set(title=title, xlabel="samples seen", ylabel="accuracy in %", ylim=(-3, 103))
    ax.legend(fontsize="small", ncols=2)


if __name__ == "__main__":
    torch.set_num_threads(1)  # the steps are small: more threads would mostly wait for each other
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
