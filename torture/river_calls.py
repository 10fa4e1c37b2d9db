"""Calls the models for river with hostile rows, targets and tables; no call may do harm.

    python -m torture.river_calls --n 20000 --seed 0

Options are those of :mod:`torture.attempts`. A model lives through 25 calls. Counted are

- foreign: an exception other than ValueError and TypeError left the model;
- unclear: an exception without a message;
- changed: a call that raised, or that only asks, changed what was learned, what waits or which features there are;
- silent: an answer is no number, or not finite;
- stuck: a row was taken in to wait for others, and is refused, with these, when they are learned;
- accepted, refused: everything else.

Ends with 1 if any of the first five is not zero.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections import UserDict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import torch

from cndpm.river import CNDPMAnomaly, CNDPMClassifier, CNDPMRegressor
from torture.attempts import Attack, Outcome, main
from torture.call_worker import fingerprint
from torture.hostile_inputs import hostile_targets, odd, raising

__all__ = ["ATTACK", "attempts", "call", "model_of"]

ATTACK = Attack(
    "hostile calls of models for river",
    "torture.river_calls",
    20_000,
    ("foreign", "unclear", "changed", "silent", "stuck"),
    ("accepted", "refused"),
)
_CALLS_OF_A_MODEL = 25
_KINDS: tuple[tuple[type, str], ...] = (
    (CNDPMClassifier, "predict_proba_one"),
    (CNDPMRegressor, "predict_one"),
    (CNDPMAnomaly, "score_one"),
)
_VALUES: tuple[Any, ...] = (
    *(0.5, -3.0, 7, True, None, np.float32(2), np.int8(3), np.nan, np.inf, 1e300, 1e30, 10**400, -(10**400), "a", ""),
    *(b"", [1.0], {}, object(), 1j, np.array(1.0), np.array([1.0, 2.0]), torch.tensor(1.0), pd.NA, pd.NaT),
)


class _Unreadable(dict):  # type: ignore[type-arg]
    """Raises whatever it is asked."""

    def get(self, *_: Any) -> Any:
        raise KeyError("get")

    def __iter__(self) -> Iterator[Any]:
        raise LookupError("iter")


def model_of(seed: int, life: int) -> tuple[Any, str, Random]:
    """Returns a model that has learned a little, how it is asked, and the source of everything that is done to it.

    Args:
        seed: Of the attack.
        life: Number of the model.
    """
    random = Random(f"{seed} {life}")
    kind, ask = _KINDS[life % len(_KINDS)]
    how = random.choice(({}, {}, {"batch_size": 5, "surprise": 1e9}, {"batch_size": 5}))
    model = kind(memory_size=random.choice((6, 40)), settings={"features": "identity"}, seed=life, **how)
    for i in range(random.choice((0, 1, 30))):
        model.learn_one(_proper(random), *_target(kind, random, i))
    return model, ask, random


def _proper(random: Random) -> dict[Any, float]:
    return {name: random.gauss(0, 1) for name in "abc"}


def _target(kind: type, random: Random, i: int) -> tuple[Any, ...]:
    targets: dict[type, tuple[Any, ...]] = {CNDPMClassifier: (i % 3,), CNDPMRegressor: (random.gauss(0, 1),)}
    return targets.get(kind, ())


def _row(random: Random) -> Any:
    row: dict[Any, Any] = dict(_proper(random))
    for _ in range(random.choice((0, 1, 2))):
        row[random.choice(("a", "b", "new", 3, None, ("x", 1)))] = random.choice(_VALUES)
    others = (
        _Unreadable(row),
        raising(random, UserDict)(row),
        raising(random)(),
        list(row),
        pd.Series(row),
        odd(random),
    )
    return random.choice((row, row, row, row, {}, *others))


def _table(random: Random) -> Any:
    table = pd.DataFrame([_proper(random) for _ in range(random.choice((0, 1, 4)))])
    if len(table) and random.random() < 0.5:
        table["b"] = [random.choice(_VALUES[:15]) for _ in range(len(table))]
    return random.choice((table, table, table, table.to_numpy(), raising(random)(), _row(random)))


def _act(model: Any, ask: str, random: Random) -> tuple[bool, Any]:
    """Makes a hostile call; returns whether it only asks, and the answer."""
    how, needs_y = random.choice(("learn one", "learn one", "ask", "learn many", "ask many")), ask != "score_one"
    if how == "ask":
        return True, getattr(model, ask)(_row(random))
    if how == "ask many" and needs_y:
        return True, getattr(model, ask.replace("one", "many"))(_table(random))
    if how == "learn many":
        table = _table(random)
        n = len(table) if isinstance(table, pd.DataFrame) else 2
        model.learn_many(table, *((hostile_targets(random, n),) if needs_y else ()))
        return False, None
    target = random.choice((0, 1.5, random.choice(_VALUES), odd(random), raising(random)(), raising(random, float)(1)))
    weights = (0, 0.5, 3, 1e4, 1e300, 5e-324, raising(random, float)(1), *_VALUES)
    weight = {"w": random.choice(weights)} if random.random() < 0.2 else {}
    model.learn_one(_row(random), *((target,) if needs_y else ()), **(weight if needs_y else {}))
    return False, None


def _stuck(model: Any) -> str:
    """Returns why a copy cannot learn the rows that wait; a row that is refused only then would block all others."""
    try:
        pickle.loads(pickle.dumps(model)).learn_waiting()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _state(model: Any) -> list[Any]:
    waiting = [
        [value.tobytes() if isinstance(value, np.ndarray) else repr(value) for value in row] for row in model._waiting
    ]
    return [fingerprint(model.estimator), waiting, repr(model._columns.places), model._columns.flags]


def call(model: Any, ask: str, random: Random) -> tuple[str, str]:
    """Makes one hostile call; returns its outcome and what there is to say.

    Args:
        model: Any model for river.
        ask: The name of the method that answers for a row.
        random: The only source of chance.
    """
    before = _state(model)
    try:
        only_asks, answer = _act(model, ask, random)
    except (ValueError, TypeError) as error:
        outcome, said = ("refused" if str(error) else "unclear"), str(error)
    except Exception as error:
        outcome, said = "foreign", repr(error)
    else:
        numbers = list(answer.values()) if isinstance(answer, dict) else [] if answer is None else answer
        if not np.isfinite(np.asarray(numbers, dtype=np.float64)).all():
            return "silent", f"answers {answer}"
        return ("changed", "asked") if only_asks and _state(model) != before else ("accepted", "")
    return ("changed" if _state(model) != before else outcome), said


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:  # noqa: ARG001 - all attacks have one
    """Yields the outcome of every call from `first` to `end`.

    Args:
        seed: Calls are functions of the seed and their number.
        first: Number of the first call that is told; those before it in its model's life are made again.
        end: Number behind the last one.
        folder: Is not needed.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for life in range(first // _CALLS_OF_A_MODEL, -(-end // _CALLS_OF_A_MODEL)):
        model, ask, random = model_of(seed, life)
        for number in range(life * _CALLS_OF_A_MODEL, min((life + 1) * _CALLS_OF_A_MODEL, end)):
            outcome, detail = call(model, ask, random)
            if model.n_waiting and (said := _stuck(model)):
                outcome, detail = "stuck", said
            if number >= first:
                yield Outcome(number, outcome, f"{type(model).__name__}: {detail}")


if __name__ == "__main__":
    sys.exit(main(ATTACK))
