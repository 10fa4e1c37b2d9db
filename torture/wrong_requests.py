"""Sends wrong requests of any size up to the limit to a server; each is answered, soon and in few words.

    python -m torture.wrong_requests --n 1000 --seed 0

Options are those of :mod:`torture.attempts`. Applications around a classifier, one of a table with categories and a
regressor are asked as an ASGI server asks them. Counted are

- broken: the application raised something, answered with a 5xx, or did not say what is wrong;
- slow: an answer took more than 50 ms of the processor;
- long: an answer had more than 10 kB;
- changed: a request was refused and the model has changed;
- refused, accepted: everything else; some requests turn out to be right.

Ends with 1 if any of the first four is not zero.
"""

from __future__ import annotations

import asyncio
import gc
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from cndpm import CNDPMClassifier, CNDPMRegressor
from cndpm.serving import Limits, Store, create_app
from torture.attempts import Attack, Outcome, main
from torture.mutations import mutate

__all__ = ["ATTACK", "asked", "attempts", "served", "wrong_body"]

ATTACK = Attack(
    "wrong requests", "torture.wrong_requests", 1000, ("broken", "slow", "long", "changed"), ("refused", "accepted")
)
_SECONDS, _BYTES = 0.05, 10_000
_PIECE = 1 << 16


