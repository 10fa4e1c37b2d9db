"""Engines for commands that run experiments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def chosen_engine(
    name: str, workers: int, address: str | None = None, *, n_gpus: float = 0.0, retries: int = 0
) -> Iterator[Any]:
    """Makes an engine and closes it; with one local worker there is none, and runs take place in this process."""
    from cndpm.engines import make_engine

    engine = make_engine(name, workers, address=address, n_gpus=n_gpus, retries=retries)
    try:
        yield "local" if name == "local" and workers == 1 else engine
    finally:
        engine.close()
