"""Merges models that have more or less in common: labels, columns, categories, order; each an answer or a refusal.

    python -m torture.merges --n 2000 --seed 0

Options are those of :mod:`torture.attempts`. Counted are

- foreign: an exception other than ValueError and TypeError left `merge`, or a merged model cannot be used;
- unclear: an exception without a message;
- silent: a merged model does not know all labels, has other counts, answers with numbers that are not finite, or is
  another one when it was saved and loaded;
- changed: `merge` changed a model that it was given;
- merged, refused: everything else.

Ends with 1 if any of the first four is not zero.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import torch

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor, merge
from torture.attempts import Attack, Outcome, main
from torture.call_worker import fingerprint
from torture.hostile_inputs import odd

__all__ = ["ATTACK", "attempt", "attempts"]

ATTACK = Attack(
    "merged models", "torture.merges", 2000, ("foreign", "unclear", "silent", "changed"), ("merged", "refused")
)
_NAMES = ("x", "y", "z")
_LABELS: tuple[Any, ...] = ("a", "b", "c", 1, 2.5, None, ("t", 1))


def _rows(random: Random, n: int, *, table: bool) -> Any:
    rng = np.random.default_rng(random.randrange(1 << 32))
    X = rng.normal(size=(n, 3))
    if not table:
        return X
    made = pd.DataFrame(X, columns=list(_NAMES))
    words = random.choice((["u", "v"], ["u", "v"], ["u", "v", "w"], ["v", "u"]))
    if random.random() < 0.5:
        made["kind"] = pd.Categorical([random.choice(words) for _ in range(n)], words)
    return made if random.random() < 0.7 else made[random.sample(list(made.columns), len(made.columns))]


def _learned(model: Any, random: Random, *, table: bool) -> Any:
    """Has a model learn a few rows of some labels."""
    n = random.choice((1, 12, 40))
    known = random.sample(_LABELS, random.choice((1, 2, 4)))
    y: dict[type, Any] = {CNDPMClassifier: [random.choice(known) for _ in range(n)], CNDPMRegressor: [0.5] * n}
    return model.partial_fit(_rows(random, n, table=table), *([y[type(model)]] if type(model) in y else []))


def _made(random: Random) -> list[Any]:
    """Makes models to merge, most of them with one representation."""
    kind, table = random.choice((CNDPMClassifier, CNDPMClassifier, CNDPMRegressor, CNDPMDensity)), random.random() < 0.4
    settings = random.choice(({"features": "identity"}, {"features": "identity", "representations": "one"}))
    first = kind(
        memory_size=random.choice((6, 30)), random_state=0, settings=None if kind is CNDPMDensity else settings
    )
    if kind is CNDPMClassifier:
        by_label = dict.fromkeys(random.sample(_LABELS, 2), 2.0)
        first.set_params(class_weight=random.choice((None, "balanced", by_label)))
    models = [_learned(first, random, table=table).consolidate()]
    for _ in range(random.choice((1, 1, 2, 3))):
        other = (
            models[0].with_same_representation() if random.random() < 0.8 else kind(memory_size=6, settings=settings)
        )
        models.append(_learned(other, random, table=table) if random.random() < 0.9 else other)
    if random.random() < 0.15:
        models.append(random.choice((models[0], kind(), "model.cndpm", odd(random))))
    random.shuffle(models)
    return models


def attempt(random: Random, folder: Path) -> tuple[str, str]:
    """Merges some models; returns the outcome and what there is to say.

    Args:
        random: The only source of chance.
        folder: Where a merged model is saved.
    """
    while True:
        try:
            models = _made(random)
            break
        except ValueError:  # a table that does not fit the first one, which is what other attacks look at
            continue
    before = [fingerprint(model) if hasattr(model, "get_params") else None for model in models]
    try:
        merged = merge(models)
        answers = _used(merged, models, random, folder / "merged")
    except (ValueError, TypeError) as error:
        outcome, said = ("refused" if str(error) else "unclear"), str(error)
    except Exception as error:
        outcome, said = "foreign", repr(error)
    else:
        outcome, said = answers
    after = [fingerprint(model) if hasattr(model, "get_params") else None for model in models]
    return ("changed" if before != after else outcome), said


def _used(merged: Any, models: list[Any], random: Random, path: Path) -> tuple[str, str]:
    """Asks, saves and teaches a merged model; a refusal here would be a model that cannot be used."""
    try:
        if isinstance(merged, CNDPMClassifier):
            every = {label for model in models for label in model.classes_.tolist()}
            if set(merged.classes_.tolist()) != every:
                return "silent", f"labels {merged.classes_.tolist()} of {every}"
        n_samples = sum(model.learner_.events.n_samples for model in models)
        if merged.learner_.events.n_samples != n_samples:
            return "silent", f"{merged.learner_.events.n_samples} samples of {n_samples}"
        X = _asked(merged, random)
        ask = {"none": "score_samples", "values": "predict", "classes": "predict_proba"}[merged._target]
        answers = getattr(merged, ask)(X)
        if not np.isfinite(answers).all():
            return "silent", "answers are not finite"
        merged.save(path)
        loaded = type(merged).load(path)
        if fingerprint(loaded) != fingerprint(merged) or getattr(loaded, ask)(X).tolist() != answers.tolist():
            return "silent", "another model was loaded than saved"
        y: dict[str, Any] = {"classes": [random.choice(_LABELS) for _ in range(len(X))], "values": [0.5] * len(X)}
        merged.partial_fit(X, *([y[merged._target]] if merged._target in y else []))
        getattr(merged, ask)(X)
    except Exception as error:
        raise RuntimeError(f"in use: {error!r}") from error
    return "merged", ""


def _asked(merged: Any, random: Random) -> Any:
    rows = np.random.default_rng(random.randrange(1 << 32)).normal(size=(5, merged.n_features_in_))
    if not hasattr(merged, "feature_names_in_"):
        return rows
    table = pd.DataFrame(rows, columns=list(merged.feature_names_in_))
    return table.assign(kind=pd.Categorical(["u", "v", "u", "v", "u"])) if "kind" in table else table


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:
    """Yields the outcomes of the attempts from `first` to `end`.

    Args:
        seed: Attempts are functions of the seed and their number.
        first: The first attempt.
        end: The one behind the last.
        folder: Where merged models are saved.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    gc.freeze()  # `merge` collects garbage, and need not look at all that was imported
    for number in range(first, end):
        yield Outcome(number, *attempt(Random(f"{seed} {number}"), folder))


if __name__ == "__main__":
    sys.exit(main(ATTACK))