def _valid(random: Random, n: int) -> bytes:
    rows = [[round(random.gauss(0, 1), 3) for _ in range(3)] for _ in range(max(1, min(n // 30, 10_000)))]
    return json.dumps({"X": rows, "y": [random.choice("ab") for _ in rows], "id": str(random.random())}).encode()


def _within(begin: bytes, piece: bytes, end: bytes) -> Callable[[Random, int], bytes]:
    return lambda _, n: begin + piece * max(1, (n - len(begin) - len(end)) // len(piece)) + end


def _mutated(random: Random, n: int) -> bytes:
    return mutate(_valid(random, n), b'{"X": [[NaN, 1e999, null]], "y": ["\\ud800"]}', random)[1]


def _ragged(random: Random, n: int) -> bytes:
    return json.dumps({"X": [[1] * random.randrange(6) for _ in range(min(n // 12, 10_000))]}).encode()


_KINDS: dict[str, Callable[[Random, int], bytes]] = {
    "flat": _within(b'{"X": [', b"0,", b"0]}"),
    "wide": _within(b'{"X": [[', b"0,", b"0]]}"),
    "rows": _within(b'{"X": [', b"[0,0,0],", b"[0,0,0]], }"),
    "empty rows": _within(b'{"X": [', b"[],", b"[]]}"),
    "texts": _within(b'{"X": [', b'"a",', b'"a"]}'),
    "objects": _within(b'{"X": [', b"{},", b"{}]}"),
    "deep": _within(b'{"X": ', b"[", b"]}"),
    "deep objects": _within(b"", b'{"X":', b"1}"),
    "digits": _within(b'{"X": [[', b"1", b"]]}"),
    "decimals": _within(b'{"X": [[0.', b"3", b"]]}"),
    "space": _within(b'{"X": [[', b" ", b"1, 2, 3]]}"),
    "escapes": _within(b'{"X": [[1, 2, 3]], "y": ["', b"\\\\", b'"]}'),
    "surrogates": _within(b'{"X": [[1, 2, 3]], "y": ["', b"\\ud800", b'"]}'),
    "a label": _within(b'{"X": [[1, 2, 3]], "y": ["', b"a", b'"]}'),
    "labels": _within(b'{"X": [[1, 2, 3]], "y": [', b'"a",', b'"a"]}'),
    "an id": _within(b'{"X": [[1, 2, 3]], "y": ["a"], "id": "', b"a", b'"}'),
    "keys": _within(b'{"X": [[1, 2, 3]]', b',"a":1', b"}"),
    "nulls": _within(b'{"X": [', b"[null,null,null],", b"[null,null,null]]}"),
    "not a number": lambda *_: b'{"X": [[NaN, -Infinity, 1e999]], "y": ["a"]}',
    "bytes": lambda random, n: random.randbytes(n),
    "nothing": lambda *_: b"",
    "a list in a row": lambda *_: b'{"X": [[1, 2, ["x"]]], "y": [1.5]}',
    "a large number": _within(b'{"X": [[1, 2, 1', b"0", b']], "y": [1.5]}'),
    "a large target": _within(b'{"X": [[1, 2, 3]], "y": [1', b"0", b"]}"),
    "a list for a label": lambda *_: b'{"X": [[1, 2, 3]], "y": [["a"]]}',
    "ragged": _ragged,
    "mutated": _mutated,
}


def wrong_body(random: Random, most: int) -> tuple[str, bytes]:
    """Returns the name of what is wrong, and a body of up to `most` bytes, small ones as often as large ones.

    Args:
        random: The only source of chance.
        most: Bytes.
    """
    kind, n = random.choice(sorted(_KINDS)), int(math.exp(random.uniform(math.log(20), math.log(most))))
    return kind, _KINDS[kind](random, n)[:most]


def _classifier(**settings: Any) -> Any:
    return CNDPMClassifier(memory_size=20, n_exemplars=50, random_state=0, settings=settings)


def _table(X: NDArray[Any]) -> Any:
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": pd.Categorical(["red", "blue"] * (len(X) // 2))})


_MODELS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "classifier": lambda X: _classifier(features="identity", representations="one").fit(X, ["a", "b"] * 30),
    "table": lambda X: _classifier(representations="one").fit(_table(X), ["a", "b"] * 30),
    "regressor": lambda X: CNDPMRegressor(memory_size=20, n_exemplars=50, random_state=0).fit(X, X[:, 0]),
}


@contextmanager
def served(folder: Path, kind: str = "classifier") -> Iterator[tuple[Any, Store]]:
    """Makes an application around a small model, and closes it.

    Args:
        folder: An empty one.
        kind: Of the model: classifier, table (which has categories) or regressor.
    """
    model = _MODELS[kind](np.random.default_rng(0).normal(size=(60, 3)))
    model.save(folder / f"{kind}.cndpm")
    store = Store(folder / f"{kind}.cndpm", folder / kind)
    app = create_app(store)
    learn: Any = next(route for route in app.routes if getattr(route, "path", "") == "/learn")
    service = learn.endpoint.__self__
    try:
        yield app, store
    finally:
        service.writer.close()


async def asked(app: Any, path: str, body: bytes) -> tuple[int, bytes]:
    """Returns status and body of the answer to a request.

    Args:
        app: The application.
        path: The endpoint.
        body: Of the request.
    """
    pieces = [body[i : i + _PIECE] for i in range(0, len(body), _PIECE)] or [b""]
    waiting = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    waiting[-1]["more_body"] = False
    told: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0)

    async def send(message: dict[str, Any]) -> None:
        told.append(message)

    head = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    facts = {"method": "POST", "headers": head, "query_string": b"", "http_version": "1.1", "scheme": "http"}
    await app({"type": "http", "path": path, "raw_path": path.encode(), "root_path": "", **facts}, receive, send)
    return told[0]["status"], b"".join(message.get("body", b"") for message in told)


def _judge(app: Any, store: Store, path: str, body: bytes) -> tuple[str, str]:
    before, began = store.model.learner_.events.n_samples, time.process_time()
    try:
        status, answer = asyncio.run(asked(app, path, body))
    except Exception as error:
        return "broken", f"{type(error).__name__}: {error}"
    seconds = time.process_time() - began
    if status >= 500 or (status != 200 and not json.loads(answer).get("detail")):
        return "broken", f"{status}: {answer[:200]!r}"
    if status != 200 and (seconds > _SECONDS or len(answer) > _BYTES):
        return ("slow" if seconds > _SECONDS else "long"), f"{1000 * seconds:.0f} ms, {len(answer)} bytes"
    if status != 200 and store.model.learner_.events.n_samples != before:
        return "changed", str(status)
    return ("accepted" if status == 200 else "refused"), f"{status}: {answer[:100]!r}"


def attempts(seed: int, first: int, end: int, folder: Path) -> Iterator[Outcome]:
    """Yields the outcomes of the attempts from `first` to `end`.

    Args:
        seed: Attempts are functions of the seed and their number.
        first: The first attempt.
        end: The one behind the last.
        folder: Where the model is.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with ExitStack() as stack:
        servers = [stack.enter_context(served(folder, kind)) for kind in _MODELS]
        for app, _ in servers:
            asyncio.run(asked(app, "/predict", b"{"))  # imports on the way are no part of an attempt
        gc.freeze()
        for number in range(first, end):
            random = Random(f"{seed} {number}")
            path = random.choice(("/predict", "/learn", "/explain"))
            kind, body = wrong_body(random, Limits().body_bytes)
            app, store = random.choice(servers)
            gc.collect()  # what earlier attempts left is no part of this one
            outcome, said = _judge(app, store, path, body)
            yield Outcome(number, outcome, f"{path} {kind}, {len(body)} bytes: {said}")


if __name__ == "__main__":
    sys.exit(main(ATTACK))
