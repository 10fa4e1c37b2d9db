"""Kills a server while clients teach it, again and again, and compares what is left with what was acknowledged.

    python -m torture.serving --kills 1000 --seed 0

Clients send rows, each request with an id, and send it again until it is acknowledged. The server receives SIGKILL at a
random moment: while it starts, learns, writes or answers. In the end its folder must give, to the bit, the model that
learned every request once, in the order in which they were acknowledged. Ends with 1 if it does not.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import numpy as np
import torch
from figures.facts import add_options, append, facts
from numpy.typing import NDArray

from cndpm import CNDPMClassifier
from cndpm.checks.case import same
from cndpm.serving import Server, Store

__all__ = ["attack", "main"]

_N_CLIENTS = 2
_QUICK = {"features": "identity", "representations": "one"}
_DEAD = (OSError, http.client.HTTPException, TimeoutError)


def attack(root: Path, *, n: int, seed: int) -> tuple[int, int, list[str]]:
    """Kills servers.

    Args:
        root: An empty folder.
        n: Kills.
        seed: Determines rows and, as far as the machine is as fast, moments.

    Returns:
        The number of kills, of acknowledged rows, and a line for everything that went wrong.
    """
    rng = Random(seed)
    model, folder, port = root / "model.cndpm", root / "served", _free_port()
    X, y = _rows("first", seed, 90)
    CNDPMClassifier(memory_size=30, n_exemplars=0, settings=_QUICK, random_state=0).fit(X, y).save(model)
    clients = _forked(lambda: _teach(root, port, seed))
    try:
        for kill in range(n):
            server = _forked(lambda: _serve(model, folder, port))
            if rng.random() < 0.7:
                _wait_until_up(port, server)
            time.sleep(rng.uniform(0, 0.25))
            os.kill(server, signal.SIGKILL)
            if os.WIFEXITED(os.waitpid(server, 0)[1]):
                os.kill(clients, signal.SIGKILL)
                return kill, 0, [f"after {kill} kills the server did not start again"]
        server = _forked(lambda: _serve(model, folder, port))
        (root / "stop").touch()
        codes = [_exit_code(clients)]
        os.kill(server, signal.SIGTERM)
        codes.append(_exit_code(server))
    except BaseException:
        os.kill(clients, signal.SIGKILL)
        raise
    acknowledged = [json.loads(line) for line in (root / "acknowledged").read_text().splitlines()]
    bad = [f"exit codes of clients and server: {codes}"] * (codes != [0, -signal.SIGTERM])
    return n, sum(one["n_rows"] for one in acknowledged), bad + _problems(model, folder, acknowledged, seed)


def _problems(model: Path, folder: Path, acknowledged: list[dict[str, Any]], seed: int) -> list[str]:
    """Compares the model that the folder gives with one that learns what was acknowledged."""
    bad = [f"refused: {one}" for one in acknowledged if one["status"] != 200]
    records: dict[int, list[dict[str, Any]]] = {}
    for one in sorted(acknowledged, key=lambda one: (one["record"], one["row"])):
        records.setdefault(one["record"], []).append(one)
    if list(records) != list(range(len(records))):
        bad.append(f"{len(records)} records were acknowledged, the last of them number {max(records)}")
    expected = CNDPMClassifier.load(model)
    for requests in records.values():
        parts = [_rows(one["id"], seed, one["n_rows"]) for one in requests]
        expected.partial_fit(np.concatenate([X for X, _ in parts]), [label for _, y in parts for label in y])
    store = Store(model, folder)
    if store.n_records != len(records):
        bad.append(f"{store.n_records} records were kept, {len(records)} acknowledged")
    if not same(store.model.learner_.state_dict(), expected.learner_.state_dict()):
        bad.append("the model differs from one that learned what was acknowledged")
    store.close()
    return bad


def _rows(name: str, seed: int, n: int) -> tuple[NDArray[np.float32], list[str]]:
    """Returns the rows (n, 4) and labels of the request of this name."""
    rng = np.random.default_rng([seed, *name.encode()])
    y = rng.integers(0, 3, n)
    return (rng.normal(size=(n, 4)) + 4 * y[:, None]).astype(np.float32), [f"class {k}" for k in y]


def _serve(model: Path, folder: Path, port: int) -> None:
    Server(model, folder=folder, port=port, checkpoint_rows=60).run()


def _teach(root: Path, port: int, seed: int) -> None:
    """Teaches by several clients until a file says stop, and writes what was acknowledged."""
    found: list[dict[str, Any]] = []
    threads = [Thread(target=_client, args=(f"client {k}", root, port, seed, found)) for k in range(_N_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (root / "acknowledged").write_text("".join(json.dumps(one) + "\n" for one in found))


def _client(name: str, root: Path, port: int, seed: int, found: list[dict[str, Any]]) -> None:
    number = 0
    while not (root / "stop").exists() or not number:
        request, n_rows = f"{name}, {number}", 1 + number % 5
        X, y = _rows(request, seed, n_rows)
        body = json.dumps({"X": X.tolist(), "y": y, "id": request})
        found.append({"id": request, "n_rows": n_rows, **_send_until_answered(port, body)})
        number += 1


def _send_until_answered(port: int, body: str) -> dict[str, Any]:
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        try:
            connection.request("POST", "/learn", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = json.loads(answer.read())
            if answer.status != 503:  # being stopped, or busy
                return {"status": answer.status, "record": content.get("record", -1), "row": content.get("row", -1)}
        except _DEAD:
            time.sleep(0.005)
        finally:
            connection.close()


def _wait_until_up(port: int, server: int) -> None:
    """Waits until a connection is taken; a server that has ended instead is left for its parent to see."""
    while not os.waitid(os.P_PID, server, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.002)


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port


def _forked(function: Callable[[], None]) -> int:
    """Starts a function in a process of its own, with all that is imported here; returns its id."""
    child = os.fork()
    if not child:
        code = 1
        try:
            function()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def _exit_code(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main(arguments: list[str] | None = None) -> int:
    """Runs the attack; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m torture.serving", description="Kill a server while it learns.")
    parser.add_argument("--kills", type=int, default=1000, help="number of kills")
    parser.add_argument("--seed", type=int, default=0)
    add_options(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    begin = time.perf_counter()
    with TemporaryDirectory() as folder:
        n_kills, n_rows, bad = attack(Path(folder), n=options.kills, seed=options.seed)
    seconds = time.perf_counter() - begin
    print(f"{n_kills} kills, {n_rows} rows acknowledged, {len(bad)} wrong, seed {options.seed}, {seconds:.0f} s")
    print("\n".join(bad[:100]))
    if options.out is not None:
        told = {"attack": "killed servers", "seed": options.seed, "attempts": n_kills, "harm": len(bad)}
        append(options.out, [facts(commit=options.commit) | told | {"rows": n_rows, "seconds": round(seconds, 1)}])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
