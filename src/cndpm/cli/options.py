"""The arguments and options that commands share, each declared once."""

from __future__ import annotations

from typing import Annotated

import typer

Scenario = Annotated[str, typer.Argument(help="Name of a scenario, or a TOML or YAML file.")]
Learner = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="A name of `cndpm list learners`; package.module:Class for your own; sklearn:... or river:... for theirs.",
    ),
]
Learners = Annotated[
    str, typer.Option(metavar="A,B,C", help="Names of learners, yours and those of sklearn and river as for run.")
]
Preset = Annotated[str, typer.Option(metavar="NAME", help="Settings to start from: default (ours), paper or fast.")]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="The first seed.")]
Seeds = Annotated[int, typer.Option(metavar="N", min=1, help="Number of seeds, from --seed on.")]
Jobs = Annotated[int, typer.Option(metavar="N", min=1, help="Runs at the same time, each in its own process.")]
EngineName = Annotated[str, typer.Option("--engine", metavar="E", help="local (processes) or ray (a cluster).")]
Address = Annotated[
    str | None, typer.Option(metavar="A", help="Of a Ray cluster that runs.", show_default="starts one here")
]
Epochs = Annotated[
    float | None, typer.Option(metavar="E", help="Epochs of every stage.", show_default="the scenario's")
]
Repeats = Annotated[int | None, typer.Option(metavar="R", min=1, help="Repeat the scenario R times.", show_default="1")]
Fraction = Annotated[float | None, typer.Option(metavar="F", help="Share of training data.", show_default="1.0")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="S.F=V", help="Set field F of section S (learner, scenario, run) to V; repeatable."),
]
Device = Annotated[str, typer.Option(metavar="D", help="auto, cpu, cuda or cuda:N.")]
DataDir = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder of the datasets.", show_default="CNDPM_DATA, else a cache folder"),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the same run where it stopped.")]
TensorBoard = Annotated[bool, typer.Option("--tensorboard", help="Also log for TensorBoard.")]
OwnMonitors = Annotated[
    list[str] | None, typer.Option("--monitor", metavar="M:C", help="Also tell a monitor of your own; repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object as the last line of output.")]
Validate = Annotated[
    bool, typer.Option("--validate", help="Hold out a tenth of every class's training samples as the test set.")
]
Prequential = Annotated[bool, typer.Option("--prequential", help="Answer each batch before learning it.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
