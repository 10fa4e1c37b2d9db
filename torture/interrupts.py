"""Interrupts calls of estimators at random moments; the model must be as it was before or after the whole call.

    python -m torture.interrupts --n 1700 --seed 0 --jobs 2

Options are those of :mod:`torture.attempts`. Exceptions arrive in several ways: a KeyboardInterrupt or a MemoryError
raised before a random line of the package is run; a real SIGINT, sent by another thread after a random time; an
exception that another thread asks for (PyThreadState_SetAsyncExc) after a random time. After each

- the exception must tell whether the call was done (nothing was changed if it says nothing), and the model be equal, to
  the bit, to one that was given whole calls;
- both then learn another batch, twice, and must be equal again;
- another thread must get an answer.

Counted are untold, between (neither before nor after, or not as told), later (other bits after the next batch), stuck
(no answer in 30 seconds); undone and done (as told); missed (the call had not begun or was over). Ends with 1 if any of
the first four is not 0.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import numpy as np
import torch

import cndpm
from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from torture.attempts import Attack, Outcome, main
from torture.call_worker import fingerprint

__all__ = ["ATTACK", "attempt", "attempts"]

ATTACK = Attack(
    "interrupts",
    "torture.interrupts",
    1700,
    ("untold", "between", "later", "stuck"),
    ("done", "missed", "undone"),
)
_PACKAGE = str(Path(cndpm.__file__).parent)
_WAYS = ("line", "line", "signal", "asked for")
_NEURAL = {
    "experts": "neural", "likelihood": "gaussian", "log_alpha": -400.0, "hidden": 4, "hidden_growth": 2,
    "latent_dim": 2, "n_latent_samples": 1, "density_sleep_steps": 10, "predictor_sleep_steps": 10, "standardise": True,
}  # fmt: skip
_KINDS: tuple[tuple[type, dict[str, Any]], ...] = (
    (CNDPMClassifier, {"settings": {"n_fourier": 16}}),
    (CNDPMRegressor, {"settings": {"n_fourier": 16}}),
    (CNDPMDensity, {}),
    (CNDPMClassifier, {}),
    (CNDPMClassifier, {"settings": _NEURAL}),
)
_METHODS = ("partial_fit",) * 7 + ("fit", "consolidate", "prune")


def _data(random: Random, estimator: type, n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(random.randrange(1 << 32))
    y = rng.integers(0, 3, n)
    x = rng.normal(size=(n, 4)) + random.choice((0, 6)) * y[:, None]
    return (x,) if estimator is CNDPMDensity else (x, y)


def _model(random: Random, number: int) -> Any:
    """Returns a model that has learned a little, in several calls."""
    estimator, parameters = _KINDS[number % len(_KINDS)]
    model = estimator(memory_size=20, random_state=number, device="cpu", **parameters)
    for n in [30, *random.choices((1, 10, 25), k=random.randrange(4))]:
        model.partial_fit(*_data(random, estimator, n))
    return model


def _at_line(call: Callable[[], Any], line: int, error: type[BaseException]) -> int:
    """Makes a call and raises before the given line of the package is run; returns the lines run."""
    n_lines = 0

    def local(_frame: FrameType, event: str, _: Any) -> Any:
        nonlocal n_lines
        if event == "line":
            n_lines += 1
            if n_lines == line:
                raise error("raised before a line")
        return local

    def enter(frame: FrameType, _event: str, _: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(_PACKAGE) else None

    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(None)
    return n_lines


def _after(call: Callable[[], Any], seconds: float, interrupt: Callable[[], Any]) -> None:
    """Makes a call while another thread waits and then interrupts."""
    timer = threading.Timer(seconds, interrupt)
    timer.start()
    try:
        call()
    finally:
        timer.cancel()
        timer.join()


def _interrupted(
    call: Callable[[], Any], rehearsal: Callable[[], Any], way: str, random: Random
) -> BaseException | None:
    """Makes a call that is interrupted on the way; returns what it raised, None if it was over before."""
    began = time.perf_counter()
    n_lines = _at_line(rehearsal, 0, KeyboardInterrupt) if way == "line" else rehearsal() and 0
    seconds, me = 0.6 * (time.perf_counter() - began) * random.random(), threading.get_ident()
    try:
        if way == "line":
            _at_line(call, random.randrange(1, n_lines + 1), random.choice((KeyboardInterrupt, MemoryError)))
        elif way == "signal":
            _after(call, seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
        else:
            asked = ctypes.pythonapi.PyThreadState_SetAsyncExc
            _after(call, seconds, lambda: asked(ctypes.c_ulong(me), ctypes.py_object(KeyboardInterrupt)))
        time.sleep(0)  # an exception that was asked for at the very end arrives here
    except (KeyboardInterrupt, MemoryError) as error:
        return error
    return None


def attempt(seed: int, number: int) -> tuple[str, str]:
    """Interrupts one call.

    Args:
        seed: Attempts are functions of the seed and their number, but for the moment at which a thread interrupts.
        number: The attempt's number.

    Returns:
        Its outcome, and what was done.
    """
    random = Random(f"{seed} {number}")
    model, way, name = _model(random, number), random.choice(_WAYS), random.choice(_METHODS)
    arguments = () if name == "consolidate" else _data(random, type(model), random.choice((1, 3, 10, 25, 40)))
    copied = pickle.dumps(model)
    reference, rehearsed = (pickle.loads(copied) for _ in range(2))
    error = _interrupted(
        lambda: getattr(model, name)(*arguments), lambda: getattr(rehearsed, name)(*arguments), way, random
    )
    notes = " ".join(getattr(error, "__notes__", ()))
    told = f"{type(model).__name__}.{name}, {way}, {type(error).__name__}: {notes}"
    outcome = "missed" if error is None or not notes else "done" if "was done" in notes else "undone"
    after, expected = fingerprint(model), fingerprint(reference)
    is_changed = after != expected
    if error is not None and not notes and not _is_outside(error):  # in the very first lines, before anything begins
        outcome = "undone"
    if is_changed and outcome == "undone" and not notes:
        return "untold", told
    if outcome == "done" or (outcome == "missed" and is_changed):
        getattr(reference, name)(*arguments)
        expected = fingerprint(reference)
    if after != expected:
        return "between", told
    more = _data(random, type(model), 12)
    for _ in range(2):  # the same rows again may look as if they were still being learned
        if fingerprint(model.partial_fit(*more)) != fingerprint(reference.partial_fit(*more)):
            return "later", told
    return (outcome, told) if _answers(model, more[0]) else ("stuck", told)


def _is_outside(error: BaseException) -> bool:
    """Returns whether an exception arrived when the estimator's method was not running: before or after it."""
    trace, inside = error.__traceback__, False
    while trace is not None:
        inside = inside or trace.tb_frame.f_code.co_filename.startswith(_PACKAGE)
        trace = trace.tb_next
    return not inside


def _answers(model: Any, x: np.ndarray) -> bool:
    """Returns whether another thread gets an answer."""
    ask = model.score_samples if isinstance(model, CNDPMDensity) else model.predict
    thread = threading.Thread(target=ask, args=(x,), daemon=True)
    thread.start()
    thread.join(30)
    return not thread.is_alive()


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:  # noqa: ARG001
    """Yields the outcomes of the attempts from `first` to `end`, without any files."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    sys.setswitchinterval(1e-4)  # else the thread that interrupts would wait longer than most calls take
    for number in range(first, end):
        yield Outcome(number, *attempt(seed, number))


if __name__ == "__main__":
    sys.exit(main(ATTACK))
