"""Configures runs from hostile overrides and scenario files, one after the other; see :mod:`torture.overrides`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from cndpm.cli import exit_code
from cndpm.experiments import configure
from torture.attempts import Outcome
from torture.mutations import mutate

__all__ = ["attempts", "configured"]

_PATIENCE = 10.0
_LONGEST = 800

_VALUES = (
    "", "null", "true", "[]", "{}", "[1,2]", "1e400", "-1", "NaN", "Infinity", "-Infinity", "1" * 5000,
    '"a"', '{"a":1}', "0",
    "1e9", "1e18", "1" * 19, "text", "[null]", "\0", "é", "0.5", "3", '"0"', "1.5", '{"kind":"x"}',
    "[" * 10000, '{"a":' * 3000,
    "1e999999999", "__import__('os')", "a:b", "os:system", "[0,1,2,3,4,5,6,7,8,9]", "2024", "[[[[[[]]]]]]",
    "\n", "a\nb",
)  # fmt: skip
_FIELDS = {
    "scenario": (
        "epochs", "stages", "batch_size", "name", "labelled", "blur", "transform", "iid", "endless",
        "fraction", "repeats",
        "class_order", "label_noise", "labels", "summary", "stages.0", "blur.width", "transform.size",
        "nothing", "", "a.b",
    ),
    "run": ("evaluations", "max_batches", "log_points", "checkpoint_seconds", "x", "evaluation_samples",
    "", "x.y"),
    "learner": (
        "memory_size", "log_alpha", "experts", "experts.kind", "novelty", "features", "n_fourier",
        "experts.features.kind",
        "a.b.c", "anytime", "settings", "hidden", "lr", "target", "", "density", "companions", "shrinkage",
        "window",
    ),
}  # fmt: skip
_MALFORMED = ("", "=", "a", "a.b", "scenario", "learner.=1", ".x=1", "learner..x=1", "x.y=1", "learner.x", "=\n", "..=")
_NAMES = (
    *("split-digits", "split-digits", "iid-split-digits", "split-digit", "", "a" * 9999, "iid-", "a\0b"),
    "endless-split-digits",
)
_LEARNERS = ("cndpm", "cndpm", "finetune", "reservoir", "ewc", "cndmp", "os:system", "a.b:C", ":", "")

_TOML = """
name = "two"
summary = "two stages"
batch_size = 10
label_noise = 0.1
fraction = 0.5

[transform]
size = 8

[blur]
kind = "linear"
width = 0.2

[[stages]]
epochs = 1
subsets = [{ dataset = "digits", classes = [0, 1], weight = 1.0 }, { dataset = "digits", classes = [2], weight = 2.0 }]

[[stages]]
steps = 12
subsets = [{ dataset = "digits", classes = [3, 4], rotation = 30.0, task = "later" }]
"""
_YAML = """
- epochs: 1
  subsets: [[digits, 0], [digits, 1]]
- steps: 5
  subsets:
    - [digits, 2]
    - {dataset: digits, classes: [3, 4], fraction: 0.5}
"""
_PIECES = (
    "1e9", "1000000000000", "-1", "nan", "inf", "true", '""', "[]", "{}", "null", "2024-01-01", "0x10",
    "!!python/object:os.system", "&a",
    "*a", "<<", "'",
    '"', "[", "]", "{", "}", "=", ":", "#", "\t", "\n", "\x00", "\ufeff", "é", "[[stages]]", "- ", "? ", "|", ">",
    "7", "[7, 1]", "digits", "mnist", "../../etc/passwd", "a" * 2000,
    "[" * 3000, "9" * 5000, "epochs: .inf", "steps: 0", "name: 3",
)  # fmt: skip
_WHOLE = (
    b"", b"\xff\xfe", b"\x00" * 100, b"[]", b"3", b"a: &a [x,x]\nb: &b [*a,*a]\nstages: [*b,*b]",
    b"[[" * 5000, b"- " * 5000,
    b"stages: []", b"name = 3", b"%YAML 9.9", b"!!binary a", b"? {a: b}\n: c", b"x" * (1 << 21),
)  # fmt: skip


def _overrides(random: Random) -> list[str]:
    texts = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        section = random.choice(sorted(_FIELDS))
        texts.append(f"{section}.{random.choice(_FIELDS[section])}={random.choice(_VALUES)}")
    return [*texts, random.choice(_MALFORMED)] if random.random() < 0.05 else texts


def _file(random: Random, folder: Path) -> str:
    """Writes a scenario file that was damaged, with words that mean something to a parser or byte by byte."""
    text, path = random.choice(((_TOML, "a.toml"), (_YAML, "a.yaml"), (_YAML, "a.yml")))
    words = text.split(" ")
    for _ in range(random.choice((1, 1, 2, 5))):
        words[random.randrange(len(words))] = random.choice(_PIECES)
    content = " ".join(words).encode("utf-8", "surrogatepass")
    if random.random() < 0.4:
        content = mutate(text.encode(), _TOML.encode(), random)[1]
    if random.random() < 0.05:
        content = random.choice(_WHOLE)
    (folder / path).write_bytes(content)
    return str(folder / path)


def configured(random: Random, folder: Path) -> tuple[str, str]:
    """Configures one run and plans it where that is allowed; returns the outcome and what was said."""
    by_file = random.random() < 0.5
    source = _file(random, folder) if by_file else random.choice(_NAMES)
    overrides = [] if by_file and random.random() < 0.7 else _overrides(random)
    learner = "cndpm" if by_file else random.choice(_LEARNERS)
    began = time.perf_counter()
    try:
        config = configure(source, learner=learner, device="cpu", overrides=overrides)
        if by_file or random.random() < 0.1:
            config.scenario.build(data_dir=folder, seed=0)
    except Exception as error:
        said = str(error)
        if exit_code(error) is None:
            return "foreign", f"{overrides} {error!r}"
        if "\n" in said or not said or len(said) > _LONGEST:
            return "unclear", f"{overrides} {said}"
        outcome = "refused"
    else:
        outcome, said = "accepted", ""
    return ("slow" if time.perf_counter() - began > _PATIENCE else outcome), f"{source} {overrides} {said}"


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:
    """Yields the outcomes of attempts, which are functions of the seed and their number.

    Args:
        seed: Of all choices.
        first: Number of the first attempt.
        end: Number behind the last one.
        folder: Where scenario files are written.
    """
    for number in range(first, end):
        yield Outcome(number, *configured(Random(f"{seed} {number}"), folder))
